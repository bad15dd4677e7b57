//! Steps, and the kinds of operations that consist of them (section 3).

use crate::model::states::{Family, ProvisionState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

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

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a step is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId {
    /// Interface the step belongs to.
    pub interface: String,
    /// Name.
    pub step: String,
}

impl StepId {
    /// The step of an interface.
    pub fn new(interface: impl Into<String>, step: impl Into<String>) -> Self {
        Self { interface: interface.into(), step: step.into() }
    }
}

/// As operators write it: `interface.step`.
impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.interface, self.step)
    }
}

/// A step that an operator, or a deploy template, asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedStep {
    /// What it is known by.
    #[serde(flatten)]
    pub id: StepId,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// Its place among the others, which only steps of a deployment have; 0 disables it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
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
    /// Whether the agent runs it, so that a fresh agent means that it was cut off.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub in_band: bool,
    /// Whether the agent wants its machine rebooted after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reboot_requested: bool,
    /// Whether an operator wants the operation to end when this step has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abort_after: bool,
}

impl PlannedStep {
    /// A step of the conductor or its driver, without arguments, which cannot be aborted, for which the ramdisk must
    /// run.
    pub fn new(interface: impl Into<String>, step: impl Into<String>, priority: i64) -> Self {
        Self {
            interface: interface.into(),
            step: step.into(),
            priority,
            args: Map::new(),
            abortable: false,
            requires_ramdisk: true,
            in_band: false,
            reboot_requested: false,
            abort_after: false,
        }
    }

    /// What it is known by.
    pub fn id(&self) -> StepId {
        StepId::new(&self.interface, &self.step)
    }
}

fn yes() -> bool {
    true
}
