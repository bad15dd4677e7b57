//! The entries of the archive and where each comes from.

use crate::steps::erase_certificates;
use farrier_disk::list;
use farrier_init::log_file::{self, LogFile};
use farrier_linux::efivars::EfiVariables;
use farrier_linux::netlink::{self, Netlink};
use farrier_linux::{kernel_log, sysfs};
use nix::sys::statvfs::statvfs;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// An entry of the archive.
pub struct Source {
    /// Name of the entry.
    pub name: &'static str,
    /// Its content.
    pub read: fn() -> io::Result<Vec<u8>>,
}

/// Every entry.
pub const SOURCES: &[Source] = &[
    Source { name: "journal", read: journal },
    Source { name: "dmesg", read: kernel_log::read },
    Source { name: "df", read: file_systems },
    Source { name: "efibootmgr", read: efi_variables },
    Source { name: "erase_certificates", read: || erase_certificates::read(Path::new("/")) },
    Source { name: "ip_addr", read: addresses },
    Source { name: "lsblk", read: block_devices },
    Source { name: "lsmod", read: || fs::read("/proc/modules") },
    Source { name: "mdstat", read: || fs::read("/proc/mdstat") },
    Source { name: "meminfo", read: || fs::read("/proc/meminfo") },
    Source { name: "mount", read: || fs::read("/proc/mounts") },
    Source { name: "partitions", read: || fs::read("/proc/partitions") },
    Source { name: "ps", read: || Ok(processes(Path::new("/proc"))) },
];

/// Absent where the log goes to standard error only.
fn journal() -> io::Result<Vec<u8>> {
    let content = LogFile::at(Path::new(log_file::DEFAULT_PATH)).read();
    if content.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(content) }
}

/// KiB of each mounted file system that has a size.
fn file_systems() -> io::Result<Vec<u8>> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    let mut text = String::from("Filesystem 1K-blocks Used Available Mounted on\n");
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(target)) = (fields.next(), fields.next()) else { continue };
        let Ok(found) = statvfs(target) else { continue };
        let kib = |blocks: u64| blocks.saturating_mul(found.fragment_size()) / 1024;
        let (total, free) = (kib(found.blocks()), kib(found.blocks_free()));
        let available = kib(found.blocks_available());
        let used = total.saturating_sub(free);
        writeln!(text, "{device} {total} {used} {available} {target}").map_err(io::Error::other)?;
    }
    Ok(text.into_bytes())
}

/// Names only: values may hold secrets of the firmware's owner.
fn efi_variables() -> io::Result<Vec<u8>> {
    let variables = EfiVariables::system().ok_or(io::ErrorKind::NotFound)?;
    Ok((variables.names()?.join("\n") + "\n").into_bytes())
}

fn addresses() -> io::Result<Vec<u8>> {
    let addresses = netlink::addresses().unwrap_or_default();
    let mut text = String::new();
    for link in Netlink::open()?.links()? {
        let state = sysfs::attribute(&Path::new("/sys/class/net").join(&link.name), "operstate");
        let hardware: Vec<_> = link.hardware_address.iter().map(|byte| format!("{byte:02x}")).collect();
        let state = state.as_deref().unwrap_or("unknown");
        writeln!(text, "{}: state {state} link {}", link.name, hardware.join(":"))
            .map_err(io::Error::other)?;
        for found in addresses.iter().filter(|found| found.interface == link.name) {
            writeln!(text, "    inet {}/{}", found.address, found.prefix).map_err(io::Error::other)?;
        }
    }
    Ok(text.into_bytes())
}

fn block_devices() -> io::Result<Vec<u8>> {
    let devices = list::list(Path::new("/sys")).map_err(io::Error::other)?;
    let disks: Vec<_> = devices.into_iter().map(|device| device.disk).collect();
    Ok(serde_json::to_vec_pretty(&disks)?)
}

/// Processes with what they were started with; one that ends meanwhile is left out.
fn processes(procfs: &Path) -> Vec<u8> {
    let mut pids: Vec<u32> = sysfs::entries(procfs).iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let mut text = format!("{:>7} {:>7} {:1} {:>9} COMMAND\n", "PID", "PPID", "S", "RSS/KIB").into_bytes();
    for pid in pids {
        let Ok(status) = fs::read(procfs.join(format!("{pid}/status"))) else { continue };
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or("-")
        };
        let (parent, state, resident) = (field("PPid"), field("State"), field("VmRSS"));
        text.extend_from_slice(format!("{pid:>7} {parent:>7} {state:1} {resident:>9} ").as_bytes());
        let mut command = fs::read(procfs.join(format!("{pid}/cmdline"))).unwrap_or_default();
        command.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        let is_kernel_thread = command.is_empty();
        text.extend(if is_kernel_thread { format!("[{}]", field("Name")).into_bytes() } else { command });
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_kernel_threads_are_told_apart() {
        let procfs = tempfile::tempdir().unwrap();
        for (pid, status, command) in [
            ("12", "Name:\tagent\nState:\tS (sleeping)\nPPid:\t1\nVmRSS:\t    4096 kB\n", "agent\0run\0"),
            ("3", "Name:\tkworker\nState:\tI (idle)\nPPid:\t2\n", ""),
        ] {
            let directory = procfs.path().join(pid);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("status"), status).unwrap();
            fs::write(directory.join("cmdline"), command).unwrap();
        }
        fs::create_dir(procfs.path().join("4")).unwrap();
        let text = String::from_utf8(processes(procfs.path())).unwrap();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[1], ["3", "2", "I", "-", "[kworker]"]);
        assert_eq!(lines[2], ["12", "1", "S", "4096", "agent", "run"]);
    }

    #[test]
    fn x37_entries_of_the_contract_are_there_or_the_book_says_why_not() {
        let book = include_str!("../../../docs/src/ironic.md");
        let rows: Vec<_> = book.lines().filter(|line| line.starts_with("| logs: ")).collect();
        for name in [
            "journal",
            "df",
            "dmesg",
            "efibootmgr",
            "iptables",
            "ip_addr",
            "lsblk",
            "lsblk-full",
            "lshw",
            "mdstat",
            "mount",
            "multipath",
            "parted",
            "ps",
            "udev/…",
        ] {
            let is_there = SOURCES.iter().any(|source| source.name == name);
            let quoted = format!("`{name}`");
            let is_explained =
                rows.iter().any(|row| row.split('|').nth(1).is_some_and(|what| what.contains(&quoted)));
            assert!(is_there != is_explained, "{name}");
        }
    }

    #[test]
    fn entries_have_different_names() {
        for (i, source) in SOURCES.iter().enumerate() {
            assert!(SOURCES[..i].iter().all(|other| other.name != source.name), "{}", source.name);
        }
    }
}
