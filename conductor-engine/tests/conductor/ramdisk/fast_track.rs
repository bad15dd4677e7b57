//! Fast track: agents stay from one operation to the next, which needs no boot then.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{PATIENCE, Stage, new_node};
use farrier_conductor::model::{DriverInfo, NewNode, Node, PowerAction, PowerState, ProvisionState};
use farrier_engine::records::Order;
use farrier_engine::store::NodeStore;
use serde_json::{Map, json};
use std::time::{Duration, Instant};

/// A machine that was cleaned, and whose agent stays.
async fn cleaned() -> (Stage, Node) {
    let stage = Stage::with(Script::default(), |settings| settings.fast_track = true).await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!((&node.last_error, node.power_state), (&None, Some(PowerState::On)));
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices_metadata", "clean deploy.erase_devices"]);
    (stage, node)
}

/// Deploys, and tells how often the ramdisk was booted in all.
async fn deployed(stage: &Stage) -> usize {
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    let boots = stage.machine.power_ons();
    assert_eq!(boots.last(), Some(&Some(Boot::Disk)));
    boots.iter().filter(|boot| matches!(boot, Some(Boot::Ramdisk(_)))).count()
}

#[tokio::test]
async fn f39_an_agent_that_stays_deploys_without_another_boot() {
    let (stage, _) = cleaned().await;
    stage.change(|script| {
        let step = json!({"interface": "deploy", "step": "polish", "priority": 90});
        (script.offers, script.accepted) = (Some(vec![step]), Vec::new());
    });
    assert_eq!(deployed(&stage).await, 1);
    // It is asked for its steps all the same (lesson F41).
    assert_eq!(stage.script().steps(), ["deploy deploy.polish", "deploy deploy.write_image"]);
}

#[tokio::test]
async fn f39_an_agent_that_stays_cleans_again_without_another_boot() {
    let (stage, _) = cleaned().await;
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    stage.wait_for(ProvisionState::Manageable).await;
    stage.change(|script| script.accepted.clear());
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage.told(|script| script.steps() == ["clean deploy.erase_devices"]).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    assert_eq!(stage.machine.power_ons().len(), 1);
}

/// A machine that was inspected, and whose agent has not called yet.
async fn inspected() -> Stage {
    let script = Script { hesitates: true, ..Script::default() };
    let stage = Stage::with(script, |settings| settings.fast_track = true).await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((&node.last_error, node.power_state), (&None, Some(PowerState::On)));
    stage
}

/// Cleans, and tells how often the ramdisk was booted in all.
async fn cleaned_after(stage: &Stage) -> usize {
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.change(|script| script.hesitates = false);
    stage.told(|script| script.steps() == ["clean deploy.erase_devices"]).await;
    assert_eq!(stage.wait_for(ProvisionState::Manageable).await.last_error, None);
    let boots = stage.machine.power_ons();
    boots.iter().filter(|boot| matches!(boot, Some(Boot::Ramdisk(_)))).count()
}

#[tokio::test]
async fn f39_an_agent_that_has_posted_its_inventory_is_waited_for() {
    assert_eq!(cleaned_after(&inspected().await).await, 1);
}

#[tokio::test]
async fn an_agent_that_has_posted_is_gone_when_its_machine_was_switched() {
    let stage = inspected().await;
    stage.conductor.order("n1", Order::power(PowerAction::Reboot)).await.unwrap();
    stage.idle().await;
    assert_eq!(cleaned_after(&stage).await, 2);
}

#[tokio::test]
async fn f40_heartbeats_between_operations_are_recorded_and_lookups_answered() {
    let (stage, node) = cleaned().await;
    let heard =
        async || stage.store.get(node.uuid).await.unwrap().unwrap().session.agent_last_heartbeat.unwrap();
    let (first, end) = (heard().await, Instant::now() + PATIENCE);
    while heard().await == first {
        assert!(Instant::now() < end, "no heartbeat is recorded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(stage.node().await.provision_state, ProvisionState::Available);
    let lookup = stage.get("/v1/lookup?addresses=52:54:00:00:00:01", "1.62").await;
    assert_eq!(lookup.status(), 200);
}

#[tokio::test]
async fn an_agent_that_is_gone_is_booted_again() {
    let (stage, _) = cleaned().await;
    stage.machine.end_agent();
    assert_eq!(deployed(&stage).await, 2);
}

/// Pitfall 13.21: what is known of the agent outlives a power loss that nobody noticed.
#[tokio::test]
async fn a_machine_that_went_off_unnoticed_is_booted_again() {
    let (stage, _) = cleaned().await;
    stage.machine.go_off();
    assert_eq!(deployed(&stage).await, 2);
}

#[tokio::test]
async fn an_agent_that_was_not_heard_of_lately_is_booted_again() {
    let stage = Stage::with(Script { calls_once: true, ..Script::default() }, |settings| {
        (settings.fast_track, settings.fast_track_timeout) = (true, Duration::from_secs(240));
    })
    .await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    stage.clock.jump(time::Duration::seconds(241));
    assert_eq!(deployed(&stage).await, 2);
}

#[tokio::test]
async fn a_node_may_be_another_than_the_setting_says() {
    let stage = Stage::with(Script::default(), |settings| settings.fast_track = true).await;
    for (name, mac, value, expected) in
        [("n2", "52:54:00:00:00:02", json!("false"), 200), ("n3", "52:54:00:00:00:03", json!("maybe"), 400)]
    {
        let driver_info = DriverInfo(Map::from_iter([("fast_track".to_owned(), value)]));
        stage.conductor.create_node(NewNode { driver_info, ..new_node(name, mac) }).await.unwrap();
        let lookup = stage.get(&format!("/v1/lookup?addresses={mac}"), "1.62").await;
        assert_eq!(lookup.status(), 404, "{name}");
        stage.conductor.order(name, Order::Manage).await.unwrap();
        while stage.conductor.node(name).await.unwrap().provision_state != ProvisionState::Manageable {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ordered = stage.conductor.order(name, Order::Provide).await;
        assert_eq!(ordered.is_ok(), expected == 200, "{name} {ordered:?}");
    }
}

/// Without fast track the machine is switched off when it is clean.
#[tokio::test]
async fn an_agent_that_may_not_stay_is_powered_off_with_its_machine() {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!(node.power_state, Some(PowerState::Off));
    assert_eq!(stage.get("/v1/lookup?addresses=52:54:00:00:00:01", "1.62").await.status(), 404);
}
