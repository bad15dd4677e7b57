//! The network interface `neutron`.

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

/// Each operation has a network, and an instance those of its virtual interfaces. Switches connect the machine by what
/// Neutron is told of its cables.
#[derive(Debug, Clone)]
pub struct NeutronNetwork {
    ports: OperationPorts,
    vifs: Vifs,
}

impl NeutronNetwork {
    /// Over this Neutron.
    pub fn new(neutron: Neutron, settings: Arc<NetworkSettings>) -> Self {
        let ports =
            OperationPorts { neutron: neutron.clone(), settings: Arc::clone(&settings), needs_link: true };
        Self { ports, vifs: Vifs { neutron, settings, needs_link: true } }
    }
}

#[async_trait]
impl Interface for NeutronNetwork {
    fn get_properties(&self) -> Properties {
        &[
            (
                "provisioning_network",
                "network of Neutron while the machine is deployed, in place of the conductor's",
            ),
            ("cleaning_network", "the same while it is cleaned"),
            ("rescuing_network", "the same while it is rescued"),
            ("inspection_network", "the same while it is inspected"),
            ("servicing_network", "the same while it is serviced"),
        ]
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        self.ports.check(node, NetworkKind::Provisioning).await?;
        self.ports.check(node, NetworkKind::Cleaning).await
    }
}

#[async_trait]
impl NetworkInterface for NeutronNetwork {
    async fn add_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        self.ports.connect(node, kind).await
    }

    async fn remove_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        self.ports.disconnect(node, kind).await
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
        self.ports.check(node, kind).await
    }

    fn need_power_on(&self, node: &Node) -> bool {
        smart_nic::any(node)
    }
}
