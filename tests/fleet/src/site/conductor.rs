//! A conductor: a process that is started, struck, and brought back.

use super::error::SiteError;
use super::file::{ConductorEntry, SiteFile};
use super::network::Link;
use super::process::{peak_kib, processor_seconds};
use crate::fault::Kind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Longest time for a conductor to start.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Pause between two looks whether it has.
const POLL: Duration = Duration::from_millis(100);
/// How far a wrong clock is off, in seconds.
const CLOCK_ERROR: i64 = 3600;

/// A conductor that runs, unless it is struck. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Conductor {
    number: usize,
    entry: ConductorEntry,
    faketime: Option<PathBuf>,
    link: Option<Link>,
    process: Child,
    /// What earlier processes of it have used.
    used: (f64, u64),
    /// How often its clock was wrong: every other time it is behind.
    clock_errors: u32,
}

impl Drop for Conductor {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Conductor {
    pub(super) async fn start(
        number: usize,
        entry: &ConductorEntry,
        site: &SiteFile,
    ) -> Result<Self, SiteError> {
        let link = site.isolated.then(|| Link::of(number));
        let faketime = site.faketime.clone();
        set_clock(&entry.log, 0)?;
        let process = spawn(entry, link.as_ref(), faketime.as_deref())?;
        let mut conductor =
            Self { number, entry: entry.clone(), faketime, link, process, used: (0.0, 0), clock_errors: 0 };
        conductor.wait_until_ready().await?;
        Ok(conductor)
    }

    /// URL of its node API.
    pub(super) fn url(&self) -> String {
        let scheme = if self.entry.plain_http { "http" } else { "https" };
        format!("{scheme}://{}", self.api())
    }

    fn api(&self) -> SocketAddr {
        SocketAddr::from((address(self.link.as_ref()), self.entry.api_port))
    }

    /// Strikes it for a while, and brings it back.
    pub(super) async fn strike(&mut self, kind: Kind, lasts: Duration) -> Result<(), SiteError> {
        match kind {
            Kind::Killed => {
                self.used = self.usage();
                self.process.kill().ok();
                self.process.wait().ok();
                sleep(lasts).await;
                self.process = spawn(&self.entry, self.link.as_ref(), self.faketime.as_deref())?;
                self.wait_until_ready().await
            }
            Kind::Paused => {
                self.signal(Signal::SIGSTOP);
                sleep(lasts).await;
                self.signal(Signal::SIGCONT);
                Ok(())
            }
            Kind::CutOff => {
                let Some(link) = &self.link else { return Ok(()) };
                link.set(false)?;
                sleep(lasts).await;
                link.set(true)
            }
            Kind::ClockOff => {
                self.clock_errors += 1;
                let sign = if self.clock_errors.is_multiple_of(2) { -1 } else { 1 };
                set_clock(&self.entry.log, sign * CLOCK_ERROR)?;
                sleep(lasts).await;
                set_clock(&self.entry.log, 0)
            }
            _ => Ok(()),
        }
    }

    /// Seconds of a processor, and the most memory in KiB.
    pub(super) fn usage(&self) -> (f64, u64) {
        let (seconds, peak) = self.used;
        let process = self.process.id();
        (seconds + processor_seconds(process), peak.max(peak_kib(process)))
    }

    fn signal(&self, signal: Signal) {
        // One that has ended is found out by who waits for it.
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).ok();
    }

    async fn wait_until_ready(&mut self) -> Result<(), SiteError> {
        let start = Instant::now();
        if let Some(link) = &self.link {
            let process = self.process.id();
            let is_running = |process: &mut Child| matches!(process.try_wait(), Ok(None));
            while !Link::is_of_its_own(process) && is_running(&mut self.process) {
                sleep(POLL / 10).await;
            }
            // Of one that has ended already it is told below.
            if is_running(&mut self.process) {
                link.connect(process)?;
            }
        }
        while TcpStream::connect(self.api()).await.is_err() {
            let reason = match self.process.try_wait() {
                Ok(Some(status)) => format!("it has ended with {status}"),
                _ if start.elapsed() > START_LIMIT => format!("not within {} s", START_LIMIT.as_secs()),
                _ => {
                    sleep(POLL).await;
                    continue;
                }
            };
            let text = fs::read_to_string(&self.entry.log).unwrap_or_default();
            let tail = text.lines().last().unwrap_or_default().to_owned();
            let (number, url, log) = (self.number + 1, self.url(), self.entry.log.clone());
            return Err(SiteError::Conductor { number, url, reason, log, tail });
        }
        Ok(())
    }
}

/// Where a conductor is reached.
fn address(link: Option<&Link>) -> Ipv4Addr {
    link.map_or(Ipv4Addr::LOCALHOST, |link| link.address)
}

/// Starts the process, which ends with this one.
fn spawn(entry: &ConductorEntry, link: Option<&Link>, faketime: Option<&Path>) -> Result<Child, SiteError> {
    let failed = |reason: std::io::Error| SiteError::Program {
        program: entry.command.join(" "),
        reason: reason.to_string(),
    };
    let log = File::options().append(true).create(true).open(&entry.log).map_err(failed)?;
    let output = log.try_clone().map_err(failed)?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if link.is_some() {
        // It becomes the conductor, and has the number of its process.
        command.args(["unshare", "--net"]);
    }
    let address = address(link).to_string();
    command.args(entry.command.iter().map(|argument| argument.replace("{address}", &address)));
    if let Some(faketime) = faketime {
        // Only the time of day is wrong, as with a host whose clock is: no machine's monotonic clock jumps.
        command.env("LD_PRELOAD", faketime).env("FAKETIME_TIMESTAMP_FILE", clock_file(&entry.log));
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_CACHE_DURATION", "1");
    }
    command.stdin(Stdio::null()).stdout(output).stderr(log).spawn().map_err(failed)
}

fn clock_file(log: &Path) -> PathBuf {
    log.with_extension("clock")
}

/// Sets the clock of the conductor with a log, as seconds from the right time.
fn set_clock(log: &Path, seconds: i64) -> Result<(), SiteError> {
    let file = clock_file(log);
    fs::write(&file, format!("{seconds:+}\n")).map_err(|source| SiteError::Unreadable { file, source })
}
