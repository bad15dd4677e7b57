//! What goes wrong with networks of nodes.

use farrier_conductor::interfaces::{InterfaceError, NetworkKind};

/// A machine cannot be connected.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NetworkError {
    /// None of its cards can be.
    #[error("no port of node {node} could be connected to the {kind} network {network:?}: {failures}")]
    NotConnected {
        /// The node.
        node: String,
        /// The operation.
        kind: NetworkKind,
        /// Name or UUID of the network.
        network: String,
        /// Each card, and why not.
        failures: String,
    },
    /// Ports of Neutron cannot be deleted.
    #[error(
        "node {node} could not leave the {kind} network: {failures}; delete these ports, or order the operation again"
    )]
    NotDisconnected {
        /// The node.
        node: String,
        /// The operation.
        kind: NetworkKind,
        /// Each port, and why not.
        failures: String,
    },
}

impl From<NetworkError> for InterfaceError {
    fn from(error: NetworkError) -> Self {
        Self::driver(error)
    }
}
