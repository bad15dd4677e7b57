//! The network interfaces `flat` and `neutron`: the same ports and virtual interfaces, each for other operations.

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

/// What one of them has its own way.
#[derive(Debug)]
struct Manner {
    /// The operations that have ports of their own; in others a machine is on the networks of its instance.
    operations: &'static [NetworkKind],
    /// The operations that every node needs a network for.
    needed: &'static [NetworkKind],
    /// Whether switches connect machines, by where their cables lead.
    needs_link: bool,
    properties: Properties,
}

static FLAT: Manner = Manner {
    operations: &[NetworkKind::Cleaning, NetworkKind::Inspection],
    needed: &[NetworkKind::Cleaning],
    needs_link: false,
    properties: &[
        ("cleaning_network", "network of Neutron while the machine is cleaned, instead of the conductor's"),
        (
            "inspection_network",
            "network of Neutron while the machine is inspected, instead of the conductor's",
        ),
    ],
};

static NEUTRON: Manner = Manner {
    operations: &NetworkKind::ALL,
    needed: &[NetworkKind::Provisioning, NetworkKind::Cleaning],
    needs_link: true,
    properties: &[
        (
            "provisioning_network",
            "network of Neutron while the machine is deployed, instead of the conductor's",
        ),
        ("cleaning_network", "the same while it is cleaned"),
        ("rescuing_network", "the same while it is rescued"),
        ("inspection_network", "the same while it is inspected"),
        ("servicing_network", "the same while it is serviced"),
    ],
};

/// Connects machines by ports of Neutron.
#[derive(Debug, Clone)]
pub struct NeutronNetwork {
    manner: &'static Manner,
    ports: OperationPorts,
    vifs: Vifs,
}

impl NeutronNetwork {
    /// `flat`: all machines are on one network, so that an instance is deployed, rescued and serviced by its own virtual
    /// interfaces. There are none when a node is cleaned or inspected, which have ports of their own.
    pub fn flat(neutron: Neutron, settings: Arc<NetworkSettings>) -> Self {
        Self::new(&FLAT, neutron, settings)
    }

    /// `neutron`: each operation has a network, and an instance those of its virtual interfaces. Switches connect the
    /// machine by the links of its cards.
    pub fn separate(neutron: Neutron, settings: Arc<NetworkSettings>) -> Self {
        Self::new(&NEUTRON, neutron, settings)
    }

    fn new(manner: &'static Manner, neutron: Neutron, settings: Arc<NetworkSettings>) -> Self {
        let needs_link = manner.needs_link;
        let ports = OperationPorts { neutron: neutron.clone(), settings: Arc::clone(&settings), needs_link };
        Self { manner, ports, vifs: Vifs { neutron, settings, needs_link } }
    }

    /// Whether an operation has ports of its own.
    fn has_ports(&self, kind: NetworkKind) -> bool {
        self.manner.operations.contains(&kind)
    }
}

#[async_trait]
impl Interface for NeutronNetwork {
    fn get_properties(&self) -> Properties {
        self.manner.properties
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        for kind in self.manner.needed {
            self.ports.check(node, *kind).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl NetworkInterface for NeutronNetwork {
    async fn add_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        match self.has_ports(kind) {
            true => self.ports.connect(node, kind).await,
            false => self.vifs.bind_all(node).await,
        }
    }

    async fn remove_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        match self.has_ports(kind) {
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
        match self.has_ports(kind) {
            true => self.ports.check(node, kind).await,
            false => Ok(()),
        }
    }

    fn need_power_on(&self, node: &Node) -> bool {
        smart_nic::any(node)
    }
}
