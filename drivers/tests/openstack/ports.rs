//! Ports of operations.

use crate::stage::Stage;
use farrier_conductor::interfaces::{Interface, NetworkInterface, NetworkKind};
use reqwest::StatusCode;
use serde_json::json;

#[tokio::test]
async fn openstack_every_operation_has_a_port_that_the_switch_connects_and_that_goes_with_it() {
    let mut stage = Stage::new().await;
    for (kind, vlan) in NetworkKind::ALL.into_iter().zip([101, 102, 103, 104, 105]) {
        let key = format!("{kind}_vif_port_id");
        stage.network.validate_network(&stage.node, kind).await.unwrap();
        stage.network.add_network(&mut stage.node, kind).await.unwrap();
        let id = stage.note(0, &key).unwrap();
        assert_eq!(stage.note(1, &key), None, "it is not enabled for PXE");
        let (node, (_, port)) = (stage.node.uuid.to_string(), stage.port(&id).await);
        let network = stage.neutron.network(kind.as_str()).await.unwrap();
        for (field, expected) in [
            ("network_id", json!(network.id)),
            ("mac_address", json!(stage.address(0))),
            ("device_id", json!(node)),
            ("device_owner", json!("baremetal:none")),
            ("binding:host_id", json!(node)),
            ("binding:vnic_type", json!("baremetal")),
            ("binding:vif_type", json!("other")),
            (
                "binding:profile",
                json!({"local_link_information": [stage.link(0)], "physical_network": "rack1"}),
            ),
            ("status", json!("ACTIVE")),
        ] {
            assert_eq!(port[field], expected, "{kind} {field}");
        }
        assert_eq!(stage.commands(0).last(), Some(&stage.plug(0, vlan)), "{kind}");
        // A second time it is gone on with.
        stage.network.add_network(&mut stage.node, kind).await.unwrap();
        assert_eq!(stage.note(0, &key), Some(id.clone()));

        for _ in 0..2 {
            stage.network.remove_network(&mut stage.node, kind).await.unwrap();
            assert_eq!(stage.port(&id).await.0, StatusCode::NOT_FOUND, "{kind}");
            assert_eq!(stage.note(0, &key), None);
        }
        assert_eq!(stage.commands(0).last(), Some(&stage.unplug(0)), "{kind}");
    }
}

#[tokio::test]
async fn openstack_flat_has_ports_for_cleaning_and_binds_those_of_instances() {
    let mut stage = Stage::new().await;
    let vif = stage.vif("meadow").await;
    stage.flat.vif_attach(&mut stage.node, &crate::stage::wish(&json!({"id": vif}))).await.unwrap();
    stage.flat.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.port(&vif).await.1["binding:vif_type"], "other");
    stage.flat.remove_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.port(&vif).await.1["binding:vif_type"], "unbound");
    stage.flat.add_network(&mut stage.node, NetworkKind::Cleaning).await.unwrap();
    let id = stage.note(0, "cleaning_vif_port_id").unwrap();
    assert_eq!(stage.port(&id).await.1["mac_address"], stage.address(0));
    stage.flat.remove_network(&mut stage.node, NetworkKind::Cleaning).await.unwrap();
    assert_eq!(stage.port(&id).await.0, StatusCode::NOT_FOUND);
    assert_eq!(stage.port(&vif).await.0, StatusCode::OK);
}

#[tokio::test]
async fn openstack_a_wrong_network_is_named_before_anything_is_created() {
    let mut stage = Stage::new().await;
    stage.network.validate(&stage.node).await.unwrap();
    for (name, expected) in [("desert", "known to Neutron 0 times"), ("twins", "known to Neutron 2 times")] {
        stage.node.driver_info = crate::stage::wish(&json!({"cleaning_network": name})).into();
        for error in [
            stage.network.validate(&stage.node).await.unwrap_err(),
            stage.network.add_network(&mut stage.node, NetworkKind::Cleaning).await.unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.contains(name) && error.contains(expected), "{error}");
        }
    }
    assert!(stage.neutron.ports(&[("device_id", &stage.node.uuid.to_string())]).await.unwrap().is_empty());
}

#[tokio::test]
async fn openstack_a_switch_that_nobody_knows_leaves_nothing() {
    let mut stage = Stage::new().await;
    let link = &mut stage.node.ports[0].local_link_connection;
    link.insert("switch_info".into(), "tor9".into());
    link.insert("switch_id".into(), "00:00:5e:00:53:99".into());
    let error = stage.network.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains(&stage.address(0)) && error.contains("has binding_failed"), "{error}");
    assert_eq!(stage.note(0, "provisioning_vif_port_id"), None);
    assert!(stage.neutron.ports(&[("device_id", &stage.node.uuid.to_string())]).await.unwrap().is_empty());
}
