//! Reads the serial console of the emulated machine.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const POLL: Duration = Duration::from_millis(20);

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
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("the machine is off")?;
        Ok(Typist { socket, console: self.clone(), start: self.length() })
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
    /// It is not there after `limit`.
    pub fn wait_for(&self, text: &str, start: usize, limit: Duration) -> Result<()> {
        let begin = Instant::now();
        while !String::from_utf8_lossy(self.bytes().get(start..).unwrap_or_default()).contains(text) {
            if begin.elapsed() > limit {
                bail!("no {text:?} on the console after {limit:?}; its end:\n{}", self.tail());
            }
            thread::sleep(POLL);
        }
        Ok(())
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

/// Somebody who types at a machine's console. The machine listens to one at a time.
#[derive(Debug)]
pub struct Typist {
    socket: TcpStream,
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
        Ok(self.socket.write_all(format!("{text}\r").as_bytes())?)
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
