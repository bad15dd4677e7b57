//! What can go wrong with a request to the conductor.

pub(crate) mod codes;
mod status;

pub(crate) use codes::Reason;
pub use codes::{ENDED_OPERATIONS, RECORD_ERRORS, STORE_ERRORS, TAKEN};

use crate::evidence::log_files::KeptLogError;
use crate::placement::{MembershipError, Unserved};
use crate::records::{Forbidden, ResourceKind};
use crate::store::StoreError;
use farrier_conductor::Error as LibraryError;
use farrier_conductor::agent::AgentError;
use farrier_conductor::hardware_type::{ImpossibleHardware, Unresolved};
use farrier_conductor::heartbeat::Refusal;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::inventory::BadReport;
use farrier_conductor::model::{BadValue, Event, Node, OtherInstance, ProvisionState};

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
    /// A lookup matches no node that waits for its agent. The reason is not disclosed, so that no
    /// client learns which addresses exist (contract 13.19).
    #[error("no node that waits for its agent matches; enrol the machine and start an operation first")]
    LookupFailed,
    /// A flag of the node forbids it.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
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
    /// Something else needs what was to be changed.
    #[error("{what} is in use: {reason}")]
    InUse {
        /// What was to be changed.
        what: String,
        /// Who needs it, and what ends that.
        reason: String,
    },
    /// Logs of ramdisks could not be read.
    #[error(transparent)]
    Logs(#[from] KeptLogError),
    /// Node records could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process that runs has the name of the conductor.
    #[error(
        "conductor name {0:?} is taken by another process that runs over this store; stop that one, or give this one \
         another --conductor-name"
    )]
    NameTaken(String),
    /// No conductor leads the node.
    #[error("node {node} is led by no conductor: {reason}")]
    Unserved {
        /// Its name.
        node: String,
        /// Why none does.
        reason: Unserved,
    },
    /// Another conductor leads the node, and it alone can do what was asked for.
    #[error("node {node} is led by conductor {conductor}, and only that one can do this; ask it")]
    LedElsewhere {
        /// Name of the node.
        node: String,
        /// Name of the conductor.
        conductor: String,
    },
    /// The conductor stops, and takes no order any more.
    #[error("conductor {0} stops and takes no more orders; try again when it runs, or ask another one")]
    Stopping(String),
    /// A task failed, or what it was to do is refused.
    #[error(transparent)]
    Task(LibraryError),
}

impl Error {
    /// A field of a request is unusable.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Task(LibraryError::invalid(field, reason))
    }

    /// `event` is not allowed in the state the node is in.
    pub(crate) fn not_allowed(node: &Node, event: Event) -> Self {
        Self::Task(LibraryError::not_allowed(node, event))
    }

    /// The node is in none of the `allowed` states.
    pub(crate) fn wrong_state(node: &Node, allowed: impl IntoIterator<Item = ProvisionState>) -> Self {
        Self::Task(LibraryError::wrong_state(node, allowed))
    }
}

/// What failed a task may be the store, which it was lent.
impl From<LibraryError> for Error {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Host(error) => match error.downcast::<StoreError>() {
                Ok(error) => Self::Store(*error),
                Err(error) => Self::Task(LibraryError::Host(error)),
            },
            error => Self::Task(error),
        }
    }
}

/// What a task is lent fails it by the errors of the store.
impl From<StoreError> for LibraryError {
    fn from(error: StoreError) -> Self {
        Self::host(error)
    }
}

impl From<MembershipError> for Error {
    fn from(error: MembershipError) -> Self {
        match error {
            MembershipError::NameTaken(name) => Self::NameTaken(name),
            MembershipError::Store(error) => Self::Store(error),
        }
    }
}

macro_rules! errors_of_tasks {
    ($($error:ident,)*) => {
        $(
            impl From<$error> for Error {
                fn from(error: $error) -> Self {
                    Self::Task(error.into())
                }
            }
        )*
    };
}

errors_of_tasks! {
    AgentError, BadReport, BadValue, ImpossibleHardware, InterfaceError, OtherInstance, Refusal, Unresolved,
}
