//! The life of a node whose hardware is not there.

use super::{FAKE_HARDWARE, with_fake_hardware};
use farrier_conductor::model::{InitialState, InstanceInfo, NewNode, Node, PowerState, ProvisionState};
use farrier_conductor::{Drivers, PowerAction, Settings};
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// A conductor, and the folder of its nodes.
async fn started() -> (TempDir, Conductor) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    let drivers = with_fake_hardware(Drivers::default());
    let builder = Conductor::builder(Settings::new("http://127.0.0.1:1"), store, drivers);
    (folder, builder.start().await.unwrap())
}

async fn node(conductor: &Conductor, has_come: impl Fn(&Node) -> bool) -> Node {
    let end = Instant::now() + PATIENCE;
    loop {
        let node = conductor.node("n1").await.unwrap();
        if node.reservation.is_none() && has_come(&node) {
            return node;
        }
        assert!(Instant::now() < end, "the node stays {}: {:?}", node.provision_state, node.last_error);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn reaches(conductor: &Conductor, state: ProvisionState) -> Node {
    node(conductor, |node| node.provision_state == state).await
}

#[tokio::test]
async fn a_whole_life_needs_no_machine() {
    let (_folder, conductor) = started().await;
    let conductor = &conductor;
    let (name, initial_state) = (Some("n1".to_owned()), InitialState::Enroll);
    let new = NewNode { name, driver: FAKE_HARDWARE.to_owned(), initial_state, ..NewNode::default() };
    conductor.create_node(new).await.unwrap();

    conductor.order("n1", Order::Manage).await.unwrap();
    reaches(conductor, ProvisionState::Manageable).await;
    conductor.order("n1", Order::Inspect).await.unwrap();
    reaches(conductor, ProvisionState::Manageable).await;
    let step = [json!({"interface": "vendor", "step": "log_passthrough"})];
    conductor.order("n1", Order::clean(&step)).await.unwrap();
    reaches(conductor, ProvisionState::Manageable).await;
    conductor.order("n1", Order::Provide).await.unwrap();
    let cleaned = reaches(conductor, ProvisionState::Available).await;
    assert!(cleaned.driver_internal_info.erasure.is_some_and(|mark| !mark.is_proven));

    conductor.order("n1", Order::power(PowerAction::On)).await.unwrap();
    node(conductor, |node| node.power_state == Some(PowerState::On)).await;
    conductor.order("n1", Order::deploy(InstanceInfo::default())).await.unwrap();
    reaches(conductor, ProvisionState::Active).await;
    conductor.order("n1", Order::rescue("oats")).await.unwrap();
    let rescued = reaches(conductor, ProvisionState::Rescue).await;
    assert!(rescued.instance_info.hashed_rescue_password().is_none());
    conductor.order("n1", Order::Unrescue).await.unwrap();
    reaches(conductor, ProvisionState::Active).await;
    conductor.order("n1", Order::service(&step)).await.unwrap();
    reaches(conductor, ProvisionState::Active).await;
    conductor.order("n1", Order::Undeploy).await.unwrap();
    let last = reaches(conductor, ProvisionState::Available).await;
    assert_eq!((last.power_state, last.last_error), (Some(PowerState::Off), None));
    conductor.order("n1", Order::Delete).await.unwrap();
    let end = Instant::now() + PATIENCE;
    while conductor.node("n1").await.is_ok() {
        assert!(Instant::now() < end, "the node stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What clients that test themselves with it ask for: its console, and steps of BIOS, firmware and RAID.
#[tokio::test]
async fn k14_its_console_and_its_steps_of_bios_firmware_and_raid_are_there() {
    let (_folder, conductor) = started().await;
    let conductor = &conductor;
    let kinds = ["console", "bios", "firmware", "raid"];
    let mut new = json!({"name": "n1", "driver": FAKE_HARDWARE});
    kinds.iter().for_each(|kind| new[format!("{kind}_interface")] = json!("fake"));
    let new = serde_json::from_value::<NewNode>(new).unwrap();
    conductor.create_node(NewNode { initial_state: InitialState::Enroll, ..new }).await.unwrap();
    conductor.order("n1", Order::Manage).await.unwrap();
    reaches(conductor, ProvisionState::Manageable).await;

    for (is_enabled, access) in [(true, true), (false, false)] {
        conductor.machines().set_console("n1", is_enabled).await.unwrap();
        node(conductor, |node| node.console_enabled == is_enabled).await;
        assert_eq!(conductor.machines().console_access("n1").await.unwrap().is_some(), access);
    }
    for (interface, step) in [
        ("bios", "apply_configuration"),
        ("bios", "factory_reset"),
        ("firmware", "update"),
        ("raid", "delete_configuration"),
    ] {
        conductor.order("n1", Order::clean(&[json!({"interface": interface, "step": step})])).await.unwrap();
        let node = reaches(conductor, ProvisionState::Manageable).await;
        assert_eq!(node.last_error, None, "{interface} {step}");
    }
}

#[tokio::test]
async fn k15_it_has_the_keys_that_clients_expect() {
    let (_folder, conductor) = started().await;
    let keys: Vec<_> = conductor.machines().properties(FAKE_HARDWARE).unwrap().into_keys().collect();
    assert_eq!(keys, ["B1", "B2"]);
}
