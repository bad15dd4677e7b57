//! QEMU's own interface, through which a running machine is changed and watched.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time for QEMU to say something.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked for: who boots a machine may want to change it before its firmware has seen it.
const POLL: Duration = Duration::from_millis(20);

/// A connection to the monitor of a machine. There can be one at a time.
#[derive(Debug)]
pub struct Monitor {
    lines: BufReader<UnixStream>,
    /// Names of events that nobody asked for yet.
    events: VecDeque<String>,
}

impl Monitor {
    /// Arguments of QEMU for a monitor at this socket.
    pub fn arguments(socket: &Path) -> [String; 2] {
        ["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())]
    }

    /// Connects to a machine that is on, or about to be.
    ///
    /// # Errors
    ///
    /// Nobody listens, or it is no QEMU.
    pub fn connect(socket: &Path) -> Result<Self> {
        let start = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Err(_) if start.elapsed() < PATIENCE => thread::sleep(POLL),
                outcome => {
                    break outcome.with_context(|| format!("cannot connect to {}", socket.display()))?;
                }
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut monitor = Self { lines: BufReader::new(stream), events: VecDeque::new() };
        monitor.execute("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Orders something and waits until QEMU agrees.
    ///
    /// # Errors
    ///
    /// QEMU refuses, or is gone.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let order = json!({"execute": command, "arguments": arguments});
        writeln!(self.lines.get_mut(), "{order}")?;
        loop {
            let answer = self.read()?.with_context(|| format!("QEMU ended before {command} was done"))?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command}: {error}");
            }
            if let Some(result) = answer.get("return") {
                return Ok(result.clone());
            }
            self.events.extend(name(&answer));
        }
    }

    /// Lets a disk do at most so many writes a second from now on; 0 is as many as it can.
    ///
    /// # Errors
    ///
    /// QEMU refuses: there is no such drive.
    pub fn throttle_writes(&mut self, drive: &str, per_second: u32) -> Result<()> {
        let limits = json!({"device": drive, "bps": 0, "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0,
            "iops_wr": per_second});
        self.execute("block_set_io_throttle", &limits).map(drop)
    }

    /// Waits until something has happened, if it has not since it was waited for last.
    ///
    /// # Errors
    ///
    /// It does not happen.
    pub fn wait_for(&mut self, event: &str) -> Result<()> {
        while let Some(next) = self.next_event()? {
            if next == event {
                return Ok(());
            }
        }
        bail!("QEMU ended without {event}")
    }

    /// The names of the events from now on, to the end of the machine.
    pub fn events(mut self) -> impl Iterator<Item = String> {
        std::iter::from_fn(move || self.next_event().ok().flatten())
    }

    fn next_event(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            match self.read()? {
                Some(message) => self.events.extend(name(&message)),
                None => return Ok(None),
            }
        }
    }

    fn read(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line).with_context(|| format!("no message: {line}"))?)),
        }
    }
}

fn name(message: &Value) -> Option<String> {
    message["event"].as_str().map(str::to_owned)
}
