//! Reading attributes of sysfs and procfs.

use nix::time::{ClockId, clock_gettime};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The trimmed text of an attribute; nothing when it is absent, unreadable or empty.
///
/// Devices come and go while they are read, so absence is never an error (F29).
pub fn attribute(directory: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(directory.join(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// An attribute that holds a number.
pub fn number<T: std::str::FromStr>(directory: &Path, name: &str) -> Option<T> {
    attribute(directory, name)?.parse().ok()
}

/// Writes an attribute.
///
/// # Errors
///
/// The error of the kernel, which shows what it thinks of the text.
pub fn write(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    // The kernel makes attributes; a file of this name where there is none is a mistake.
    OpenOptions::new().write(true).open(directory.join(name))?.write_all(text.as_bytes())
}

/// Last path component of a symbolic link, such as the name of a device's driver.
pub fn link_name(directory: &Path, name: &str) -> Option<String> {
    let target = fs::read_link(directory.join(name)).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

/// Device node of the block device in a directory, in whose name sysfs writes a slash as an exclamation mark,
/// as in `cciss!c0d0`.
pub fn node(directory: &Path) -> PathBuf {
    let name = directory.file_name().unwrap_or_default();
    Path::new("/dev").join(name.to_string_lossy().replace('!', "/"))
}

/// Sorted names of a directory's entries; empty when it cannot be read.
pub fn entries(directory: &Path) -> Vec<String> {
    let Ok(read) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> =
        read.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Resident memory of this process in bytes; nothing when procfs is not mounted.
pub fn resident_bytes() -> Option<u64> {
    memory_field("/proc/self/status", "VmRSS:")
}

/// Bytes of memory that programs can still get without a process being killed for it; nothing when procfs
/// is not mounted.
pub fn available_bytes() -> Option<u64> {
    memory_field("/proc/meminfo", "MemAvailable:")
}

/// Bytes of memory that the machine has, without the kernel's own; nothing when procfs is not mounted.
pub fn total_bytes() -> Option<u64> {
    memory_field("/proc/meminfo", "MemTotal:")
}

/// Bytes in a line of the form `name 12 kB`.
fn memory_field(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Time since the kernel started, suspended time included: the clock of the kernel's own messages.
pub fn uptime() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_trimmed_and_absence_is_none() {
        let directory = tempfile::tempdir().unwrap();
        for (content, expected) in
            [("sda\n", Some("sda")), ("  QEMU  \0", Some("QEMU")), ("\n", None), ("", None)]
        {
            fs::write(directory.path().join("model"), content).unwrap();
            assert_eq!(attribute(directory.path(), "model").as_deref(), expected, "{content:?}");
        }
        assert_eq!(attribute(directory.path(), "absent"), None);
    }

    #[test]
    fn this_process_has_memory_and_the_kernel_an_uptime() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(available_bytes().unwrap() > 1_000_000);
        assert!(total_bytes() > available_bytes());
        assert!(uptime() > Duration::ZERO);
    }
}
