//! Steps, and the kinds of operations that consist of them (section 3).

use super::states::{Family, ProvisionState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The operations that run steps in the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// Clean steps, automated or by hand.
    Clean,
    /// Deploy steps.
    Deploy,
    /// Service steps.
    Service,
}

impl StepKind {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Clean, Self::Deploy, Self::Service];

    /// The kind of steps that run in a state, at rest none.
    pub fn of(state: ProvisionState) -> Option<Self> {
        match state.family()? {
            Family::Clean => Some(Self::Clean),
            Family::Deploy => Some(Self::Deploy),
            Family::Service => Some(Self::Service),
            _ => None,
        }
    }

    /// The word in names of commands and keys, such as `get_<kind>_steps`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Deploy => "deploy",
            Self::Service => "service",
        }
    }
}

/// A step of the plan of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Interface the step belongs to; with the name it is the identity.
    pub interface: String,
    /// Name of the step.
    pub step: String,
    /// Place in the plan, highest first.
    pub priority: i64,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// Whether an operator may abort it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abortable: bool,
    /// Whether the ramdisk must run.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub requires_ramdisk: bool,
}

impl PlannedStep {
    /// A step without arguments, which nobody may abort, for which the ramdisk must run.
    pub fn new(interface: impl Into<String>, step: impl Into<String>, priority: i64) -> Self {
        Self {
            interface: interface.into(),
            step: step.into(),
            priority,
            args: Map::new(),
            abortable: false,
            requires_ramdisk: true,
        }
    }
}

fn yes() -> bool {
    true
}
