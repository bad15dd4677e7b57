//! A node with cards, and what connects it.

use crate::stand_in::{PASSWORD, StandIn, USER};
use farrier_conductor::interfaces::NetworkKind;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{NewNode, Node};
use farrier_drivers::network::{NetworkSettings, NeutronNetwork, OperationNetwork};
use farrier_drivers::openstack::{Cloud, Neutron, OpenStackSettings};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub const CARD: &str = "52:54:00:00:00:01";
pub const SECOND: &str = "52:54:00:00:00:02";

pub struct Stage {
    pub cloud: StandIn,
    pub node: Node,
    pub neutron: Neutron,
    pub network: NeutronNetwork,
    pub flat: NeutronNetwork,
}

impl Stage {
    /// A node with two cards, of which one is enabled for PXE.
    pub async fn new() -> Self {
        Self::at(StandIn::start().await, settings())
    }

    /// One whose cloud this is.
    pub fn at(cloud: StandIn, settings: OpenStackSettings) -> Self {
        let (neutron, network, flat) = interfaces(&cloud, settings);
        let link = |port: &str| json!({"switch_id": "0a:1b", "port_id": port});
        let mut node =
            Node::enrol(NewNode { name: Some("n1".into()), ..NewNode::default() }, SystemClock.now());
        for port in [
            json!({"address": CARD, "physical_network": "rack1", "local_link_connection": link("e1")}),
            json!({"address": SECOND, "physical_network": "rack2", "local_link_connection": link("e2"), "pxe_enabled": false}),
        ] {
            node.ports.push(serde_json::from_value(port).unwrap());
        }
        Self { cloud, node, neutron, network, flat }
    }

    /// The same with interfaces that have asked for nothing yet.
    #[must_use]
    pub fn without_token(self, settings: OpenStackSettings) -> Self {
        let (neutron, network, flat) = interfaces(&self.cloud, settings);
        Self { neutron, network, flat, ..self }
    }

    /// A note of a card.
    pub fn note(&self, card: usize, key: &str) -> Option<String> {
        Some(self.node.ports[card].internal_info.get(key)?.as_str()?.to_owned())
    }

    /// A port that somebody else has created.
    pub fn foreign(&self, fields: Value) -> String {
        let (status, body) = self.cloud.inner().ports.create(&fields);
        assert_eq!(status, 201, "{body}");
        body["port"]["id"].as_str().unwrap().to_owned()
    }

    /// The ports with a name, as Neutron has them.
    pub fn ports(&self, name: &str) -> Vec<(String, Value)> {
        let all = self.cloud.inner().ports.all.clone();
        all.into_iter().filter(|(_, port)| port["name"] == name).collect()
    }

    /// A port as Neutron has it.
    pub fn port(&self, id: &str) -> Value {
        self.cloud.inner().ports.all[id].clone()
    }
}

/// A Neutron, and the network interfaces `neutron` and `flat`.
fn interfaces(cloud: &StandIn, settings: OpenStackSettings) -> (Neutron, NeutronNetwork, NeutronNetwork) {
    let neutron = neutron(&cloud.url, PASSWORD, settings);
    let provisioning =
        OperationNetwork { network: Some("stable".into()), security_groups: vec!["sg-1".into()] };
    let cleaning = OperationNetwork { network: Some("net-2".into()), security_groups: Vec::new() };
    let networks = Arc::new(NetworkSettings {
        networks: [(NetworkKind::Provisioning, provisioning), (NetworkKind::Cleaning, cleaning)].into(),
        neutron_agent_max_attempts: 3,
        neutron_agent_status_retry_interval: Duration::from_millis(5),
        neutron_agent_settle_time: Duration::from_millis(5),
        ..NetworkSettings::default()
    });
    let network = NeutronNetwork::separate(neutron.clone(), Arc::clone(&networks));
    let flat = NeutronNetwork::flat(neutron.clone(), networks);
    (neutron, network, flat)
}

/// Times of a cloud where nothing takes long.
pub fn settings() -> OpenStackSettings {
    OpenStackSettings {
        request_timeout: Duration::from_secs(20),
        retry_pause: Duration::from_millis(2),
        refusal_pause: Duration::from_millis(5),
        ..OpenStackSettings::default()
    }
}

/// The Neutron of a cloud that `clouds.yaml` describes.
pub fn neutron(url: &str, password: &str, settings: OpenStackSettings) -> Neutron {
    rustls::crypto::ring::default_provider().install_default().ok();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    let auth = json!({"auth_url": url, "username": USER, "password": password, "project_name": "service"});
    std::fs::write(&file, json!({"clouds": {"c": {"region_name": "r1", "auth": auth}}}).to_string()).unwrap();
    Neutron::new(Cloud::load(&file, Some("c")).unwrap(), settings).unwrap()
}
