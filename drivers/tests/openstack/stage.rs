//! A node with cards that no other test has, and what connects it.

use crate::cloud::{Account, Cloud, USER, created};
use crate::configuration::{REGION, SWITCH};
use farrier_conductor::interfaces::NetworkKind;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{NewNode, Node};
use farrier_drivers::network::{NetworkSettings, NeutronNetwork, OperationNetwork};
use farrier_drivers::openstack::{self, Neutron, OpenStackSettings};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

static CARDS: AtomicU32 = AtomicU32::new(1);

pub struct Stage {
    pub cloud: &'static Cloud,
    pub node: Node,
    pub neutron: Neutron,
    pub network: NeutronNetwork,
    pub flat: NeutronNetwork,
    account: Account,
    /// The number of the first card.
    first: u32,
}

impl Stage {
    /// A node with two cards: one on `rack1` and enabled for PXE, one on `rack2` and not.
    pub async fn new() -> Self {
        let cloud = Cloud::shared().await;
        let account = cloud.login(USER, "service").await;
        let neutron = neutron(cloud, &by_password(USER)).unwrap();
        let networks = NetworkKind::ALL.map(|kind| {
            let network = OperationNetwork { network: Some(kind.to_string()), security_groups: Vec::new() };
            (kind, network)
        });
        let settings = Arc::new(NetworkSettings { networks: networks.into(), ..NetworkSettings::default() });
        let network = NeutronNetwork::separate(neutron.clone(), Arc::clone(&settings));
        let flat = NeutronNetwork::flat(neutron.clone(), settings);
        let first = CARDS.fetch_add(2, Ordering::Relaxed);
        let mut node = Node::enrol(NewNode::default(), SystemClock.now());
        for (index, rack) in [(0, "rack1"), (1, "rack2")] {
            let port = json!({"address": address(first + index), "physical_network": rack,
                "pxe_enabled": index == 0, "local_link_connection": link(first + index)});
            node.ports.push(serde_json::from_value(port).unwrap());
        }
        Self { cloud, node, neutron, network, flat, account, first }
    }

    /// The address of a card.
    pub fn address(&self, card: u32) -> String {
        address(self.first + card)
    }

    /// Where the cable of a card leads.
    pub fn link(&self, card: u32) -> Value {
        link(self.first + card)
    }

    /// A note of a card.
    pub fn note(&self, card: usize, key: &str) -> Option<String> {
        Some(self.node.ports[card].internal_info.get(key)?.as_str()?.to_owned())
    }

    /// A port as Neutron has it.
    pub async fn port(&self, id: &str) -> (StatusCode, Value) {
        let path = format!("ports/{id}");
        let (status, mut reply) = self.cloud.network(&self.account, Method::GET, &path, &Value::Null).await;
        (status, reply["port"].take())
    }

    /// Creates a port of a user on a network of this name.
    pub async fn vif(&self, network: &str) -> String {
        let network = self.neutron.network(network).await.unwrap().id;
        let port = json!({"port": {"network_id": network}});
        created(&self.cloud.network(&self.account, Method::POST, "ports", &port).await.1, "port")
    }

    /// What the switch was told about the port of a card.
    pub fn commands(&self, card: u32) -> Vec<String> {
        let port = port_id(self.first + card);
        self.cloud.commands().into_iter().filter(|line| line.split(' ').any(|word| word == port)).collect()
    }

    /// What the switch is told when a card joins a VLAN.
    pub fn plug(&self, card: u32, vlan: u16) -> String {
        format!("plug port {} to network {vlan}", port_id(self.first + card))
    }

    /// What the switch is told when a card leaves a VLAN.
    pub fn unplug(&self, card: u32) -> String {
        format!("delete port {}", port_id(self.first + card))
    }
}

fn address(card: u32) -> String {
    format!("52:54:00:00:{:02x}:{:02x}", card >> 8, card & 0xff)
}

fn port_id(card: u32) -> String {
    format!("Ethernet{card}")
}

fn link(card: u32) -> Value {
    let [name, address] = SWITCH;
    json!({"switch_id": address, "port_id": port_id(card), "switch_info": name})
}

/// The entry of a cloud's user by a password.
pub fn by_password([name, password]: [&str; 2]) -> Value {
    json!({"region_name": REGION, "auth": {"username": name, "password": password, "project_name": "service"}})
}

/// A Neutron as an entry of `clouds.yaml` describes it, to which Keystone is added.
pub fn neutron(cloud: &Cloud, entry: &Value) -> Result<Neutron, openstack::OpenStackError> {
    let mut entry = entry.clone();
    entry["auth"]["auth_url"] = cloud.keystone.as_str().into();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    std::fs::write(&file, json!({"clouds": {"c": entry}}).to_string()).unwrap();
    Neutron::new(openstack::Cloud::load(&file, None)?, OpenStackSettings::default())
}

/// What is asked for when a virtual interface is attached.
pub fn wish(fields: &Value) -> Map<String, Value> {
    fields.as_object().unwrap().clone()
}
