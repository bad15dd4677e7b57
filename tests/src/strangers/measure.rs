//! What becomes of a process, and of an honest client of it, while a stranger acts.

use super::Row;
use anyhow::{Context, Result};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time for one request.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Pause of the honest client between two requests.
const PAUSE: Duration = Duration::from_millis(20);
/// For how long the honest client asks before the stranger comes.
const ALONE: Duration = Duration::from_millis(300);
/// How long an honest client may wait, in milliseconds.
const HONEST_LIMIT_MS: f64 = 2000.0;

/// What an honest client asks; whether it was answered.
pub type Ask = Arc<dyn Fn() -> bool + Send + Sync>;

/// A process, and how an honest client asks it.
pub struct Subject {
    /// What it is.
    pub process: &'static str,
    /// Its number.
    pub id: u32,
    /// What an honest client asks.
    pub ask: Ask,
}

impl Subject {
    /// Measures while a stranger acts, who may add so many KiB. What becomes of the stranger is noted.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn meets(
        &self,
        stranger: &str,
        allowed_kib: u64,
        act: impl FnOnce() -> Result<String>,
    ) -> Result<Row> {
        let alone = Honest::begin(&self.ask);
        thread::sleep(ALONE);
        let alone_ms = milliseconds(alone.longest());
        let before_kib = peak_kib(self.id)?;
        let honest = Honest::begin(&self.ask);
        let acted = act();
        let honest_ms = milliseconds(honest.longest());
        let (answer, error) = match acted {
            Ok(answer) => (answer, None),
            Err(error) => (String::new(), Some(format!("{error:#}"))),
        };
        Ok(Row {
            process: self.process.to_owned(),
            stranger: stranger.to_owned(),
            answer,
            before_kib,
            after_kib: peak_kib(self.id).with_context(|| stranger.to_owned())?,
            allowed_kib,
            alone_ms,
            honest_ms,
            honest_limit_ms: HONEST_LIMIT_MS + alone_ms,
            error,
        })
    }
}

/// The most memory that a process ever had, in KiB.
///
/// # Errors
///
/// It has ended.
pub fn peak_kib(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("the process has ended")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
    Ok(peak.context("no VmHWM: the process has ended")?.trim().parse()?)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A client that asks again and again, and notes how long it waits.
struct Honest {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Honest {
    fn begin(ask: &Ask) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (is_over, ask) = (Arc::clone(&ends), Arc::clone(ask));
        let thread = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                // One that is not answered at all has waited for as long as it may.
                longest = longest.max(if ask() { start.elapsed() } else { PATIENCE });
                thread::sleep(PAUSE);
            }
            longest
        });
        Self { ends, thread }
    }

    /// Ends, and tells the longest wait.
    fn longest(self) -> Duration {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(PATIENCE)
    }
}
