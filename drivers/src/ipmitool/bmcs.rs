//! The BMCs of all nodes, each with its gate, and what is known of it: the cipher suite that it has, and whether it refused
//! a password.

use super::connection::Connection;
use super::error::IpmiError;
use super::program::{self, Ended, Program};
use super::sol::Reopening;
use crate::bmc::pace::{Gate, Pace};
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::process::Child;
use tokio::time::Instant;

/// Most BMCs that are remembered.
const MOST: usize = 4096;

/// How BMCs that speak IPMI are asked; the defaults are Ironic's.
#[derive(Debug, Clone)]
pub struct IpmiSettings {
    /// The program.
    pub program: String,
    /// Folder of files with secrets, for this conductor alone and while a program runs [default: the system's].
    pub runtime: Option<PathBuf>,
    /// How often each BMC is asked (`[ipmi]min_command_interval`).
    pub pace: Pace,
    /// Longest time for one command.
    pub command_timeout: Duration,
    /// How long a BMC is asked again that is busy or silent (`[ipmi]command_retry_timeout`).
    pub command_retry_timeout: Duration,
    /// Cipher suites that are tried where the usual one is not to be had, the best first.
    pub cipher_suites: Vec<u8>,
    /// How long the power may take to change; shorter than the conductor's time for a power action.
    pub power_wait: Duration,
    /// After how long a BMC is told again what it has not done.
    pub power_retry: Duration,
    /// How long a password that was refused is not tried again.
    pub credentials_pause: Duration,
    /// Longest log of a console, of which there are two, in bytes.
    pub console_log_bytes: u64,
    /// When a console that was lost is opened again.
    pub console_reopening: Reopening,
}

impl Default for IpmiSettings {
    fn default() -> Self {
        let pace = Pace {
            interval: Duration::from_secs(5),
            burst: 2,
            first_rest: Duration::from_secs(5),
            longest_rest: Duration::from_secs(30),
        };
        Self {
            program: "ipmitool".to_owned(),
            runtime: None,
            pace,
            command_timeout: Duration::from_secs(30),
            command_retry_timeout: Duration::from_secs(60),
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
    gates: Mutex<HashMap<(String, u16), Arc<Gate>>>,
    known: Mutex<HashMap<Connection, Known>>,
}

/// What is known of a user's standing at a BMC.
#[derive(Debug, Clone, Default)]
struct Known {
    cipher_suite: Option<u8>,
    refused: Option<(String, Instant)>,
}

/// The BMC of a node.
#[derive(Debug)]
pub(super) struct Bmc {
    bmcs: Bmcs,
    pub(super) connection: Connection,
    gate: Arc<Gate>,
}

impl Bmcs {
    /// None is known yet.
    pub fn new(settings: IpmiSettings) -> Self {
        let program = Program::new(settings.program.clone(), settings.runtime.clone());
        Self(Arc::new(Inner { settings, program, gates: Mutex::default(), known: Mutex::default() }))
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
        let mut gates = self.0.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() >= MOST {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        let place = (connection.address.clone(), connection.port);
        let gate = gates.entry(place).or_insert_with(|| Arc::new(Gate::new(self.0.settings.pace)));
        Ok(Bmc { bmcs: self.clone(), gate: Arc::clone(gate), connection })
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
    /// Has the BMC carry out a command, and tells what ipmitool says. One that is busy is asked again for a while.
    ///
    /// # Errors
    ///
    /// [`IpmiError`].
    pub(super) async fn run(&self, words: &[&str]) -> Result<String, IpmiError> {
        let settings = self.bmcs.settings();
        let (start, mut further) = (Instant::now(), settings.cipher_suites.iter());
        loop {
            self.check_standing()?;
            let suite = self.connection.cipher_suite.or_else(|| self.known().cipher_suite);
            let reason = match self.run_once(suite, words).await? {
                Ended::Well(said) => return Ok(said),
                Ended::WrongCredentials(reason) => return Err(self.refuse(reason)),
                Ended::NoSuchSuite(reason) if self.connection.cipher_suite.is_none() => {
                    let Some(next) = further.next() else { return Err(self.failed(words, reason)) };
                    self.change(|known| known.cipher_suite = Some(*next));
                    continue;
                }
                Ended::Busy(reason) => reason,
                Ended::NoSuchSuite(reason) | Ended::Badly(reason) => return Err(self.failed(words, reason)),
            };
            if start.elapsed() >= settings.command_retry_timeout {
                return Err(self.failed(words, reason));
            }
        }
    }

    /// Begins a command that goes on, with the file of the password, which it needs at its beginning.
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

    async fn run_once(&self, suite: Option<u8>, words: &[&str]) -> Result<Ended, IpmiError> {
        let settings = self.bmcs.settings();
        let mut flight = self.gate.pass().await;
        flight.ask().await;
        let ended =
            program::run(&self.bmcs.0.program, &self.connection, suite, words, settings.command_timeout)
                .await;
        match &ended {
            Ok(Ended::Busy(_) | Ended::Badly(_)) => flight.failed(None),
            Ok(_) | Err(_) => flight.answered(),
        }
        ended
    }

    fn known(&self) -> Known {
        self.bmcs.known().get(&self.connection).cloned().unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(self.bmcs.known().entry(self.connection.clone()).or_default());
    }

    /// Refuses in the BMC's place where it has refused the same before.
    fn check_standing(&self) -> Result<(), IpmiError> {
        match self.known().refused {
            Some((reason, until)) if Instant::now() < until => Err(self.credentials_error(reason)),
            _ => Ok(()),
        }
    }

    fn refuse(&self, reason: String) -> IpmiError {
        let until = Instant::now() + self.bmcs.settings().credentials_pause;
        self.change(|known| known.refused = Some((reason.clone(), until)));
        self.credentials_error(reason)
    }

    fn credentials_error(&self, reason: String) -> IpmiError {
        let pause = self.bmcs.settings().credentials_pause;
        IpmiError::Credentials { bmc: self.connection.label(), reason, pause }
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
