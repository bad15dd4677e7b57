//! Power, as operators order it.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::operator::ask;
use crate::stand_ins::stage::{PATIENCE, Stage, fault, image, new_node};
use farrier_conductor::PowerAction;
use farrier_conductor::model::{BootDevice, DriverInfo, NewNode, Node, PowerState, ProvisionState};
use farrier_engine::Error;
use farrier_engine::records::Order;
use farrier_engine::store::NodeStore;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::time::Duration;

async fn put(stage: &Stage, node: &str, body: Value) -> reqwest::Response {
    ask(stage, Method::PUT, &format!("/v1/nodes/{node}/states/power"), &body).await
}

/// The node after an order.
async fn after(stage: &Stage, action: PowerAction, limit: Option<Duration>) -> Node {
    stage.conductor.order("n1", Order::Power { action, timeout: limit }).await.unwrap();
    let node = stage.idle().await;
    assert_eq!((node.target_power_state, node.driver_internal_info.power_action_timeout), (None, None));
    node
}

#[tokio::test]
async fn a_machines_system_is_shut_down_and_started_again() {
    let stage = Stage::new(Script::default()).await;
    let mut boots = 0;
    for (action, expected, more) in [
        (PowerAction::On, PowerState::On, 1),
        (PowerAction::On, PowerState::On, 0),
        (PowerAction::SoftReboot, PowerState::On, 1),
        (PowerAction::SoftOff, PowerState::Off, 0),
        (PowerAction::SoftOff, PowerState::Off, 0),
        (PowerAction::Off, PowerState::Off, 0),
        (PowerAction::Reboot, PowerState::On, 1),
    ] {
        let node = after(&stage, action, None).await;
        boots += more;
        assert_eq!((node.power_state, node.last_error), (Some(expected), None), "{action}");
        assert_eq!(stage.machine.power_ons().len(), boots, "{action}");
    }
}

#[tokio::test]
async fn a_system_that_does_not_shut_down_is_told_and_stays_on() {
    let stage = Stage::with(Script { stays_on: true, ..Script::default() }, |settings| {
        settings.soft_power_off_timeout = Duration::from_millis(50);
    })
    .await;
    after(&stage, PowerAction::On, None).await;
    for (action, limit, expected) in [
        (
            PowerAction::SoftOff,
            None,
            "\"power off\" by \"soft power off\": the machine's system did not shut down within 0.05 s",
        ),
        (
            PowerAction::SoftReboot,
            Some(Duration::from_secs(1)),
            "\"power on\" by \"soft rebooting\": the machine's system did not shut down within 1 s",
        ),
    ] {
        let node = after(&stage, action, limit).await;
        let error = node.last_error.unwrap();
        assert!(error.starts_with(&format!("failed to change the power state to {expected}")), "{error}");
        assert_eq!((node.power_state, stage.machine.power_ons().len()), (Some(PowerState::On), 1));
    }
    // The next order forgets it.
    assert_eq!(after(&stage, PowerAction::On, None).await.last_error, None);
}

#[tokio::test]
async fn a_driver_that_hangs_has_a_deadline() {
    let stage = Stage::with(Script::default(), |settings| {
        settings.power_state_change_timeout = Duration::from_millis(50);
    })
    .await;
    after(&stage, PowerAction::On, None).await;
    let _hangs = stage.machine.power_off.lock().await;
    let error = after(&stage, PowerAction::Off, None).await.last_error.unwrap();
    let expected = "failed to change the power state to \"power off\" by \"power off\": driver \"fake\" did not answer \
                    power.power_off within 0.05 s; look at the machine's BMC [FAR-0217]";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn what_a_driver_cannot_do_is_refused_before_it_is_ordered() {
    let stage = Stage::new(Script::default()).await;
    let driver_info = DriverInfo(Map::from_iter([("fake_hard".to_owned(), "yes".into())]));
    let hard = NewNode { driver_info, ..new_node("n2", "52:54:00:00:00:02") };
    stage.conductor.create_node(hard).await.unwrap();
    for target in ["soft power off", "soft rebooting"] {
        assert_eq!(
            put(&stage, "n1", json!({"target": target, "timeout": 5})).await.status(),
            202,
            "{target}"
        );
        stage.idle().await;
        let refused = put(&stage, "n2", json!({"target": target})).await;
        assert_eq!(refused.status(), 400);
        let text = fault(refused).await;
        assert!(text.starts_with(&format!("{target} is not supported")), "{text}");
        assert_eq!(stage.conductor.node("n2").await.unwrap().target_power_state, None);
    }
    for body in [json!({"target": "sideways"}), json!({"target": "power on", "timeout": 0})] {
        assert_eq!(put(&stage, "n1", body.clone()).await.status(), 400, "{body}");
    }
}

/// Lesson F64: switching the machine of a failed operation does not hide why it failed.
#[tokio::test]
async fn f64_the_reason_of_a_failure_outlives_power_actions() {
    let stage = Stage::new(Script { write_fails: Some("disk full".into()), ..Script::default() }).await;
    let error = stage.deploy_and_fail().await;
    for action in [PowerAction::On, PowerAction::Off] {
        let node = after(&stage, action, None).await;
        assert_eq!(
            (node.provision_state, node.last_error.as_deref()),
            (ProvisionState::DeployFailed, Some(&*error))
        );
    }
}

/// A machine that must never be powered off, and the node of another that cannot be reset.
async fn never_off(script: Script) -> Stage {
    let stage = Stage::new(script).await;
    stage.change_node(|node| node.disable_power_off = true).await;
    stage.machine.state.lock().unwrap().power = PowerState::On;
    stage
}

#[tokio::test]
async fn k25_a_machine_that_must_never_be_powered_off_is_reset_in_place_of_that() {
    let stage = never_off(Script::default()).await;
    for target in ["power off", "soft power off"] {
        let refused = put(&stage, "n1", json!({"target": target})).await;
        assert_eq!(refused.status(), 400, "{target}");
        assert!(fault(refused).await.starts_with("disable_power_off: "), "{target}");
    }
    let node = after(&stage, PowerAction::Reboot, None).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::On), None));
    assert_eq!(stage.machine.power_ons().len(), 1);

    // K25: so it is when its system is to be rebooted softly, which 202 answers.
    let node = after(&stage, PowerAction::SoftReboot, None).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::On), None));
    assert_eq!(stage.machine.power_ons().len(), 2);

    stage
        .change_node(|node| {
            node.driver_info.insert("fake_hard".to_owned(), "yes".into());
        })
        .await;
    let refused = put(&stage, "n1", json!({"target": "rebooting"})).await;
    assert!(fault(refused).await.contains("disable_power_off needs"));
    let refused = stage.conductor.order("n1", Order::deploy(image())).await.unwrap_err().to_string();
    assert!(refused.contains("disable_power_off needs"), "{refused}");
}

/// Section 4.5: its agent is locked down, and every boot is a reset.
#[tokio::test]
async fn a_machine_that_must_never_be_powered_off_is_cleaned_deployed_rescued_and_undeployed() {
    let stage = never_off(Script::default()).await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let told: Vec<_> = stage.script().accepted.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(told[told.len() - 2..], ["standby.sync", "system.lockdown"]);
    stage.conductor.order("n1", Order::rescue("oats")).await.unwrap();
    stage.wait_for(ProvisionState::Rescue).await;
    stage.conductor.order("n1", Order::Unrescue).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    assert_eq!(stage.machine.offs(), 0);
    let boots = stage.machine.power_ons();
    let expected = [
        Some("ramdisk"),
        Some("ramdisk"),
        Some("disk"),
        Some("ramdisk"),
        Some("disk"),
        None,
        Some("ramdisk"),
    ];
    let seen = boots
        .iter()
        .map(|boot| boot.as_ref().map(|boot| if *boot == Boot::Disk { "disk" } else { "ramdisk" }));
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

/// A token on the medium is that of the next agent, too: what the one before tells while it goes down is not kept.
#[tokio::test]
async fn e10_the_last_heartbeat_before_an_operators_reboot_is_not_taken_for_one_of_the_next_agent() {
    let stage = Stage::new(Script { has_own_media: true, blocked: true, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices_metadata"}])).await;
    stage.told(|script| !script.steps().is_empty()).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    let uuid = stage.node().await.uuid;
    let certificate = async || stage.store.get(uuid).await.unwrap().unwrap().session.agent_verify_ca;
    let until = async |wanted: &dyn Fn(Option<String>) -> bool| {
        let end = std::time::Instant::now() + PATIENCE;
        while !wanted(certificate().await) {
            assert!(std::time::Instant::now() < end, "the heartbeats are not as expected");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let before = certificate().await.unwrap();
    let goes_down = stage.machine.power_off.lock().await;
    let told = stage.machine.told_to_go_off.notified();
    // Whoever watches over the wait has the node now and then.
    while stage
        .conductor
        .order("n1", Order::Power { action: PowerAction::Reboot, timeout: None })
        .await
        .is_err()
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The agent of before calls while its machine goes down.
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    until(&|now| now.as_ref() == Some(&before)).await;
    drop(goes_down);
    until(&|now| now.is_some_and(|now| now != before)).await;
}

#[tokio::test]
async fn c27_looking_into_virtual_drives_needs_no_lease() {
    let stage = Stage::new(Script::default()).await;
    after(&stage, PowerAction::On, None).await;
    let goes_down = stage.machine.power_off.lock().await;
    stage.conductor.order("n1", Order::Power { action: PowerAction::Off, timeout: None }).await.unwrap();
    let looked = stage.conductor.machines().virtual_media("n1").await;
    assert!(!matches!(looked, Err(Error::Store(_))), "{looked:?}");
    let filled =
        stage.conductor.machines().attach_virtual_media("n1", BootDevice::Cdrom, "http://h/1.iso").await;
    assert!(matches!(filled, Err(Error::Store(_))), "{filled:?}");
    drop(goes_down);
}

/// An ISO may have its root file system on itself: it stays in the drive until the agent is off.
#[tokio::test]
async fn c18_media_stay_in_until_the_agent_is_off() {
    for (has_own_media, expected) in [(true, PowerState::Off), (false, PowerState::On)] {
        let stage = Stage::new(Script { has_own_media, ..Script::default() }).await;
        stage.deploy().await;
        let node = stage.wait_for(ProvisionState::Active).await;
        assert_eq!(stage.machine.state.lock().unwrap().prepared, [expected]);
        assert_eq!(stage.machine.power_ons().last(), Some(&Some(Boot::Disk)));
        assert!(!node.driver_internal_info.instance_waits_for_agent);
    }
}
