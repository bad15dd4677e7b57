//! Auto-discovery: unknown machines that post an inventory.

use super::{VERSION, manageable, post};
use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{MAC, Stage, new_node};
use farrier_conductor::inventory::AddPorts;
use farrier_conductor::model::{InitialState, NewNode, ProvisionState};
use farrier_engine::store::NodeStore;
use serde_json::{Value, json};

/// A conductor that enrols unknown machines.
async fn discovering() -> Stage {
    let script = Script { silent: true, ..Script::default() };
    manageable(script, |settings| {
        settings.discovery_driver = Some("fake".into());
        settings.add_ports = AddPorts::All;
    })
    .await
}

#[tokio::test]
async fn an_unknown_machine_is_enrolled_once_where_a_driver_is_set_for_it() {
    let stage = discovering().await;
    let seen = |address: &str, bmc: &str| {
        json!({"inventory": {"interfaces": [{"name": "e", "mac_address": address, "ipv4_address": "192.0.2.1"}],
            "bmc_address": bmc, "cpu": {"architecture": "x86_64"}}})
    };
    let unknown = seen("52:54:00:00:00:77", "203.0.113.9");
    // One that names a node, or has a card of one that waits for nothing, is not unknown.
    let (named, known) = (format!("?node_uuid={}", uuid::Uuid::new_v4()), seen(MAC, "203.0.113.9"));
    assert_eq!(post(&stage, &named, Some("1.95"), &unknown).await.status(), 404);
    assert_eq!(post(&stage, "", None, &known).await.status(), 404);
    // A machine without a card that can be a port.
    assert_eq!(post(&stage, "", None, &seen("80:00:02:08", "203.0.113.9")).await.status(), 404);

    let (first, second) = tokio::join!(post(&stage, "", None, &unknown), post(&stage, "", None, &unknown));
    let mut statuses = [first.status().as_u16(), second.status().as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 404]);
    assert_eq!(post(&stage, "", None, &unknown).await.status(), 404);
    let owners = stage.store.owners(&["52:54:00:00:00:77".parse().unwrap()]).await.unwrap();
    let [uuid] = owners[..] else { panic!("{owners:?}") };
    let node = stage.store.get(uuid).await.unwrap().unwrap().node;
    assert_eq!((node.provision_state, &*node.driver), (ProvisionState::Enroll, "fake"));
    assert_eq!((node.properties["cpu_arch"].as_str(), node.ports.len()), (Some("x86_64"), 1));
    let url = format!("{}/v1/nodes/{uuid}/inventory", stage.node_api);
    let told: Value = stage.http.get(url).header(VERSION, "1.81").send().await.unwrap().json().await.unwrap();
    assert_eq!(told["plugin_data"]["auto_discovered"], json!(true));
}

#[tokio::test]
async fn no_more_machines_are_discovered_than_may_wait_in_enroll() {
    let stage = discovering().await;
    // The stage has one that is manageable.
    for number in 0..255 {
        let new = new_node(&format!("waiting-{number}"), &format!("52:54:00:01:00:{number:02x}"));
        stage.conductor.create_node(NewNode { initial_state: InitialState::Enroll, ..new }).await.unwrap();
    }
    for (address, expected) in [("52:54:00:02:00:01", 202), ("52:54:00:02:00:02", 404)] {
        let card = json!({"name": "e", "mac_address": address, "ipv4_address": "192.0.2.1"});
        let report = json!({"inventory": {"interfaces": [card]}});
        assert_eq!(post(&stage, "", None, &report).await.status(), expected, "{address}");
    }
}

#[tokio::test]
async fn a_driver_for_unknown_machines_that_there_is_not_is_told_at_the_start() {
    let stage = Stage::new(Script::default()).await;
    let mut settings = stage.conductor.settings().clone();
    settings.inspection.discovery_driver = Some("ipmo".into());
    let error = stage.machine.conductor(settings, stage.store.clone()).start().await.err().unwrap();
    assert!(error.to_string().contains("ipmo"), "{error}");
}
