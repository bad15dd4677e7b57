//! What all interfaces have in common.

use super::outcome::DriverStep;
use crate::model::{BadValue, InterfaceKind, Node, PlannedStep, RequestedStep, StepKind};
use crate::plan::KnownStep;
use async_trait::async_trait;

/// Keys of `driver_info`, each with what it means.
pub type Properties = &'static [(&'static str, &'static str)];

/// What all interfaces have in common.
#[async_trait]
pub trait Interface: Send + Sync {
    /// The keys of `driver_info` that it reads.
    fn get_properties(&self) -> Properties {
        &[]
    }

    /// Checks what the record says about the machine, without touching it.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] for the first key that is missing or unusable.
    async fn validate(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    /// The steps that it runs itself, out of band, in an operation of this kind (section 3.4). They bear the name of
    /// its kind of interface, and win over steps of the agent with the same names.
    fn steps(&self, _kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        Vec::new()
    }

    /// Checks one of its steps, before the machine is touched for the operation that has it.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`], which fails the operation.
    async fn validate_step(&self, _node: &Node, _step: &RequestedStep) -> Result<(), InterfaceError> {
        Ok(())
    }

    /// Runs one of its steps, or begins it. It may be begun again, when a conductor stopped meanwhile. An interface that
    /// lists steps has this method: nothing is done by default, and nothing counts as done.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`], which fails the operation.
    async fn execute_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        Err(not_implemented(step, "is listed by its interface, which cannot execute it"))
    }

    /// Whether a step that was begun has ended; only asked after [`DriverStep::Polls`], by which an interface says that it
    /// has this method.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`], which fails the operation. What might be a hiccup of the BMC is [`DriverStep::Polls`].
    async fn poll_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        Err(not_implemented(step, "must be polled, which its interface does not support"))
    }
}

/// A step for which an interface lacks a method.
fn not_implemented(step: &PlannedStep, lacks: &str) -> InterfaceError {
    let reason = format!("{lacks}; this is a defect of the driver, which its author has to mend");
    InterfaceError::invalid(&format!("step {}", step.id()), reason)
}

/// An interface could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// A value of `driver_info` is missing or unusable.
    #[error("driver_info {key}: {reason}")]
    DriverInfo {
        /// The key.
        key: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Another field of the node is missing or unusable.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Something else needs what was to be changed.
    #[error("{what} is in use: {reason}")]
    InUse {
        /// What was to be changed.
        what: String,
        /// Who needs it, and what ends that.
        reason: String,
    },
    /// The interface does not do this.
    #[error("{what} is not supported; choose another {kind}_interface for the node")]
    Unsupported {
        /// Kind of the interface.
        kind: InterfaceKind,
        /// The method.
        what: &'static str,
    },
    /// The driver failed; the text names the machine and what to look at.
    #[error(transparent)]
    Driver(Box<dyn std::error::Error + Send + Sync>),
    /// The driver did not ask the machine, since an earlier answer holds for a while: that is no failure of the
    /// machine.
    #[error(transparent)]
    NotAsked(Box<dyn std::error::Error + Send + Sync>),
}

/// A value of the record cannot be used.
impl From<BadValue> for InterfaceError {
    fn from(error: BadValue) -> Self {
        Self::Invalid { field: error.key, reason: error.reason }
    }
}

impl InterfaceError {
    /// A value of `driver_info` is missing or unusable.
    pub fn driver_info(key: &str, reason: impl Into<String>) -> Self {
        Self::DriverInfo { key: key.to_owned(), reason: reason.into() }
    }

    /// Another field of the node is missing or unusable.
    pub fn invalid(field: &str, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.to_owned(), reason: reason.into() }
    }

    /// The driver failed.
    pub fn driver(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Driver(Box::new(error))
    }

    /// The driver did not ask the machine.
    pub fn not_asked(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::NotAsked(Box::new(error))
    }

    /// An interface of this kind does not do this.
    pub fn unsupported<T>(kind: InterfaceKind, what: &'static str) -> Result<T, Self> {
        Err(Self::Unsupported { kind, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewNode, Node};
    use time::OffsetDateTime;

    struct Forgetful;

    impl Interface for Forgetful {}

    #[tokio::test]
    async fn h4_a_step_that_an_interface_lists_and_cannot_execute_is_not_done() {
        let node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        let step = PlannedStep::new("vendor", "polish", 0);
        let executed = Forgetful.execute_step(StepKind::Clean, &node, &step).await.unwrap_err().to_string();
        let polled = Forgetful.poll_step(StepKind::Clean, &node, &step).await.unwrap_err().to_string();
        for error in [executed, polled] {
            assert!(error.starts_with("step vendor.polish: ") && error.contains("its author"), "{error}");
        }
    }
}
