//! Virtual interfaces of instances.

use crate::stage::{Stage, wish};
use farrier_conductor::interfaces::{InterfaceError, NetworkInterface, NetworkKind};
use farrier_conductor::model::ProvisionState;
use reqwest::StatusCode;
use serde_json::json;

const KEY: &str = "tenant_vif_port_id";

#[tokio::test]
async fn openstack_one_is_attached_by_its_physical_network_bound_and_detached() {
    let mut stage = Stage::new().await;
    let vif = stage.vif("valley").await;
    let own = stage.port(&vif).await.1["mac_address"].clone();
    stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": vif}))).await.unwrap();
    assert_eq!((stage.note(0, KEY), stage.note(1, KEY)), (None, Some(vif.clone())));
    let port = stage.port(&vif).await.1;
    assert_eq!(port["mac_address"], stage.address(1));
    assert_eq!(port["binding:vif_type"], "unbound");
    let error = stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": vif}))).await.unwrap_err();
    assert!(matches!(error, InterfaceError::InUse { .. }), "{error}");

    for _ in 0..2 {
        stage.network.configure_tenant_networks(&mut stage.node).await.unwrap();
        let port = stage.port(&vif).await.1;
        assert_eq!(port["binding:host_id"], stage.node.uuid.to_string());
        assert_eq!(
            port["binding:profile"],
            json!({"local_link_information": [stage.link(1)], "physical_network": "rack2"})
        );
        assert_eq!((&port["binding:vif_type"], &port["status"]), (&json!("other"), &json!("ACTIVE")));
    }
    assert_eq!(stage.commands(1).last(), Some(&stage.plug(1, 250)));
    for _ in 0..2 {
        stage.network.unconfigure_tenant_networks(&mut stage.node).await.unwrap();
        let port = stage.port(&vif).await.1;
        assert_eq!((&port["binding:host_id"], &port["binding:profile"]), (&json!(""), &json!({})));
        assert!(![&own, &json!(stage.address(1))].contains(&&port["mac_address"]), "it is a new one");
    }
    assert_eq!(stage.commands(1).last(), Some(&stage.unplug(1)));
    stage.network.vif_detach(&mut stage.node, &vif).await.unwrap();
    assert_eq!(stage.network.vif_list(&stage.node).await.unwrap(), [""; 0]);
    assert_eq!(stage.port(&vif).await.0, StatusCode::OK, "it is its user's");
}

#[tokio::test]
async fn openstack_one_that_nobody_knows_is_refused_and_changes_nothing() {
    let mut stage = Stage::new().await;
    for id in ["4b1f0d52-2d5c-4f0e-9c8e-0d8d3b1c7a55", "../networks"] {
        let error = stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": id}))).await.unwrap_err();
        assert!(matches!(error, InterfaceError::Invalid { .. }), "{error}");
        assert_eq!((stage.note(0, KEY), stage.note(1, KEY)), (None, None));
    }
}

#[tokio::test]
async fn openstack_an_instance_that_runs_has_a_new_one_at_once() {
    let mut stage = Stage::new().await;
    stage.node.provision_state = ProvisionState::Active;
    let vif = stage.vif("meadow").await;
    stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": vif}))).await.unwrap();
    assert_eq!(stage.port(&vif).await.1["binding:vif_type"], "other");
    assert_eq!(stage.commands(0).last(), Some(&stage.plug(0, 150)));
    stage.network.vif_detach(&mut stage.node, &vif).await.unwrap();
    assert_eq!(stage.port(&vif).await.1["binding:vif_type"], "unbound");
}

#[tokio::test]
async fn openstack_a_group_of_cards_is_bound_by_all_of_its_cables() {
    let mut stage = Stage::new().await;
    let group = json!({
        "uuid": stage.node.uuid, "kind": "port group", "name": "bond0", "address": "52:54:00:00:ff:01",
        "created_at": "2026-11-25T00:00:00Z", "mode": "802.3ad", "properties": {"miimon": 100},
    });
    stage.node.port_groups.push(serde_json::from_value(group).unwrap());
    for card in &mut stage.node.ports {
        card.portgroup_id = Some(stage.node.port_groups[0].uuid);
        card.physical_network = Some("rack1".into());
    }
    // While it is deployed, the card that it boots from is by itself.
    stage.network.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.commands(0), [stage.plug(0, 101)]);
    let vif = stage.vif("meadow").await;
    stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": vif}))).await.unwrap();
    stage.network.remove_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    stage.network.configure_tenant_networks(&mut stage.node).await.unwrap();
    let port = stage.port(&vif).await.1;
    assert_eq!(port["mac_address"], "52:54:00:00:ff:01");
    assert_eq!(port["binding:vif_type"], "other");
    let information = json!({"id": stage.node.uuid, "name": "bond0", "bond_mode": "802.3ad",
        "bond_properties": {"bond_miimon": 100}});
    assert_eq!(port["binding:profile"]["local_link_information"], json!([stage.link(0), stage.link(1)]));
    assert_eq!(port["binding:profile"]["local_group_information"], information);
    for card in [0, 1] {
        assert_eq!(stage.commands(card).last(), Some(&stage.plug(card, 150)));
    }
    stage.network.unconfigure_tenant_networks(&mut stage.node).await.unwrap();
    for card in [0, 1] {
        assert_eq!(stage.commands(card).last(), Some(&stage.unplug(card)));
    }
}
