//! Networks (section 9.8).

use super::base::{Interface, InterfaceError};
use crate::model::InterfaceKind::Network;
use crate::model::Node;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;

/// The networks that a machine is on for an operation. Its instance is on those of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl NetworkKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Provisioning, Self::Cleaning, Self::Rescuing, Self::Inspection, Self::Servicing];

    /// As settings and notes name it: `<kind>_network`, `<kind>_vif_port_id`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "provisioning",
            Self::Cleaning => "cleaning",
            Self::Rescuing => "rescuing",
            Self::Inspection => "inspection",
            Self::Servicing => "servicing",
        }
    }
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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

    /// Checks that the machine can be connected to the network of an operation, without connecting it.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn validate_network(&self, _node: &Node, _kind: NetworkKind) -> Result<(), InterfaceError> {
        Ok(())
    }

    /// Whether the machine must be on while its networks change, for the sake of its cards (section 9.9).
    fn need_power_on(&self, _node: &Node) -> bool {
        false
    }

    /// Network data for the media that a ramdisk boots from: those of the node's record, unless an implementation knows
    /// better. Empty where addresses come by DHCP.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_node_network_data(&self, node: &Node) -> Result<Map<String, Value>, InterfaceError> {
        Ok(node.network_data.clone())
    }
}
