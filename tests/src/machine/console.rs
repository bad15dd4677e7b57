//! Reads the serial console of the emulated machine.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const POLL: Duration = Duration::from_millis(20);

/// Longest time for which a machine that is expected to say something says nothing, with an emulated processor on
/// a busy host.
const SILENCE: Duration = Duration::from_secs(300);

/// The file that the machine's serial console is written to.
#[derive(Debug, Clone)]
pub struct Console {
    file: PathBuf,
}

impl Console {
    /// The console that is or will be in `file`.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Sits down at the console of a machine that is on and listens to `port` of the loopback address.
    ///
    /// # Errors
    ///
    /// The machine is off.
    pub fn typist(&self, port: u16) -> Result<Typist> {
        self.typist_at(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("the machine is off")?)
    }

    /// As [`Console::typist`], at a machine that listens to a socket.
    ///
    /// # Errors
    ///
    /// The machine is off.
    pub fn typist_by(&self, socket: &Path) -> Result<Typist> {
        self.typist_at(UnixStream::connect(socket).context("the machine is off")?)
    }

    fn typist_at(&self, connection: impl Into<OwnedFd>) -> Result<Typist> {
        let connection: OwnedFd = connection.into();
        let (keyboard, mut screen) = (File::from(connection.try_clone()?), File::from(connection));
        // A machine whose screen nobody reads stands still when it is full.
        thread::spawn(move || io::copy(&mut screen, &mut io::sink()));
        Ok(Typist { keyboard, console: self.clone(), start: self.length() })
    }

    /// All that was written so far; nothing when there is no file yet.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// The last lines, to be shown when something failed.
    pub fn tail(&self) -> String {
        const LINES: usize = 25;
        let text = self.text();
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// What emulates the processor, told by the kernel in the machine.
    pub fn accelerator(&self) -> &'static str {
        if self.text().contains("paravirtualized kernel on KVM") { "kvm" } else { "tcg" }
    }

    /// Waits until `text` stands in what was written after the first `start` bytes.
    ///
    /// # Errors
    ///
    /// It is not there after `limit`, or the machine has fallen silent.
    pub fn wait_for(&self, text: &str, start: usize, limit: Duration) -> Result<()> {
        self.wait_with(&mut self.watch(), text, start, limit)
    }

    /// Waits until `text` is on the screen of a terminal: what moves the cursor within it does not count.
    ///
    /// # Errors
    ///
    /// As [`Console::wait_for`].
    pub fn wait_for_shown(&self, text: &str, limit: Duration) -> Result<()> {
        let begin = Instant::now();
        let mut watch = self.watch();
        while !without_orders(&self.text()).contains(text) {
            if begin.elapsed() > limit {
                bail!("no {text:?} on the screen after {limit:?}; its end:\n{}", self.tail());
            }
            watch.look(self.length()).with_context(|| format!("waiting for {text:?}"))?;
            thread::sleep(10 * POLL);
        }
        Ok(())
    }

    fn wait_with(&self, watch: &mut Watch, text: &str, start: usize, limit: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            let said = self.bytes();
            if String::from_utf8_lossy(said.get(start..).unwrap_or_default()).contains(text) {
                return Ok(());
            }
            if begin.elapsed() > limit {
                bail!("no {text:?} on the console after {limit:?}; its end:\n{}", self.tail());
            }
            watch.look(said.len()).with_context(|| format!("waiting for {text:?}"))?;
            thread::sleep(POLL);
        }
    }

    /// Watches the machine from now on.
    pub fn watch(&self) -> Watch {
        Watch { console: self.clone(), patience: SILENCE, heard: self.length(), at: Instant::now() }
    }

    /// How many bytes were written so far.
    pub fn length(&self) -> usize {
        self.bytes().len()
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.file).unwrap_or_default()
    }

    /// Sends `message(seconds since 1970)` when `text` has appeared; gives up after `limit`.
    pub fn when<M: Send + 'static>(
        &self,
        text: String,
        limit: Duration,
        messages: Sender<M>,
        message: impl FnOnce(f64) -> M + Send + 'static,
    ) {
        let console = self.clone();
        thread::spawn(move || {
            let start = Instant::now();
            while start.elapsed() < limit {
                if console.text().contains(&text) {
                    // The receiver may have lost interest.
                    let _ = messages.send(message(now()));
                    return;
                }
                thread::sleep(POLL);
            }
        });
    }
}

/// What was written without the orders to a terminal, which begin with two bytes and end with a letter.
fn without_orders(written: &str) -> String {
    let mut parts = written.split("\x1b[");
    let first = parts.next().unwrap_or_default();
    let after = parts.filter_map(|part| Some(&part[part.find(|c: char| c.is_ascii_alphabetic())? + 1..]));
    [first].into_iter().chain(after).collect()
}

/// Somebody who notices that a machine has fallen silent.
#[derive(Debug)]
pub struct Watch {
    console: Console,
    patience: Duration,
    heard: usize,
    at: Instant,
}

impl Watch {
    /// Looks whether the machine said something since the last look.
    ///
    /// # Errors
    ///
    /// It has said nothing for five minutes.
    pub fn check(&mut self) -> Result<()> {
        self.look(self.console.length())
    }

    fn look(&mut self, length: usize) -> Result<()> {
        if length != self.heard {
            (self.heard, self.at) = (length, Instant::now());
        }
        if self.at.elapsed() > self.patience {
            let Self { console, patience, .. } = self;
            bail!(
                "the machine has said nothing for {patience:?}; the end of its console:\n{}",
                console.tail()
            );
        }
        Ok(())
    }
}

/// Somebody who types at a machine's console. The machine listens to one at a time.
#[derive(Debug)]
pub struct Typist {
    keyboard: File,
    console: Console,
    start: usize,
}

impl Typist {
    /// Types `text` and Enter as soon as `prompt` was written.
    ///
    /// # Errors
    ///
    /// The prompt is not there after `limit`, or the machine is off.
    pub fn answer(&mut self, prompt: &str, text: &str, limit: Duration) -> Result<()> {
        self.console.wait_for(prompt, self.start, limit)?;
        self.start = self.console.length();
        Ok(self.keyboard.write_all(format!("{text}\r").as_bytes())?)
    }

    /// Waits for `text` in what was written after the last answer.
    ///
    /// # Errors
    ///
    /// It is not there after `limit`.
    pub fn expect(&self, text: &str, limit: Duration) -> Result<()> {
        self.console.wait_for(text, self.start, limit)
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn moves_of_the_cursor_are_no_text() {
        let written = "Farrier: going on \x1b[25;18H\x1b[25;19Hwith\x1b[0m the\x1b[1m \x1b[17;02Hdisk";
        assert_eq!(without_orders(written), "Farrier: going on with the disk");
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn x50_a_machine_that_says_nothing_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let console = Console::new(folder.path().join("console"));
        let start = Instant::now();
        for text in ["", "SeaBIOS\n"] {
            fs::write(console.file(), text).unwrap();
            let mut watch = Watch { patience: Duration::from_millis(100), ..console.watch() };
            let error = console.wait_with(&mut watch, "login:", 0, HOUR).unwrap_err();
            assert!(format!("{error:#}").contains("has said nothing for 100ms"), "{error:#}");
        }
        assert!(start.elapsed() < HOUR / 60);
    }

    #[test]
    fn a_machine_that_goes_on_talking_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let console = Console::new(folder.path().join("console"));
        let mut watch = Watch { patience: Duration::from_secs(60), ..console.watch() };
        let limit = Duration::from_millis(50);
        let error = console.wait_with(&mut watch, "login:", 0, limit).unwrap_err();
        assert!(error.to_string().contains("after 50ms"), "{error:#}");
        fs::write(console.file(), "debian login: ").unwrap();
        console.wait_with(&mut watch, "login:", 0, limit).unwrap();
    }
}
