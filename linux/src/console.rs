//! The consoles named on the kernel command line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Every active console at once. The kernel's `/dev/console` reaches only the last of them.
#[derive(Debug)]
pub struct Consoles {
    devices: Vec<File>,
}

impl Consoles {
    /// Opens the consoles the kernel lists as active; those that cannot be opened are left out.
    pub fn open() -> Self {
        let active = fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default();
        Self::open_named(Path::new("/dev"), active.split_whitespace())
    }

    fn open_named<'a>(directory: &Path, names: impl Iterator<Item = &'a str>) -> Self {
        let devices = names
            .filter_map(|name| {
                // Without O_NONBLOCK a serial port that nobody reads would stop the agent.
                OpenOptions::new()
                    .write(true)
                    .custom_flags(nix::libc::O_NOCTTY | nix::libc::O_NONBLOCK)
                    .open(directory.join(name))
                    .ok()
            })
            .collect();
        Self { devices }
    }
}

impl Write for Consoles {
    /// Writes to each console, ending lines as a terminal needs it. A console that takes nothing
    /// loses the text; the others do not.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for device in &mut self.devices {
            device.write_all(bytes).ok();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_that_is_missing_does_not_silence_the_others() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["ttyS0", "tty0"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let mut consoles = Consoles::open_named(directory.path(), ["ttyS0", "ttyS9", "tty0"].into_iter());
        consoles.write_all(b"hello\n").unwrap();
        for name in ["ttyS0", "tty0"] {
            assert_eq!(fs::read_to_string(directory.path().join(name)).unwrap(), "hello\n");
        }
    }
}
