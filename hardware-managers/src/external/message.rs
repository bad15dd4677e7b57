//! What is said on the lines.

use farrier_protocol::step::{ArgumentInfo, Phase};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the protocol, in every request.
pub const PROTOCOL: u32 = 1;
/// Seconds a step may be silent when it does not say.
const DEFAULT_SILENCE: u64 = 600;

/// A line of the program: exactly one of these.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Line {
    /// The answer.
    Result(Value),
    /// It failed.
    Error(Failure),
    /// It cannot do this on this machine; another manager may.
    Incompatible(String),
    /// It continues.
    Progress(Progress),
}

/// Why something failed.
#[derive(Debug, Deserialize)]
pub struct Failure {
    /// For the operator: what happened, to what, and what to do next.
    pub message: String,
}

/// How far a step is.
#[derive(Debug, Deserialize)]
pub struct Progress {
    /// Hundredths that are done.
    pub percent: Option<u8>,
    /// What is being done.
    pub text: Option<String>,
}

/// Who the manager is.
#[derive(Debug, Deserialize)]
pub struct Description {
    /// Key of its steps on the wire.
    pub class_name: String,
    /// Key of its version on the wire.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How well it knows the machine.
#[derive(Debug, Deserialize)]
pub struct Evaluation {
    /// 0 none, 1 generic, 2 mainline, 3 and up service provider.
    pub support: u32,
}

/// Its steps.
#[derive(Debug, Deserialize)]
pub struct StepList {
    /// Each name once.
    pub steps: Vec<ListedStep>,
}

/// One step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedStep {
    /// Name.
    pub step: String,
    /// Interface it belongs to.
    #[serde(default = "deploy")]
    pub interface: String,
    /// The phases it exists in, by their words, with its place in an automatic run.
    pub priorities: BTreeMap<PhaseName, i64>,
    /// Whether the machine must be rebooted afterwards.
    #[serde(default)]
    pub reboot_requested: bool,
    /// Whether an operator may abort it while cleaning.
    #[serde(default)]
    pub abortable: bool,
    /// Arguments by name.
    #[serde(default)]
    pub arguments: BTreeMap<String, ArgumentInfo>,
    /// Seconds without a line after which it counts as hanging.
    #[serde(default = "default_silence")]
    pub silence_seconds: u64,
}

/// The word of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseName {
    /// Between two users.
    Clean,
    /// For a new user.
    Deploy,
    /// While in use.
    Service,
}

impl From<PhaseName> for Phase {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Clean => Self::Clean,
            PhaseName::Deploy => Self::Deploy,
            PhaseName::Service => Self::Service,
        }
    }
}

fn deploy() -> String {
    "deploy".to_owned()
}

fn default_silence() -> u64 {
    DEFAULT_SILENCE
}
