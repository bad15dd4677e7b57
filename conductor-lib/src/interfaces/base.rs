//! What all interfaces have in common.

use super::steps::DriverStep;
use crate::model::{InterfaceKind, Node, PlannedStep, RequestedStep, StepKind};
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

    /// Runs one of its steps, or begins it. It may be begun again, when a conductor stopped meanwhile.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`], which fails the operation.
    async fn execute_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        _step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        Ok(DriverStep::Done)
    }

    /// Whether a step that was begun has ended; only asked after [`DriverStep::Polls`].
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`], which fails the operation. What might be a hiccup of the BMC is [`DriverStep::Polls`].
    async fn poll_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        _step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        Ok(DriverStep::Done)
    }
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
    /// The driver did not ask the machine, since what it was told before holds for a while: that is no failure of the
    /// machine.
    #[error(transparent)]
    NotAsked(Box<dyn std::error::Error + Send + Sync>),
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
