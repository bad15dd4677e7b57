//! One request and its answer.

use super::message::{Line, PROTOCOL, Progress};
use farrier_linux::process::{self, Companion};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest line that is read.
const LONGEST_LINE: u64 = 1 << 20;
/// Queued lines; a program that floods must wait.
const WAITING_LINES: usize = 16;
/// The time for a program to exit after its answer, or after `cancel`.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A program did not answer well. The text names it.
#[derive(Debug, thiserror::Error)]
#[error("hardware manager {program}: {reason}")]
pub struct ConversationError {
    program: PathBuf,
    /// Why.
    #[source]
    pub reason: Reason,
}

/// What was wrong with the answer.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It cannot be started or spoken with.
    #[error("{request}: {source}; check that it is executable and that its interpreter is in the ramdisk")]
    Start {
        /// The request.
        request: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// It ended without an answer.
    #[error("{request}: it ended without an answer ({status})")]
    Ended {
        /// The request.
        request: String,
        /// How it ended.
        status: String,
    },
    /// It wrote nothing for too long, got `cancel`, and was killed.
    #[error("{request}: it was silent for {} s and was ended", .limit.as_secs())]
    Silent {
        /// The request.
        request: String,
        /// How long it may be silent.
        limit: Duration,
    },
    /// A line is not what the protocol says.
    #[error("{request}: it wrote {line:?}, which is none of the protocol's lines ({why})")]
    Garbage {
        /// The request.
        request: String,
        /// The beginning of the line.
        line: String,
        /// What is wrong with it.
        why: String,
    },
    /// It reports a failure.
    #[error("{request}: {message}")]
    Failed {
        /// The request.
        request: String,
        /// What it says.
        message: String,
    },
    /// It cannot do this on this machine.
    #[error("{request}: not on this machine: {why}")]
    Incompatible {
        /// The request.
        request: String,
        /// What it says.
        why: String,
    },
}

/// A request to a program.
#[derive(Debug)]
pub struct Request<'a> {
    /// The program.
    pub program: &'a Path,
    /// What is asked: `describe`, `evaluate`, `list_steps` or `run_step`.
    pub name: &'static str,
    /// What goes with it.
    pub content: Value,
    /// How long it may be silent.
    pub silence: Duration,
    /// Whether that is the time for the whole answer, whatever is said in between.
    pub is_total: bool,
}

impl Request<'_> {
    /// Starts the program, asks, and returns what it answers. The program has ended then.
    ///
    /// # Errors
    ///
    /// [`ConversationError`].
    pub fn ask(&self, progress: &mut dyn FnMut(Progress)) -> Result<Value, ConversationError> {
        let fail = |reason| ConversationError { program: self.program.to_owned(), reason };
        self.converse(progress).map_err(fail)
    }

    fn converse(&self, progress: &mut dyn FnMut(Progress)) -> Result<Value, Reason> {
        let started = |source| Reason::Start { request: self.label(), source };
        let mut companion = process::accompany(self.program).map_err(started)?;
        let (mut input, output) = companion.pipes().map_err(started)?;
        let lines = read_lines(output);
        // A program that does not read its input is found out by its answer.
        self.say(&mut input, self.name, &self.content).ok();
        match self.listen(&lines, progress) {
            Ok(line) => {
                drop(input);
                self.conclude(line, wait(&mut companion))
            }
            Err(Reason::Silent { request, limit }) => {
                self.say(&mut input, "cancel", &json!({})).ok();
                drop(input);
                wait(&mut companion);
                Err(Reason::Silent { request, limit })
            }
            Err(Reason::Ended { request, .. }) => {
                Err(Reason::Ended { request, status: describe(wait(&mut companion)) })
            }
            Err(other) => Err(other),
        }
    }

    fn say(&self, input: &mut ChildStdin, request: &str, content: &Value) -> io::Result<()> {
        let mut message = json!({"protocol": PROTOCOL, "request": request});
        if let (Some(message), Some(content)) = (message.as_object_mut(), content.as_object()) {
            message.extend(content.clone());
        }
        input.write_all(format!("{message}\n").as_bytes())?;
        input.flush()
    }

    /// Reads lines until one is the answer.
    fn listen(&self, lines: &Receiver<Vec<u8>>, progress: &mut dyn FnMut(Progress)) -> Result<Line, Reason> {
        let started = Instant::now();
        loop {
            let spent = if self.is_total { started.elapsed() } else { Duration::ZERO };
            let bytes = match lines.recv_timeout(self.silence.saturating_sub(spent)) {
                Ok(bytes) => bytes,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Reason::Silent { request: self.label(), limit: self.silence });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Reason::Ended { request: self.label(), status: String::new() });
                }
            };
            match serde_json::from_slice(&bytes) {
                Ok(Line::Progress(one)) => progress(one),
                Ok(answer) => return Ok(answer),
                Err(error) => return Err(self.garbage(&bytes, error)),
            }
        }
    }

    /// An answer counts when the program ended well after it.
    fn conclude(&self, answer: Line, status: Option<ExitStatus>) -> Result<Value, Reason> {
        match answer {
            Line::Error(failure) => Err(Reason::Failed { request: self.label(), message: failure.message }),
            Line::Incompatible(why) => Err(Reason::Incompatible { request: self.label(), why }),
            Line::Result(value) if status.is_some_and(|status| status.success()) => Ok(value),
            Line::Result(_) | Line::Progress(_) => Err(Reason::Failed {
                request: self.label(),
                message: format!("it answered, but did not end well ({})", describe(status)),
            }),
        }
    }

    fn garbage(&self, bytes: &[u8], error: serde_json::Error) -> Reason {
        let line = String::from_utf8_lossy(bytes).chars().take(120).collect();
        Reason::Garbage { request: self.label(), line, why: error.to_string() }
    }

    fn label(&self) -> String {
        match self.content["step"].as_str() {
            Some(step) => format!("step {step}"),
            None => self.name.to_owned(),
        }
    }
}

impl ConversationError {
    /// Names what is wrong with an answer that came well.
    pub(super) fn garbage(program: &Path, request: &str, answer: &Value, why: String) -> Self {
        let line = answer.to_string().chars().take(120).collect();
        Self {
            program: program.to_owned(),
            reason: Reason::Garbage { request: request.to_owned(), line, why },
        }
    }
}

/// Lines as they come, until the program closes its output; a line that is too long comes cut, and is
/// garbage.
fn read_lines(output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(WAITING_LINES);
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            match output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(_) => {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receiver
}

/// Waits a little for the end; whatever is left of the program goes when it is dropped.
fn wait(companion: &mut Companion) -> Option<ExitStatus> {
    let deadline = Instant::now() + GRACE;
    loop {
        match companion.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
            Ok(None) | Err(_) => return None,
        }
    }
}

fn describe(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "it had to be ended".to_owned(), |status| status.to_string())
}
