//! Virtual interfaces of instances.

use crate::stage::{CARD, SECOND, Stage};
use crate::stand_in::Fault;
use farrier_conductor::interfaces::{InterfaceError, NetworkInterface};
use farrier_conductor::model::ProvisionState;
use serde_json::{Map, Value, json};

const KEY: &str = "tenant_vif_port_id";

fn wish(vif: &str) -> Map<String, Value> {
    json!({"id": vif}).as_object().unwrap().clone()
}

#[tokio::test]
async fn one_is_attached_by_its_physical_network_bound_and_detached() {
    let mut stage = Stage::new().await;
    let vif = stage.foreign(json!({"network_id": "net-2"}));
    stage.network.vif_attach(&mut stage.node, &wish(&vif)).await.unwrap();
    assert_eq!((stage.note(0, KEY), stage.note(1, KEY)), (None, Some(vif.clone())));
    assert_eq!(stage.port(&vif)["mac_address"], SECOND);
    assert_eq!(stage.port(&vif)["binding:vif_type"], "unbound");
    let error = stage.network.vif_attach(&mut stage.node, &wish(&vif)).await.unwrap_err();
    assert!(matches!(error, InterfaceError::InUse { .. }), "{error}");

    for _ in 0..2 {
        stage.network.configure_tenant_networks(&mut stage.node).await.unwrap();
        let port = stage.port(&vif);
        assert_eq!(port["binding:host_id"], stage.node.uuid.to_string());
        assert_eq!(port["binding:profile"]["local_link_information"][0]["port_id"], "e2");
    }
    for _ in 0..2 {
        stage.network.unconfigure_tenant_networks(&mut stage.node).await.unwrap();
        assert_eq!(stage.port(&vif)["binding:host_id"], "");
        assert_ne!(stage.port(&vif)["mac_address"], SECOND);
    }
    assert_eq!(stage.network.vif_list(&stage.node).await.unwrap(), std::slice::from_ref(&vif));
    stage.network.vif_detach(&mut stage.node, &vif).await.unwrap();
    assert_eq!(stage.network.vif_list(&stage.node).await.unwrap(), [""; 0]);
    assert!(stage.network.vif_detach(&mut stage.node, &vif).await.is_err());
    assert!(stage.cloud.inner().ports.all.contains_key(&vif), "it is its user's");
}

#[tokio::test]
async fn one_that_cannot_be_bound_leaves_neither_note_nor_address() {
    let mut stage = Stage::new().await;
    stage.node.provision_state = ProvisionState::Active;
    let vif = stage.foreign(json!({"network_id": "net-1"}));
    let own = stage.port(&vif)["mac_address"].clone();
    let node = stage.node.uuid.to_string();
    stage.cloud.inner().ports.unbound_hosts.insert(node);
    let error = stage.network.vif_attach(&mut stage.node, &wish(&vif)).await.unwrap_err().to_string();
    assert!(error.contains(&vif) && error.contains("binding_failed"), "{error}");
    assert_eq!(stage.note(0, KEY), None);
    assert_eq!((&stage.port(&vif)["mac_address"], &stage.port(&vif)["binding:host_id"]), (&own, &json!("")));

    stage.cloud.inner().ports.unbound_hosts.clear();
    stage.network.vif_attach(&mut stage.node, &wish(&vif)).await.unwrap();
    assert_eq!(stage.port(&vif)["binding:vif_type"], "other");
    assert_eq!(stage.port(&vif)["mac_address"], CARD);
}

#[tokio::test]
async fn one_that_is_not_there_is_refused_and_nothing_changes() {
    let mut stage = Stage::new().await;
    for id in ["port-99", "../networks"] {
        let error = stage.network.vif_attach(&mut stage.node, &wish(id)).await.unwrap_err();
        assert!(matches!(error, InterfaceError::Invalid { .. }), "{error}");
    }
    stage.foreign(json!({"network_id": "net-1", "mac_address": CARD}));
    let vif = stage.foreign(json!({"network_id": "net-1"}));
    let before = stage.port(&vif);
    assert!(stage.network.vif_attach(&mut stage.node, &wish(&vif)).await.is_err());
    assert_eq!((stage.note(0, KEY), stage.port(&vif)), (None, before));
    stage.cloud.inner().faults.push(("GET /v2.0/ports/", Fault::Status(403)));
    let error = stage.network.vif_attach(&mut stage.node, &wish(&vif)).await.unwrap_err();
    assert!(matches!(error, InterfaceError::Driver(_)), "{error}");
}
