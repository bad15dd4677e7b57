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
        Self::open_named(Path::new("/dev"), active().split_whitespace())
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

/// Names of the active consoles, separated by blanks.
fn active() -> String {
    fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default()
}

/// The consoles that are screens, with rows at the top that stay while the rest scrolls. Dropping it
/// gives the whole screen back.
#[derive(Debug)]
pub struct Screens(Consoles);

impl Screens {
    /// Sets the first rows of every screen apart and clears it.
    pub fn open(rows: usize) -> Self {
        let active = active();
        let names = active.split_whitespace().filter(|name| is_screen(name));
        Self::begin(Consoles::open_named(Path::new("/dev"), names), rows)
    }

    fn begin(consoles: Consoles, rows: usize) -> Self {
        let mut screens = Self(consoles);
        // Scrolling begins below the rows, and so does the cursor.
        screens.send(&format!("\x1b[2J\x1b[{0}r\x1b[{0};1H", rows + 1));
        screens
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.devices.is_empty()
    }

    /// Replaces a row that was set apart; the first is 0. The cursor stays where it is.
    pub fn write(&mut self, row: usize, text: &str) {
        self.send(&format!("\x1b7\x1b[{};1H\x1b[2K{text}\x1b8", row + 1));
    }

    /// In one piece, so that what other processes write does not get in between.
    fn send(&mut self, text: &str) {
        // A screen that takes nothing loses the text, as every console does.
        self.0.write_all(text.as_bytes()).ok();
    }
}

impl Drop for Screens {
    fn drop(&mut self) {
        self.send("\x1b[r\x1b[2J\x1b[H");
    }
}

/// Whether a console is a virtual terminal, and not a serial line.
fn is_screen(name: &str) -> bool {
    name.strip_prefix("tty").is_some_and(|number| number.parse::<u8>().is_ok())
}

/// Keeps messages of the kernel off the consoles, save those that it is about to stop.
///
/// # Errors
///
/// procfs is not mounted, or without the right to do so.
pub fn quiet_kernel() -> io::Result<()> {
    fs::write("/proc/sys/kernel/printk", QUIET)
}

/// Only messages of lower levels are shown: emergencies, alerts and critical conditions.
const QUIET: &str = "3";

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
    fn screens_keep_their_first_rows_and_are_given_back() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("tty0"), "").unwrap();
        let consoles = Consoles::open_named(directory.path(), std::iter::once("tty0"));
        let mut screens = Screens::begin(consoles, 7);
        assert!(!screens.is_empty());
        screens.write(0, "Farrier");
        drop(screens);
        let expected = "\x1b[2J\x1b[8r\x1b[8;1H\x1b7\x1b[1;1H\x1b[2KFarrier\x1b8\x1b[r\x1b[2J\x1b[H";
        assert_eq!(fs::read_to_string(directory.path().join("tty0")).unwrap(), expected);
    }

    #[test]
    fn serial_lines_are_no_screens() {
        for (name, expected) in [
            ("tty0", true),
            ("tty1", true),
            ("ttyS0", false),
            ("ttyAMA0", false),
            ("hvc0", false),
            ("tty", false),
        ] {
            assert_eq!(is_screen(name), expected, "{name}");
        }
    }

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
