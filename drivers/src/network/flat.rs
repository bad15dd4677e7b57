//! The network interface `flat`.

use super::operation::OperationPorts;
use super::settings::NetworkSettings;
use super::smart_nic;
use super::vifs::Vifs;
use crate::openstack::Neutron;
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, NetworkInterface, NetworkKind, Properties};
use farrier_conductor::model::Node;
use serde_json::{Map, Value};
use std::sync::Arc;

/// All machines are on one network, so that an instance is deployed, rescued and serviced by its own virtual interfaces.
/// There are none when a node is cleaned or inspected, which have ports of their own.
#[derive(Debug, Clone)]
pub struct FlatNetwork {
    ports: OperationPorts,
    vifs: Vifs,
}

impl FlatNetwork {
    /// Over this Neutron.
    pub fn new(neutron: Neutron, settings: Arc<NetworkSettings>) -> Self {
        let ports =
            OperationPorts { neutron: neutron.clone(), settings: Arc::clone(&settings), needs_link: false };
        Self { ports, vifs: Vifs { neutron, settings, needs_link: false } }
    }

    /// Whether an operation has ports of its own.
    fn has_ports(kind: NetworkKind) -> bool {
        matches!(kind, NetworkKind::Cleaning | NetworkKind::Inspection)
    }
}

#[async_trait]
impl Interface for FlatNetwork {
    fn get_properties(&self) -> Properties {
        &[
            (
                "cleaning_network",
                "network of Neutron while the machine is cleaned, in place of the conductor's",
            ),
            (
                "inspection_network",
                "network of Neutron while the machine is inspected, in place of the conductor's",
            ),
        ]
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        self.ports.check(node, NetworkKind::Cleaning).await
    }
}

#[async_trait]
impl NetworkInterface for FlatNetwork {
    async fn add_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        match Self::has_ports(kind) {
            true => self.ports.connect(node, kind).await,
            false => self.vifs.bind_all(node).await,
        }
    }

    async fn remove_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        match Self::has_ports(kind) {
            true => self.ports.disconnect(node, kind).await,
            false => self.vifs.unbind_all(node).await,
        }
    }

    async fn configure_tenant_networks(&self, node: &mut Node) -> Result<(), InterfaceError> {
        self.vifs.bind_all(node).await
    }

    async fn unconfigure_tenant_networks(&self, node: &mut Node) -> Result<(), InterfaceError> {
        self.vifs.unbind_all(node).await
    }

    async fn vif_attach(&self, node: &mut Node, vif: &Map<String, Value>) -> Result<(), InterfaceError> {
        self.vifs.attach(node, vif).await
    }

    async fn vif_detach(&self, node: &mut Node, vif: &str) -> Result<(), InterfaceError> {
        self.vifs.detach(node, vif).await
    }

    async fn vif_list(&self, node: &Node) -> Result<Vec<String>, InterfaceError> {
        Ok(self.vifs.list(node))
    }

    async fn validate_network(&self, node: &Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        match Self::has_ports(kind) {
            true => self.ports.check(node, kind).await,
            false => Ok(()),
        }
    }

    fn need_power_on(&self, node: &Node) -> bool {
        smart_nic::any(node)
    }
}
