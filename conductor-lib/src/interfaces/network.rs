//! Networks (section 9.8).

use super::base::{Interface, InterfaceError};
use crate::model::InterfaceKind::Network;
use crate::model::Node;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// The networks that a machine is on for an operation. Its instance is on those of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkKind {
    /// While it is deployed.
    Provisioning,
    /// While it is cleaned.
    Cleaning,
    /// While its instance is repaired.
    Rescuing,
    /// While it is inspected.
    Inspection,
    /// While it is serviced.
    Servicing,
}

/// Connects a machine to networks. What it notes in the node's ports is saved by its caller.
#[async_trait]
pub trait NetworkInterface: Interface {
    /// Connects the machine to the network of an operation; it may be asked for again and again.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn add_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError>;

    /// Takes the machine off the network of an operation; nothing happens where it is not on it.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn remove_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError>;

    /// Connects the machine to the networks of its instance; it may be asked for again and again.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn configure_tenant_networks(&self, node: &mut Node) -> Result<(), InterfaceError>;

    /// Takes the machine off the networks of its instance; nothing happens where it is on none.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn unconfigure_tenant_networks(&self, node: &mut Node) -> Result<(), InterfaceError>;

    /// Attaches a virtual interface to the node.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn vif_attach(&self, _node: &mut Node, _vif: &Map<String, Value>) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Network, "vif_attach")
    }

    /// Detaches a virtual interface from the node.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn vif_detach(&self, _node: &mut Node, _vif: &str) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Network, "vif_detach")
    }

    /// The virtual interfaces of the node.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn vif_list(&self, _node: &Node) -> Result<Vec<String>, InterfaceError> {
        InterfaceError::unsupported(Network, "vif_list")
    }

    /// Whether the machine must be on while its networks change, for the sake of its cards.
    fn need_power_on(&self, _node: &Node) -> bool {
        false
    }

    /// Network data for the config drive of an instance or a ramdisk; empty where addresses come by DHCP.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_node_network_data(&self, _node: &Node) -> Result<Map<String, Value>, InterfaceError> {
        Ok(Map::new())
    }
}
