//! What can go wrong with a task, and with what a conductor is composed of.

mod codes;

pub use codes::{CONNECTION_ERRORS, TASK_ERRORS};

use crate::agent::AgentError;
use crate::hardware_type::{ImpossibleHardware, Unresolved};
use crate::heartbeat::Refusal;
use crate::interfaces::base::InterfaceError;
use crate::inventory::BadReport;
use crate::model::{BadValue, Event, Node, OtherInstance, ProvisionState, StepKind};

/// A request was refused or an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The node is in a state that does not allow what was asked.
    #[error("node {node} is in state {state:?}, but this needs one of: {allowed}")]
    InvalidState {
        /// Name of the node.
        node: String,
        /// State it is in.
        state: String,
        /// States that would do.
        allowed: String,
    },
    /// The node belongs to another instance.
    #[error(transparent)]
    OtherInstance(#[from] OtherInstance),
    /// A field of a request is unusable.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A heartbeat is not that of the agent this conductor talks to.
    #[error(transparent)]
    Heartbeat(#[from] Refusal),
    /// A step of an operation failed.
    #[error("{kind} step {step} failed: {reason}")]
    StepFailed {
        /// What the operation is.
        kind: StepKind,
        /// Name of the step.
        step: String,
        /// Text of the agent or of the conductor.
        reason: String,
    },
    /// What the conductor is composed of cannot work.
    #[error(transparent)]
    Hardware(#[from] ImpossibleHardware),
    /// A node has an interface that it cannot have.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// The machine could not be controlled.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The agent could not be reached or refused.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// What the conductor lends the task failed: its records, or the lease of the node. No step fails because of that:
    /// the node stays as it is recorded.
    #[error(transparent)]
    Host(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A field of a request is unusable.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), reason: reason.into() }
    }

    /// What a conductor lends the task failed.
    pub fn host(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Host(Box::new(error))
    }

    /// `event` is not allowed in the state the node is in.
    pub fn not_allowed(node: &Node, event: Event) -> Self {
        Self::wrong_state(node, ProvisionState::taking(event))
    }

    /// The node is in none of the `allowed` states.
    pub fn wrong_state(node: &Node, allowed: impl IntoIterator<Item = ProvisionState>) -> Self {
        let allowed: Vec<_> = allowed.into_iter().map(ProvisionState::as_str).collect();
        Self::InvalidState {
            node: node.label(),
            state: node.provision_state.to_string(),
            allowed: allowed.join(", "),
        }
    }
}

impl From<BadReport> for Error {
    fn from(error: BadReport) -> Self {
        Self::Invalid { field: error.field, reason: error.reason }
    }
}

impl From<BadValue> for Error {
    fn from(error: BadValue) -> Self {
        Self::Invalid { field: error.key, reason: error.reason }
    }
}
