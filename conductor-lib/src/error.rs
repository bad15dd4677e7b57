//! What can go wrong with a request to the conductor.

use crate::agent::AgentError;
use crate::evidence::log_files::KeptLogError;
use crate::hardware_type::{ImpossibleHardware, Unresolved};
use crate::heartbeat::Refusal;
use crate::interfaces::base::InterfaceError;
use crate::model::{BadValue, Event, Forbidden, OtherInstance, ProvisionState, ResourceKind, StepKind};
use crate::store::StoreError;

/// A request was refused or an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No node has this name or identity.
    #[error("node {0:?} does not exist; `farrier node list` shows those that do")]
    NodeNotFound(String),
    /// No port has this name or identity.
    #[error("port {0:?} does not exist; GET /v1/ports shows those that do")]
    PortNotFound(String),
    /// No allocation has this name or identity.
    #[error("allocation {0:?} does not exist; GET /v1/allocations shows those that do")]
    AllocationNotFound(String),
    /// No plain resource of a kind has this name or identity.
    #[error("{kind} {id:?} does not exist; list those that do")]
    ResourceNotFound {
        /// What it would be.
        kind: ResourceKind,
        /// The name or identity.
        id: String,
    },
    /// A lookup matches no node that waits for its agent. Why is not told, so that nobody learns
    /// which addresses exist (contract 13.19).
    #[error("no node that waits for its agent matches; enrol the machine and start an operation first")]
    LookupFailed,
    /// A flag of the node forbids it.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
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
    /// The machine is on, or may be on, and the change is for machines that are off.
    #[error(
        "the requested action \"{action}\" can not be performed on node \"{node}\" while it is in state \"{state}\"; \
         power it off first"
    )]
    PoweredOn {
        /// What was asked for.
        action: String,
        /// Name of the node.
        node: String,
        /// Power state of the machine.
        state: String,
    },
    /// The node belongs to another instance.
    #[error(transparent)]
    OtherInstance(#[from] OtherInstance),
    /// Something else needs what was to be changed.
    #[error("{what} is in use: {reason}")]
    InUse {
        /// What was to be changed.
        what: String,
        /// Who needs it, and what ends that.
        reason: String,
    },
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
    /// Logs of ramdisks could not be read.
    #[error(transparent)]
    Logs(#[from] KeptLogError),
    /// Node records could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// A field of a request is unusable.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), reason: reason.into() }
    }

    /// `event` is not allowed in the state the node is in.
    pub(crate) fn not_allowed(node: &crate::model::Node, event: Event) -> Self {
        Self::wrong_state(node, ProvisionState::taking(event))
    }

    /// The node is in none of the `allowed` states.
    pub(crate) fn wrong_state(
        node: &crate::model::Node,
        allowed: impl IntoIterator<Item = ProvisionState>,
    ) -> Self {
        let allowed: Vec<_> = allowed.into_iter().map(ProvisionState::as_str).collect();
        Self::InvalidState {
            node: node.label(),
            state: node.provision_state.to_string(),
            allowed: allowed.join(", "),
        }
    }
}

impl From<BadValue> for Error {
    fn from(error: BadValue) -> Self {
        Self::Invalid { field: error.key, reason: error.reason }
    }
}
