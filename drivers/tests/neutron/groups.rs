//! Cards that are one to the network.

use crate::stage::{CARD, SECOND, Stage};
use farrier_conductor::interfaces::{InterfaceError, NetworkInterface, NetworkKind};
use farrier_conductor::model::ProvisionState;
use serde_json::{Map, Value, json};

const KEY: &str = "tenant_vif_port_id";
const GROUP: &str = "52:54:00:00:00:99";

/// A node whose two cards are a group, beside a third card.
async fn stage(address: Option<&str>) -> Stage {
    let mut stage = Stage::new().await;
    let group = json!({
        "uuid": "6a1f0d52-2d5c-4f0e-9c8e-0d8d3b1c7a55", "kind": "port group", "name": "bond0", "address": address,
        "created_at": "2026-11-25T00:00:00Z", "mode": "802.3ad", "properties": {"miimon": 100},
        "standalone_ports_supported": true,
    });
    let third = json!({"address": "52:54:00:00:00:03", "physical_network": "rack1",
        "local_link_connection": {"switch_id": "0a:1b", "port_id": "e3"}});
    stage.node.ports.push(serde_json::from_value(third).unwrap());
    stage.node.port_groups.push(serde_json::from_value(group).unwrap());
    for card in &mut stage.node.ports[..2] {
        card.portgroup_id = Some(stage.node.port_groups[0].uuid);
        card.physical_network = Some("rack1".into());
    }
    stage
}

fn wish(fields: &Value) -> Map<String, Value> {
    fields.as_object().unwrap().clone()
}

#[tokio::test]
async fn one_is_attached_to_a_group_bound_by_all_of_its_cables_and_detached() {
    let mut stage = stage(Some(GROUP)).await;
    let vif = stage.foreign(json!({"network_id": "net-1"}));
    stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": vif}))).await.unwrap();
    let noted = Some(vif.clone());
    assert_eq!((stage.note(0, KEY), stage.note(1, KEY), stage.note(2, KEY)), (noted.clone(), noted, None));
    assert_eq!(stage.port(&vif)["mac_address"], GROUP);
    assert_eq!(stage.network.vif_list(&stage.node).await.unwrap(), std::slice::from_ref(&vif));
    let error = stage.network.vif_attach(&mut stage.node, &wish(&json!({"id": vif}))).await.unwrap_err();
    assert!(error.to_string().contains("it is attached to port group bond0 already"), "{error}");

    for _ in 0..2 {
        stage.network.configure_tenant_networks(&mut stage.node).await.unwrap();
        let link = |port: &str| json!({"switch_id": "0a:1b", "port_id": port});
        let group = json!({"id": stage.node.port_groups[0].uuid, "name": "bond0", "bond_mode": "802.3ad",
            "bond_properties": {"bond_miimon": 100}});
        let profile = json!({"local_link_information": [link("e1"), link("e2")], "local_group_information": group, "physical_network": "rack1"});
        assert_eq!(stage.port(&vif)["binding:profile"], profile);
        assert_eq!(stage.port(&vif)["binding:host_id"], stage.node.uuid.to_string());
    }
    stage.network.unconfigure_tenant_networks(&mut stage.node).await.unwrap();
    assert_eq!(stage.port(&vif)["binding:profile"], json!({}));
    stage.network.vif_detach(&mut stage.node, &vif).await.unwrap();
    assert_eq!((stage.note(0, KEY), stage.note(1, KEY)), (None, None));
}

#[tokio::test]
async fn a_group_without_an_address_takes_that_of_its_virtual_interface() {
    let mut stage = stage(None).await;
    stage.node.provision_state = ProvisionState::Active;
    let vif = stage.foreign(json!({"network_id": "net-1"}));
    let own = stage.port(&vif)["mac_address"].clone();
    let named = wish(&json!({"id": vif, "portgroup_uuid": stage.node.port_groups[0].uuid}));
    stage.network.vif_attach(&mut stage.node, &named).await.unwrap();
    assert_eq!(stage.port(&vif)["mac_address"], own);
    assert_eq!(stage.port(&vif)["binding:vif_type"], "other");
    assert_eq!(stage.port(&vif)["binding:profile"]["local_group_information"]["name"], "bond0");
}

#[tokio::test]
async fn a_card_of_a_group_is_bound_by_itself_where_it_is_named() {
    let mut stage = stage(Some(GROUP)).await;
    let (first, second) =
        (stage.foreign(json!({"network_id": "net-1"})), stage.foreign(json!({"network_id": "net-1"})));
    for (vif, card) in [(&first, 0), (&second, 1)] {
        let named = wish(&json!({"id": vif, "port_uuid": stage.node.ports[card].uuid}));
        stage.network.vif_attach(&mut stage.node, &named).await.unwrap();
    }
    stage.network.configure_tenant_networks(&mut stage.node).await.unwrap();
    for (vif, address, port) in [(&first, CARD, "e1"), (&second, SECOND, "e2")] {
        let link = json!([{"switch_id": "0a:1b", "port_id": port}]);
        assert_eq!(stage.port(vif)["mac_address"], address);
        assert_eq!(
            stage.port(vif)["binding:profile"],
            json!({"local_link_information": link, "physical_network": "rack1"})
        );
    }
    let third = stage.foreign(json!({"network_id": "net-1"}));
    let group = wish(&json!({"id": third, "portgroup_uuid": "bond0"}));
    let error = stage.network.vif_attach(&mut stage.node, &group).await.unwrap_err();
    assert!(matches!(error, InterfaceError::InUse { .. }), "{error}");
}

#[tokio::test]
async fn cards_of_a_group_have_ports_of_their_own_for_an_operation() {
    let mut stage = stage(Some(GROUP)).await;
    stage.network.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    let id = stage.note(0, "provisioning_vif_port_id").unwrap();
    let port = stage.port(&id);
    assert_eq!(port["mac_address"], CARD);
    assert_eq!(
        port["binding:profile"],
        json!({"local_link_information": [{"switch_id": "0a:1b", "port_id": "e1"}], "physical_network": "rack1"})
    );
}
