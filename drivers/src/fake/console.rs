//! The consoles of machines that are not there.

use async_trait::async_trait;
use farrier_conductor::interfaces::{ConsoleAccess, ConsoleInterface, Interface, InterfaceError};
use farrier_conductor::model::Node;

/// Nothing is ever said at it.
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
        Ok(ConsoleAccess { kind: "socat".to_owned(), url: format!("tcp://127.0.0.1:1/{}", node.uuid) })
    }
}
