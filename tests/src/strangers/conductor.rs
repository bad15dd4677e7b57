//! The conductor that strangers call: `farrier serve` as a process, its memory, and an honest client of it.

use crate::farrier::Farrier;
use crate::machine::free_port;
use crate::node_api::{Api, Conductor};
use anyhow::{Context, Result};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time for one request.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause of the honest client between two requests.
const PAUSE: Duration = Duration::from_millis(20);

/// The conductor, killed when it is dropped.
#[derive(Debug)]
pub struct Victim {
    farrier: Farrier,
    /// Where its ramdisk API listens.
    pub ramdisk: SocketAddr,
}

impl Victim {
    /// Starts one with its state in `folder`, with further options of `farrier serve`.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub fn start(program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        let ramdisk = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        Self::start_at(ramdisk, program, folder, options)
    }

    /// The same, whose ramdisk API listens at an address.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub fn start_at(ramdisk: SocketAddr, program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let farrier = Farrier::start_at(ramdisk, program, folder, options)?;
        Ok(Self { farrier, ramdisk })
    }

    /// Its API of operators, with all rights.
    pub fn operators(&self) -> &Api {
        self.farrier.api()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.farrier.log_tail()
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.farrier.process_id()
    }

    /// The most memory that it ever had, in KiB.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub fn peak_kib(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process_id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
        Ok(peak.context("no VmHWM")?.trim().parse()?)
    }
}

/// A client that asks the ramdisk API for its versions again and again, and notes how long it waits.
#[derive(Debug)]
pub struct Honest {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Honest {
    /// Begins to ask.
    pub fn begin(address: SocketAddr) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                // One that is not answered at all has waited for as long as it may.
                let is_answered =
                    request(address, "GET", "/v1", "").is_ok_and(|answer| answer.starts_with("200"));
                longest = longest.max(if is_answered { start.elapsed() } else { PATIENCE });
                thread::sleep(PAUSE);
            }
            longest
        });
        Self { ends, thread }
    }

    /// Ends, and tells the longest wait.
    pub fn longest(self) -> Duration {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(PATIENCE)
    }
}

/// Status and beginning of the answer to a request, in one line.
///
/// # Errors
///
/// Nobody listens, or the connection ended before an answer.
pub fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-OpenStack-Ironic-API-Version: 1.84\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    // A refusal may come before the body has gone out.
    connection.write_all(body.as_bytes()).ok();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).ok();
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?;
    Ok(format!("{status} {}", body.chars().take(4000).collect::<String>()).trim().to_owned())
}
