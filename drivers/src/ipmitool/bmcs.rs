//! The BMCs of all nodes, each with its rate limiter, and what is known of it: the cipher suite that it has, and whether it refused
//! a password.

use super::connection::Connection;
use super::error::IpmiError;
use super::power::STATUS;
use super::program::{self, Ended, Program};
use super::sol::Reopening;
use crate::client::rate_limit::{RateLimit, RateLimiter};
use crate::client::refusals::{May, Pauses, Refusals};
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use farrier_conductor::task::confirm_lease;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};

/// Most BMCs that are remembered.
const MOST: usize = 4096;

/// How often a command is given that fails since the BMC was busy the last time.
const MOST_ATTEMPTS: u32 = 4;

/// The source of the vendor of a BMC, and the number of requests to a BMC without an answer.
const MAKER: &[&str] = &["mc", "info"];
const QUESTIONS_FOR_MAKER: u32 = 2;

/// How BMCs that speak IPMI are asked; the defaults are Ironic's.
#[derive(Debug, Clone)]
pub struct IpmiSettings {
    /// The program.
    pub program: String,
    /// Folder of files with secrets, for this conductor alone and while a program runs [default: the system's].
    pub runtime: Option<PathBuf>,
    /// How often each BMC is asked (`[ipmi]min_command_interval`).
    pub rate_limit: RateLimit,
    /// Longest time for one command.
    pub command_timeout: Duration,
    /// How long a BMC is given a command again that failed (`[ipmi]command_retry_timeout`).
    pub command_retry_timeout: Duration,
    /// Pause before a password that was refused is tried again, for whether the refusal counts.
    pub refusal_pause: Duration,
    /// Cipher suites that are tried where the usual one is not to be had, the best first.
    pub cipher_suites: Vec<u8>,
    /// How long the power may take to change; shorter than the conductor's time for a power action.
    pub power_wait: Duration,
    /// The pause before an unfinished order is repeated.
    pub power_retry: Duration,
    /// How long a password that was refused again is not tried any more.
    pub credentials_pause: Duration,
    /// Longest log of a console, of which there are two, in bytes.
    pub console_log_bytes: u64,
    /// When a console that was lost is opened again.
    pub console_reopening: Reopening,
}

impl Default for IpmiSettings {
    fn default() -> Self {
        let rate_limit = RateLimit {
            interval: Duration::from_secs(5),
            burst: 2,
            first_backoff: Duration::from_secs(5),
            longest_backoff: Duration::from_secs(30),
        };
        Self {
            program: "ipmitool".to_owned(),
            runtime: None,
            rate_limit,
            command_timeout: Duration::from_secs(30),
            command_retry_timeout: Duration::from_secs(60),
            refusal_pause: Duration::from_secs(5),
            cipher_suites: vec![17, 3],
            power_wait: Duration::from_secs(50),
            power_retry: Duration::from_secs(15),
            credentials_pause: Duration::from_secs(300),
            console_log_bytes: 1 << 20,
            console_reopening: Reopening::default(),
        }
    }
}

/// The BMCs that speak IPMI. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Bmcs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: IpmiSettings,
    program: Program,
    rate_limiters: Mutex<HashMap<(String, u16), Arc<RateLimiter>>>,
    known: Mutex<HashMap<Connection, Known>>,
}

/// What is known of a user's standing at a BMC.
#[derive(Debug, Clone, Default)]
struct Known {
    cipher_suite: Option<u8>,
    refusals: Refusals,
    /// What it said when it refused the password the last time.
    reason: String,
    /// Who made it, as it says; nothing where that is not known.
    maker: Option<String>,
}

/// Whether a command may be given again that may have been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Yes,
    No,
}

/// The BMC of a node.
#[derive(Debug)]
pub(super) struct Bmc {
    bmcs: Bmcs,
    pub(super) connection: Connection,
    rate_limiter: Arc<RateLimiter>,
}

impl Bmcs {
    /// None is known yet.
    pub fn new(settings: IpmiSettings) -> Self {
        let program = Program::new(settings.program.clone(), settings.runtime.clone());
        Self(Arc::new(Inner { settings, program, rate_limiters: Mutex::default(), known: Mutex::default() }))
    }

    /// How they are asked.
    pub(super) fn settings(&self) -> &IpmiSettings {
        &self.0.settings
    }

    /// The BMC of a node.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`].
    pub(super) fn bmc(&self, node: &Node) -> Result<Bmc, InterfaceError> {
        let connection = Connection::read(node)?;
        let mut rate_limiters = self.0.rate_limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if rate_limiters.len() >= MOST {
            rate_limiters.retain(|_, rate_limiter| Arc::strong_count(rate_limiter) > 1);
        }
        let place = (connection.address.clone(), connection.port);
        let rate_limiter = rate_limiters
            .entry(place)
            .or_insert_with(|| Arc::new(RateLimiter::new(self.0.settings.rate_limit)));
        Ok(Bmc { bmcs: self.clone(), rate_limiter: Arc::clone(rate_limiter), connection })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Connection, Known>> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known
    }
}

impl Bmc {
    /// Runs a command on the BMC, and returns the output of ipmitool. Where that fails it is given again for a while: one answer
    /// that is lost decides nothing.
    ///
    /// # Errors
    ///
    /// [`IpmiError`].
    pub(super) async fn run(&self, words: &[&str]) -> Result<String, IpmiError> {
        self.run_for_a_while(words, Repeats::Yes).await
    }

    /// The same for a command that must not be carried out twice: it is given again where the BMC has certainly not got it.
    ///
    /// # Errors
    ///
    /// [`IpmiError`].
    pub(super) async fn run_once(&self, words: &[&str]) -> Result<String, IpmiError> {
        self.run_for_a_while(words, Repeats::No).await
    }

    async fn run_for_a_while(&self, words: &[&str], repeats: Repeats) -> Result<String, IpmiError> {
        let settings = self.bmcs.settings();
        let (start, mut attempt, mut further) = (Instant::now(), 1, settings.cipher_suites.iter());
        loop {
            let suite = self.connection.cipher_suite.or_else(|| self.known().cipher_suite);
            let reason = match self.attempt(suite, words).await? {
                Ended::Well(said) => {
                    self.change(|known| known.refusals.worked());
                    return Ok(said);
                }
                Ended::WrongCredentials(reason) => {
                    let May::BeTriedAt(at) = self.refuse(&reason) else {
                        return Err(self.credentials_error(reason, true));
                    };
                    sleep_until(at).await;
                    continue;
                }
                Ended::NoSuchSuite(reason) if self.connection.cipher_suite.is_none() => {
                    let Some(next) = further.next() else { return Err(self.failed(words, reason)) };
                    self.change(|known| known.cipher_suite = Some(*next));
                    continue;
                }
                Ended::Busy(reason) => {
                    attempt = 0;
                    reason
                }
                Ended::Unsent(reason) => reason,
                Ended::Badly(reason) if repeats == Repeats::Yes => reason,
                Ended::NoSuchSuite(reason) | Ended::Refused(reason) | Ended::Badly(reason) => {
                    return Err(self.failed(words, reason));
                }
            };
            if attempt >= MOST_ATTEMPTS || start.elapsed() >= settings.command_retry_timeout {
                return Err(self.failed(words, reason));
            }
            attempt += 1;
        }
    }

    /// Who made the BMC, in small letters: what the record says of the machine, and else what the BMC says, which counts for ever.
    /// That it does not say so counts when it came again, and for this time.
    pub(super) async fn maker(&self, node: &Node) -> Option<String> {
        if let Some(vendor) = node.properties.get("vendor").and_then(Value::as_str) {
            return Some(vendor.to_lowercase());
        }
        if let Some(maker) = self.known().maker {
            return Some(maker);
        }
        for _ in 0..QUESTIONS_FOR_MAKER {
            match self.manufacturer().await {
                Ok(maker) => {
                    let maker = maker.to_lowercase();
                    self.change(|known| known.maker = Some(maker.clone()));
                    return Some(maker);
                }
                Err(error) => tracing::debug!("{error}"),
            }
        }
        None
    }

    /// Who made the BMC, as it says.
    ///
    /// # Errors
    ///
    /// [`IpmiError`], also without a vendor.
    pub(super) async fn manufacturer(&self) -> Result<String, IpmiError> {
        let said = self.run(MAKER).await?;
        let named = said.lines().find_map(|line| line.strip_prefix("Manufacturer Name"));
        let name = named.map(|name| name.trim_start_matches([' ', ':']).trim());
        let name = name.filter(|name| !name.is_empty());
        Ok(name.ok_or_else(|| self.nonsense(MAKER, &said))?.to_owned())
    }

    /// Starts a long-running command with the file of the password, which it needs at its start.
    ///
    /// # Errors
    ///
    /// [`IpmiError::Program`].
    pub(super) fn begin(&self, words: &[&str]) -> Result<(Child, NamedTempFile), IpmiError> {
        let suite = self.connection.cipher_suite.or_else(|| self.known().cipher_suite);
        program::begin(&self.bmcs.0.program, &self.connection, suite, words)
    }

    /// What explains the end of one, by what it said.
    pub(super) fn reason(&self, said: &[u8]) -> String {
        program::reason(&self.connection, said)
    }

    async fn attempt(&self, suite: Option<u8>, words: &[&str]) -> Result<Ended, IpmiError> {
        let settings = self.bmcs.settings();
        let mut permit = self.rate_limiter.acquire().await;
        // Somebody else may have been refused meanwhile.
        loop {
            let known = self.known();
            match known.refusals.may() {
                May::BeTried => break,
                May::BeTriedAt(at) => sleep_until(at).await,
                May::Rest => return Err(self.credentials_error(known.reason, false)),
            }
        }
        permit.ask().await;
        // The power state alone is read so often that confirmations would be felt.
        if words != STATUS {
            confirm_lease().await;
        }
        let ended =
            program::run(&self.bmcs.0.program, &self.connection, suite, words, settings.command_timeout)
                .await;
        match &ended {
            Ok(Ended::Busy(_) | Ended::Unsent(_) | Ended::Badly(_)) => permit.failed(None),
            Ok(_) | Err(_) => permit.answered(),
        }
        ended
    }

    fn known(&self) -> Known {
        self.bmcs.known().get(&self.connection).cloned().unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(self.bmcs.known().entry(self.connection.clone()).or_default());
    }

    /// Records a rejected password; true if it may be retried.
    fn refuse(&self, reason: &str) -> May {
        let settings = self.bmcs.settings();
        let pauses = Pauses { again: settings.refusal_pause, rest: settings.credentials_pause };
        self.change(|known| {
            known.refusals.refused(pauses);
            reason.clone_into(&mut known.reason);
        });
        self.known().refusals.may()
    }

    fn credentials_error(&self, reason: String, is_asked: bool) -> IpmiError {
        let pause = self.bmcs.settings().credentials_pause;
        IpmiError::Credentials { bmc: self.connection.label(), reason, pause, is_asked }
    }

    fn failed(&self, words: &[&str], reason: String) -> IpmiError {
        IpmiError::Failed { bmc: self.connection.label(), command: words.join(" "), reason }
    }

    /// The BMC says something else than it should.
    pub(super) fn nonsense(&self, words: &[&str], answer: &str) -> IpmiError {
        let answer = answer.chars().filter(|character| !character.is_control()).take(200).collect();
        IpmiError::Nonsense { bmc: self.connection.label(), command: words.join(" "), answer }
    }
}
