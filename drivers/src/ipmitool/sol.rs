//! Serial over LAN: one process of ipmitool for each console that is open, which is begun again when it ends, after
//! growing pauses. What it says goes into the [log](super::ring) of the console.
//!
//! Before each beginning the BMC is asked for its settings like for anything else: so a password that it refuses is not
//! tried again and again, and its cipher suite is known.

use super::bmcs::Bmc;
use super::ring::Ring;
use rand::Rng;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const SETTINGS: &[&str] = &["sol", "info"];
const ACTIVATE: &[&str] = &["sol", "activate"];

/// Most things that wait to be typed.
const TYPED_AHEAD: usize = 64;

/// The time for ipmitool to exit: it releases the console, which a BMC gives to one client.
const FAREWELL: Duration = Duration::from_secs(3);

/// Most bytes that are kept of what it says of itself.
const LAST_SAID: usize = 4096;

/// When a console that was lost is opened again.
#[derive(Debug, Clone, Copy)]
pub struct Reopening {
    /// The first pause.
    pub first: Duration,
    /// The longest one.
    pub longest: Duration,
}

impl Default for Reopening {
    fn default() -> Self {
        Self { first: Duration::from_secs(2), longest: Duration::from_secs(120) }
    }
}

impl Reopening {
    /// The pause after so many failures in a row.
    fn pause(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest).mul_f64(rand::rng().random_range(0.75..1.0))
    }
}

/// A console that is open.
#[derive(Debug)]
pub(super) struct Console {
    typed: Sender<Vec<u8>>,
    kept: JoinHandle<()>,
}

impl Console {
    /// Opens one, whose log this is.
    pub(super) fn open(bmc: Bmc, log: Ring, reopening: Reopening) -> Self {
        let (typed, typing) = channel(TYPED_AHEAD);
        Self { typed, kept: tokio::spawn(keep(bmc, log, reopening, typing)) }
    }

    /// Types something; false where the console is not there, or does not follow.
    pub(super) fn write(&self, typed: &[u8]) -> bool {
        self.typed.try_send(typed.to_vec()).is_ok()
    }

    /// Closes it.
    pub(super) async fn close(self) {
        drop(self.typed);
        let mut kept = self.kept;
        if timeout(FAREWELL * 2, &mut kept).await.is_err() {
            kept.abort();
        }
    }
}

/// Keeps a console open until the input ends.
async fn keep(bmc: Bmc, mut log: Ring, reopening: Reopening, mut typing: Receiver<Vec<u8>>) {
    let (mut failures, label) = (0, bmc.connection.label());
    loop {
        let begun = Instant::now();
        let reason = tokio::select! {
            asked = bmc.run(SETTINGS) => match asked {
                Ok(_) => run(&bmc, &mut log, &mut typing).await,
                Err(error) => Some(error.to_string()),
            },
            () = nobody_types(&mut typing) => None,
        };
        let Some(reason) = reason else { return };
        failures = if begun.elapsed() > reopening.longest { 1 } else { failures + 1 };
        let pause = reopening.pause(failures);
        tracing::info!(bmc = %label, "the console session ended: {reason}; reconnecting in {} s", pause.as_secs_f64());
        note(&mut log, &format!("the console session ended: {reason}"));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = nobody_types(&mut typing) => return,
        }
    }
}

/// Waits until the input ends. What is typed meanwhile is lost, as at a machine that is off.
async fn nobody_types(typing: &mut Receiver<Vec<u8>>) {
    while typing.recv().await.is_some() {}
}

/// Adds a line of the conductor's own, which stands apart from what the machine says.
fn note(log: &mut Ring, text: &str) {
    write(log, format!("\r\n[farrier: {text}]\r\n").as_bytes());
}

/// A log that cannot be written to ends no console.
fn write(log: &mut Ring, bytes: &[u8]) {
    if let Err(error) = log.write(bytes) {
        tracing::warn!("the log of a console cannot be written: {error}");
    }
}

/// Runs ipmitool once, and returns the reason of its end; nothing for a requested end.
async fn run(bmc: &Bmc, log: &mut Ring, typing: &mut Receiver<Vec<u8>>) -> Option<String> {
    let (mut child, _password) = match bmc.begin(ACTIVATE) {
        Ok(begun) => begun,
        Err(error) => return Some(error.to_string()),
    };
    let (Some(mut input), Some(mut output), Some(mut errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Some("ipmitool has no input and output".to_owned());
    };
    let (mut said, mut error, mut last) = ([0; 4096], [0; 1024], Vec::new());
    let (mut escaping, mut is_silent) = (Escaping::default(), false);
    loop {
        tokio::select! {
            read = output.read(&mut said) => match read {
                Ok(count @ 1..) => write(log, &said[..count]),
                _ => break,
            },
            read = errors.read(&mut error), if !is_silent => match read {
                Ok(count @ 1..) => {
                    last.extend_from_slice(&error[..count]);
                    last.drain(..last.len().saturating_sub(LAST_SAID));
                }
                _ => is_silent = true,
            },
            typed = typing.recv() => match typed {
                Some(typed) => {
                    if input.write_all(&escaping.escaped(&typed)).await.is_err() {
                        break;
                    }
                }
                None => {
                    // The end of its input is the order to leave.
                    drop(input);
                    leave(&mut child).await;
                    return None;
                }
            },
        }
    }
    leave(&mut child).await;
    Some(bmc.reason(&last))
}

/// Waits for a process that is about to end; one that does not is killed when it is dropped.
async fn leave(child: &mut Child) {
    if timeout(FAREWELL, child.wait()).await.is_err() {
        tracing::debug!("ipmitool does not leave its console");
    }
}

/// What stands at the beginning of a line for an order to ipmitool, and twice for itself.
const ESCAPE: u8 = b'~';

/// Has nothing that is typed be an order to ipmitool.
#[derive(Debug)]
struct Escaping {
    is_at_start: bool,
}

impl Default for Escaping {
    fn default() -> Self {
        Self { is_at_start: true }
    }
}

impl Escaping {
    fn escaped(&mut self, typed: &[u8]) -> Vec<u8> {
        let mut escaped = Vec::with_capacity(typed.len());
        for byte in typed {
            if self.is_at_start && *byte == ESCAPE {
                escaped.push(ESCAPE);
            }
            escaped.push(*byte);
            self.is_at_start = matches!(byte, b'\r' | b'\n');
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_typed_is_an_order_to_ipmitool() {
        let mut escaping = Escaping::default();
        for (typed, expected) in
            [("~.", "~~."), ("a~.\n", "a~.\n"), ("~B\r", "~~B\r"), ("", ""), ("~", "~~"), ("~", "~")]
        {
            assert_eq!(escaping.escaped(typed.as_bytes()), expected.as_bytes(), "{typed}");
        }
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let reopening = Reopening { first: Duration::from_secs(2), longest: Duration::from_secs(60) };
        for (failures, most) in [(1, 2), (2, 4), (3, 8), (6, 60), (40, 60)] {
            let pause = reopening.pause(failures).as_secs_f64();
            assert!((0.75 * f64::from(most)..=f64::from(most)).contains(&pause), "{failures}: {pause}");
        }
    }
}
