//! The consoles named on the kernel command line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a console may take nothing: a moment where another process writes to it, for ever where nobody reads it.
const PATIENCE: Duration = Duration::from_millis(100);
/// Pause before it is tried again.
const PAUSE: Duration = Duration::from_millis(1);

/// Every active console at once. The kernel's `/dev/console` reaches only the last of them.
#[derive(Debug)]
pub struct Consoles {
    devices: Vec<Console>,
}

#[derive(Debug)]
struct Console {
    device: File,
    /// Whether it took nothing the last time: it is not waited for again until it does.
    is_stuck: bool,
}

impl Console {
    /// Writes to a console. One that takes nothing for a while loses the rest.
    fn write(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            match self.device.write(bytes) {
                Ok(0) => return,
                Ok(count) => {
                    self.is_stuck = false;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_stuck => {
                    self.is_stuck = Instant::now() >= deadline;
                    thread::sleep(PAUSE);
                }
                Err(_) => return,
            }
        }
    }
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
                let device = OpenOptions::new()
                    .write(true)
                    .custom_flags(nix::libc::O_NOCTTY | nix::libc::O_NONBLOCK)
                    .open(directory.join(name));
                Some(Console { device: device.ok()?, is_stuck: false })
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
    /// Writes to each console, ending lines as a terminal needs it. A console that takes nothing for a tenth of a second
    /// loses the text; the others do not.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for console in &mut self.devices {
            console.write(bytes);
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
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use nix::pty::openpty;
    use nix::unistd::ttyname;
    use std::io::{BufRead, BufReader, Read};
    use std::sync::Barrier;

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

    fn opened(terminal: &Path) -> Consoles {
        let name = terminal.file_name().unwrap().to_str().unwrap();
        Consoles::open_named(terminal.parent().unwrap(), std::iter::once(name))
    }

    #[test]
    fn a_console_that_nobody_reads_is_waited_for_once_until_somebody_reads_it() {
        let pair = openpty(None, None).unwrap();
        let mut consoles = opened(&ttyname(&pair.slave).unwrap());
        let started = Instant::now();
        for _ in 0..1000 {
            consoles.write_all(&[b'x'; 1000]).unwrap();
        }
        assert!(started.elapsed() < 100 * PATIENCE, "it was waited for each time");
        assert!(consoles.devices[0].is_stuck);
        let mut master = File::from(pair.master);
        for _ in 0..100 {
            assert!(master.read(&mut [0; 100]).unwrap() > 0);
            consoles.write_all(b"y").unwrap();
            if !consoles.devices[0].is_stuck {
                return;
            }
        }
        panic!("it is given up for good");
    }

    /// What is shown when two write these lines at the same time. It fits into a terminal that nobody reads yet.
    fn shown_at_once(lines: &[Vec<String>; 2]) -> Vec<String> {
        let pair = openpty(None, None).unwrap();
        // A program that another test starts would keep the terminal open.
        fcntl(&pair.slave, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        let path = &ttyname(&pair.slave).unwrap();
        let start = &Barrier::new(2);
        thread::scope(|scope| {
            for lines in lines {
                scope.spawn(move || {
                    let mut consoles = opened(path);
                    start.wait();
                    lines.iter().for_each(|line| consoles.write_all(line.as_bytes()).unwrap());
                });
            }
        });
        drop(pair.slave);
        // It ends since nobody has the terminal open any more.
        BufReader::new(File::from(pair.master)).lines().map_while(Result::ok).collect()
    }

    /// The kernel lets one process write to a terminal at a time, and refuses others that would not wait.
    #[test]
    fn lines_of_two_processes_at_once_are_all_shown() {
        let lines = ["one", "two"].map(|who| (0..100).map(|number| format!("{who} {number}\n")).collect());
        for _ in 0..50 {
            let shown = shown_at_once(&lines);
            for lines in &lines {
                let who = &lines[0][..3];
                let of_one = shown.iter().filter(|line| line.starts_with(who)).map(|line| line.trim());
                assert!(of_one.eq(lines.iter().map(|line| line.trim())), "{who}: {shown:?}");
            }
        }
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
