//! A console without a machine.

use async_trait::async_trait;
use farrier_conductor::interfaces::{ConsoleAccess, ConsoleInterface, Interface, InterfaceError};
use farrier_conductor::model::Node;

/// Opens and closes at once.
#[derive(Debug)]
pub(super) struct FakeConsole;

impl Interface for FakeConsole {}

#[async_trait]
impl ConsoleInterface for FakeConsole {
    async fn start_console(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn stop_console(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_console(&self, node: &Node) -> Result<ConsoleAccess, InterfaceError> {
        Ok(ConsoleAccess { kind: "fake".to_owned(), url: format!("fake://{}", node.uuid) })
    }
}
