//! Ports of operations.

use crate::stage::{CARD, SECOND, Stage};
use crate::stand_in::Fault;
use farrier_conductor::interfaces::{Interface, NetworkInterface, NetworkKind};
use serde_json::{Value, json};

const KEY: &str = "provisioning_vif_port_id";
const KIND: NetworkKind = NetworkKind::Provisioning;

#[tokio::test]
async fn the_cards_that_boot_are_connected_once_and_disconnected() {
    let mut stage = Stage::new().await;
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    let id = stage.note(0, KEY).unwrap();
    assert_eq!(stage.note(1, KEY), None);
    let (port, node) = (stage.port(&id), stage.node.uuid.to_string());
    let link = json!({"switch_id": "0a:1b", "port_id": "e1"});
    let profile = json!({"local_link_information": [link], "physical_network": "rack1"});
    for (field, expected) in [
        ("network_id", json!("net-1")),
        ("mac_address", json!(CARD)),
        ("device_id", json!(node)),
        ("device_owner", json!("baremetal:none")),
        ("binding:host_id", json!(node)),
        ("binding:vnic_type", json!("baremetal")),
        ("binding:profile", profile),
        ("security_groups", json!(["sg-1"])),
    ] {
        assert_eq!(port[field], expected, "{field}");
    }
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    assert_eq!(stage.note(0, KEY), Some(id));
    assert_eq!(stage.cloud.inner().ports.all.len(), 1);

    for _ in 0..2 {
        stage.network.remove_network(&mut stage.node, KIND).await.unwrap();
        assert!(stage.cloud.inner().ports.all.is_empty());
        assert_eq!(stage.note(0, KEY), None);
    }
}

#[tokio::test]
async fn what_a_conductor_created_and_did_not_write_down_is_gone_on_with() {
    let mut stage = Stage::new().await;
    let before = stage.node.clone();
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    let id = stage.note(0, KEY);
    // It stopped before it could save the node.
    stage.node = before.clone();
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    assert_eq!(stage.note(0, KEY), id);
    // The cable was put elsewhere meanwhile.
    stage.node = before.clone();
    stage.node.ports[0].local_link_connection.insert("port_id".into(), "e9".into());
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    assert_ne!(stage.note(0, KEY), id);
    assert_eq!(stage.cloud.inner().ports.all.len(), 1);
    stage.node = before;
    stage.network.remove_network(&mut stage.node, KIND).await.unwrap();
    assert!(stage.cloud.inner().ports.all.is_empty());
}

#[tokio::test]
async fn ports_of_others_are_never_touched() {
    let mut stage = Stage::new().await;
    let node = stage.node.uuid.to_string();
    let foreign = [
        json!({"network_id": "net-1", "device_id": node, "name": "of-an-operator"}),
        json!({"network_id": "net-1", "device_id": "another", "name": "farrier-provisioning"}),
        json!({"network_id": "net-1", "device_id": node, "name": "farrier-cleaning"}),
    ];
    let foreign = foreign.map(|fields| stage.foreign(fields));
    let before = stage.cloud.inner().ports.all.clone();
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    stage.network.remove_network(&mut stage.node, KIND).await.unwrap();
    assert_eq!(foreign.len(), 3);
    assert_eq!(stage.cloud.inner().ports.all, before);
}

#[tokio::test]
async fn a_failure_names_card_and_network_and_leaves_nothing() {
    for (fault, expected) in [
        (Some(Fault::Status(409)), "409 Conflict"),
        (Some(Fault::Status(400)), "400 Bad Request"),
        (Some(Fault::Status(500)), "500 Internal Server Error"),
        (None, "has binding_failed"),
    ] {
        let mut stage = Stage::new().await;
        let node = stage.node.uuid.to_string();
        match fault {
            Some(fault) => stage.cloud.inner().faults.push(("POST /v2.0/ports", fault)),
            None => drop(stage.cloud.inner().ports.unbound_hosts.insert(node)),
        }
        let error = stage.network.add_network(&mut stage.node, KIND).await.unwrap_err().to_string();
        for part in ["n1", CARD, "provisioning network \"stable\"", expected] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!error.contains("gAAAAA"), "{error}");
        assert!(stage.cloud.inner().ports.all.is_empty());
        assert_eq!(stage.note(0, KEY), None);
    }
}

#[tokio::test]
async fn c07_a_port_that_was_created_and_reported_as_failed_is_used() {
    for status in [500, 503] {
        let mut stage = Stage::new().await;
        stage.cloud.inner().faults.push(("POST /v2.0/ports", Fault::AfterAll(status)));
        stage.network.add_network(&mut stage.node, KIND).await.unwrap();
        let id = stage.note(0, KEY).unwrap();
        assert_eq!(stage.cloud.inner().ports.all.keys().collect::<Vec<_>>(), [&id]);
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_reported() {
    let mut stage = Stage::new().await;
    let foreign = stage.foreign(json!({"network_id": "net-1", "mac_address": CARD}));
    let error = stage.network.add_network(&mut stage.node, KIND).await.unwrap_err().to_string();
    assert!(error.contains("The mac address is in use"), "{error}");
    assert_eq!(stage.cloud.inner().ports.all.keys().collect::<Vec<_>>(), [&foreign]);
}

#[tokio::test]
async fn a_smart_nic_is_waited_for_until_its_agent_is_alive() {
    let mut stage = Stage::new().await;
    let card = &mut stage.node.ports[0];
    card.is_smartnic = true;
    card.local_link_connection =
        serde_json::from_value(json!({"hostname": "nic7", "port_id": "rep0-0"})).unwrap();
    assert!(stage.network.need_power_on(&stage.node) && stage.flat.need_power_on(&stage.node));
    let error = stage.network.add_network(&mut stage.node, KIND).await.unwrap_err().to_string();
    assert!(error.contains("no agent of Neutron is alive on host nic7"), "{error}");
    stage.cloud.inner().agents.push(json!({"host": "nic7", "alive": true}));
    stage.network.add_network(&mut stage.node, KIND).await.unwrap();
    assert_eq!(stage.port(&stage.note(0, KEY).unwrap())["binding:vnic_type"], "smart-nic");
}

#[tokio::test]
async fn a_node_is_valid_when_its_networks_are_found() {
    let mut stage = Stage::new().await;
    stage.network.validate(&stage.node).await.unwrap();
    for (value, expected) in [("desert", "known to Neutron 0 times"), ("twins", "known to Neutron 2 times")] {
        stage.node.driver_info = json!({"cleaning_network": value}).as_object().unwrap().clone().into();
        let error = stage.network.validate(&stage.node).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = stage.network.validate_network(&stage.node, NetworkKind::Rescuing).await.unwrap_err();
    assert!(error.to_string().contains("rescuing_network: is missing"), "{error}");
}

#[tokio::test]
async fn flat_has_ports_for_cleaning_and_binds_those_of_instances() {
    let mut stage = Stage::new().await;
    let vif = stage.foreign(json!({"network_id": "net-1"}));
    let wish = json!({"id": vif}).as_object().unwrap().clone();
    stage.flat.vif_attach(&mut stage.node, &wish).await.unwrap();
    stage.flat.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.port(&vif)["binding:host_id"], stage.node.uuid.to_string());
    stage.flat.remove_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.port(&vif)["binding:host_id"], "");
    stage.flat.add_network(&mut stage.node, NetworkKind::Cleaning).await.unwrap();
    let id = stage.note(0, "cleaning_vif_port_id").unwrap();
    assert_eq!(stage.port(&id)["network_id"], "net-2");
    stage.flat.remove_network(&mut stage.node, NetworkKind::Cleaning).await.unwrap();
    let left: Vec<Value> = stage.cloud.inner().ports.all.values().cloned().collect();
    assert_eq!(left.len(), 1);
    assert_ne!(left[0]["mac_address"], SECOND);
}
