//! Serial consoles.

use super::base::{Interface, InterfaceError};
use crate::model::InterfaceKind::Console;
use crate::model::Node;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How a console is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleAccess {
    /// Type of the access, such as `shellinabox` or `socat`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where.
    pub url: String,
}

/// Gives access to a machine's serial console.
#[async_trait]
pub trait ConsoleInterface: Interface {
    /// Opens the console for its users.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn start_console(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Console, "start_console")
    }

    /// Closes the console for its users.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn stop_console(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Console, "stop_console")
    }

    /// How users reach it.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_console(&self, _node: &Node) -> Result<ConsoleAccess, InterfaceError> {
        InterfaceError::unsupported(Console, "get_console")
    }

    /// Types something at the console.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn write_console(&self, _node: &Node, _typed: &[u8]) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Console, "write_console")
    }

    /// The file that the console is written to, where there is one: the best witness of a silent machine. What
    /// stood in it before may be in one beside it, whose name ends in `.old`.
    fn log_file(&self, _node: &Node) -> Option<PathBuf> {
        None
    }

    /// Forgets what the driver keeps about a node that is being deleted.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Driver`] when something could not be removed.
    async fn forget(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    /// Ends what must not outlive the conductor.
    async fn shut_down(&self) {}
}
