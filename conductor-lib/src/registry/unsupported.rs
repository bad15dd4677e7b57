//! The interfaces of nodes that have none of a kind.

use crate::error::Error;
use crate::in_band::{InspectInterface, RescueInterface};
use crate::interfaces::{ConsoleInterface, Interface, InterfaceError, RaidInterface, VendorInterface};
use crate::model::{InterfaceKind, Node};
use crate::task::Task;
use async_trait::async_trait;

/// `no-console` and similar: the node has no such interface, and a caller that needs it gets an error.
#[derive(Debug, Clone, Copy)]
pub struct Unsupported(
    /// What the node has no interface for.
    pub InterfaceKind,
);

#[async_trait]
impl Interface for Unsupported {
    async fn validate(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(self.0, self.0.as_str())
    }
}

impl ConsoleInterface for Unsupported {}

impl VendorInterface for Unsupported {}

impl InspectInterface for Unsupported {}

#[async_trait]
impl RescueInterface for Unsupported {
    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }
}

impl RaidInterface for Unsupported {}
