//! What a driver does for the conductor.

use crate::model::{Node, PowerState};
use async_trait::async_trait;
use farrier_media::KernelParameters;
use std::path::PathBuf;

/// What a machine starts from at its next power-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boot {
    /// `deploy_kernel` and `deploy_ramdisk` of the node, with these kernel parameters.
    Ramdisk(KernelParameters),
    /// The deployed system on the machine's own disk, from now on.
    Disk,
}

/// A machine could not be controlled.
#[derive(Debug, thiserror::Error)]
pub enum PowerError {
    /// A value of `driver_info` is missing or unusable.
    #[error("driver_info {key}: {reason}")]
    DriverInfo {
        /// The key.
        key: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The driver failed; the text names the machine and what to look at.
    #[error(transparent)]
    Driver(Box<dyn std::error::Error + Send + Sync>),
}

impl PowerError {
    /// A value of `driver_info` is missing or unusable.
    pub fn driver_info(key: &str, reason: impl Into<String>) -> Self {
        Self::DriverInfo { key: key.to_owned(), reason: reason.into() }
    }

    /// The driver failed.
    pub fn driver(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Driver(Box::new(error))
    }
}

/// Power and boot control of one kind of machine (conductor contract 9.1 and 9.2).
///
/// Calls that change a machine never overlap: the conductor holds the node's lease around each. Its power state is
/// read at any time.
#[async_trait]
pub trait PowerInterface: Send + Sync {
    /// Checks `driver_info` without touching the machine.
    ///
    /// # Errors
    ///
    /// [`PowerError::DriverInfo`] for the first key that is missing or unusable.
    async fn validate(&self, node: &Node) -> Result<(), PowerError>;

    /// The power state as the machine tells it now.
    ///
    /// # Errors
    ///
    /// [`PowerError::Driver`] when the machine cannot be asked.
    async fn power_state(&self, node: &Node) -> Result<PowerState, PowerError>;

    /// Powers the machine on; nothing happens when it is on.
    ///
    /// # Errors
    ///
    /// Any [`PowerError`].
    async fn power_on(&self, node: &Node) -> Result<(), PowerError>;

    /// Powers the machine off at once and returns when it is off; nothing happens when it is off.
    ///
    /// # Errors
    ///
    /// [`PowerError::Driver`] when the machine stays on.
    async fn power_off(&self, node: &Node) -> Result<(), PowerError>;

    /// Powers the machine off and on.
    ///
    /// # Errors
    ///
    /// Any [`PowerError`].
    async fn reboot(&self, node: &Node) -> Result<(), PowerError> {
        self.power_off(node).await?;
        self.power_on(node).await
    }

    /// Decides what the next power-on starts.
    ///
    /// # Errors
    ///
    /// Any [`PowerError`].
    async fn set_boot(&self, node: &Node, boot: &Boot) -> Result<(), PowerError>;

    /// The conductor's URL as the machine reaches it, given the URL on the conductor's own host.
    fn conductor_url(&self, url: &str) -> String {
        url.to_owned()
    }

    /// The file that the machine's serial console is written to, where there is one.
    fn console_log(&self, _node: &Node) -> Option<PathBuf> {
        None
    }

    /// Forgets what the driver keeps about a node that is being deleted.
    ///
    /// # Errors
    ///
    /// [`PowerError::Driver`] when something could not be removed.
    async fn forget(&self, _node: &Node) -> Result<(), PowerError> {
        Ok(())
    }

    /// Ends what must not outlive the conductor.
    async fn shut_down(&self) {}
}
