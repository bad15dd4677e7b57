//! Where log lines go.

use crate::log_file::{self, LogFile};
use farrier_linux::console::Consoles;
use farrier_linux::sysfs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry, reload};

/// Destination of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Standard error; for running by hand.
    Stderr,
    /// Every console named on the kernel command line, and the log that is kept for collection.
    Consoles,
}

/// Changes how much is logged.
type Switch = Box<dyn Fn(Targets) + Send + Sync>;
static SWITCH: OnceLock<Switch> = OnceLock::new();

/// The last warning or error on the consoles, for those who look at them later.
static TROUBLE: Mutex<String> = Mutex::new(String::new());
/// Whether this process writes to the consoles.
static OWNS_CONSOLES: AtomicBool = AtomicBool::new(false);

/// Whether the consoles are this process's to write to.
pub fn owns_consoles() -> bool {
    OWNS_CONSOLES.load(Ordering::Relaxed)
}

/// The last warning or error that went to the consoles, with its time; `-` before there was one.
pub fn last_trouble() -> String {
    let last = TROUBLE.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_empty() { "-".to_owned() } else { last.clone() }
}

/// Starts logging. Repeating the call has no effect.
pub fn start(target: Target) {
    OWNS_CONSOLES.store(target == Target::Consoles, Ordering::Relaxed);
    match target {
        Target::Stderr => start_with(std::io::stderr),
        Target::Consoles => start_with(ConsoleWriter::open()),
    }
}

fn start_with<W>(writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(filter(false));
    let lines = fmt::layer().with_ansi(false).with_target(false).with_timer(KernelClock).with_writer(writer);
    if registry().with(filter).with(lines).try_init().is_ok() {
        // Reloading fails only when the subscriber is gone, and it is never dropped.
        SWITCH.set(Box::new(move |filter| drop(handle.reload(filter)))).ok();
    }
}

/// Logs more or less from now on: the settings are known later than the first line is logged.
pub fn set_debug(debug: bool) {
    if let Some(switch) = SWITCH.get() {
        switch(filter(debug));
    }
}

fn filter(debug: bool) -> Targets {
    if !debug {
        return Targets::new().with_default(LevelFilter::INFO);
    }
    // What these tell of every request is of use to those who write them.
    let others = ["hyper", "reqwest", "rustls"].map(|target| (target, LevelFilter::INFO));
    Targets::new().with_default(LevelFilter::DEBUG).with_targets(others)
}

/// Seconds since the kernel started, as in the kernel's own messages.
struct KernelClock;

impl FormatTime for KernelClock {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "[{:12.6}]", sysfs::uptime().as_secs_f64())
    }
}

/// Writes whole lines to all consoles and to the kept log.
struct ConsoleWriter {
    consoles: Mutex<Consoles>,
    kept: LogFile,
}

impl ConsoleWriter {
    fn open() -> Self {
        let kept = LogFile::at(Path::new(log_file::DEFAULT_PATH));
        Self { consoles: Mutex::new(Consoles::open()), kept }
    }
}

impl<'a> MakeWriter<'a> for ConsoleWriter {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { writer: self, text: Vec::new(), is_trouble: false }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        Line { writer: self, text: Vec::new(), is_trouble: *metadata.level() <= Level::WARN }
    }
}

/// One log line, written when it is complete so that lines of two processes do not mix.
struct Line<'a> {
    writer: &'a ConsoleWriter,
    text: Vec<u8>,
    is_trouble: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if self.is_trouble {
            let text = String::from_utf8_lossy(&self.text).trim().to_owned();
            *TROUBLE.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        let line = [b"farrier: ", self.text.as_slice()].concat();
        let mut consoles = self.writer.consoles.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        consoles.write_all(&line).ok();
        // Under the lock, so that lines of this process stay in order. There is nowhere to report a
        // failure to.
        self.writer.kept.append(&self.text).ok();
    }
}
