//! Whole deployments.

mod calls;
mod custom;
mod other_interfaces;

use crate::stand_ins::agent::{FLUSH, Script};
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{PATIENCE, Stage, image};
use farrier_conductor::Error as TaskError;
use farrier_conductor::EventKind;
use farrier_conductor::model::{Node, PowerState, ProvisionState};
use farrier_engine::Error;
use farrier_engine::records::Order;
use serde_json::json;
use std::time::{Duration, Instant};

fn name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::PowerOn => "power_on",
        EventKind::FirstHeartbeat => "first_heartbeat",
        EventKind::WriteStarted => "write_started",
        EventKind::Progress(_) => "progress",
        EventKind::ImageWritten => "image_written",
        EventKind::ImageVerified { .. } => "image_verified",
        EventKind::BootEntry => "boot_entry",
        EventKind::PoweredOff => "powered_off",
        EventKind::Booting => "booting",
        EventKind::Retried { .. } => "retried",
        EventKind::Active => "active",
        EventKind::Failed { .. } => "failed",
    }
}

/// Whether the record shows anything of an agent.
fn knows_an_agent(node: &Node) -> bool {
    node.driver_internal_info.others.keys().any(|key| key.starts_with("agent_"))
}

#[tokio::test]
async fn a_node_becomes_active_and_its_events_tell_how() {
    let stage = Stage::new(Script::default()).await;
    stage.watch().await;
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    assert_eq!(node.power_state, Some(PowerState::On));
    assert_eq!(node.target_provision_state, None);
    assert_eq!(node.deploy_step, None);
    assert!(!knows_an_agent(&node));

    let events = stage.until(|events| events.last().unwrap().kind == EventKind::Active).await;
    let names: Vec<_> = events.iter().map(|event| name(&event.kind)).collect();
    let expected = [
        "power_on",
        "first_heartbeat",
        "write_started",
        "progress",
        "image_written",
        "image_verified",
        "boot_entry",
        "powered_off",
        "booting",
        "active",
    ];
    assert_eq!(names, expected);
    assert!(events.is_sorted_by(|one, other| one.at <= other.at && one.sequence < other.sequence));
    let report = Some(json!({"bytes_written": 100, "bytes_zeroed": 28}));
    assert!(events.iter().any(|event| event.kind == EventKind::ImageVerified { report: report.clone() }));
}

#[tokio::test]
async fn the_machine_boots_the_ramdisk_once_and_then_its_disk() {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let boots = stage.machine.power_ons();
    let [Some(Boot::Ramdisk(parameters)), Some(Boot::Disk)] = &boots[..] else { panic!("{boots:?}") };
    assert_eq!(parameters.to_string(), format!("ipa-api-url={}", stage.ramdisk_api));
}

#[tokio::test]
async fn the_agent_gets_the_commands_of_the_contract() {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let accepted = stage.machine.script.lock().unwrap().accepted.clone();
    let names: Vec<_> = accepted.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "deploy.get_deploy_steps",
        "deploy.execute_deploy_step",
        "standby.get_partition_uuids",
        "image.install_bootloader",
        "standby.power_off",
    ];
    assert_eq!(names, expected);
    let write = &accepted[1].1;
    assert_eq!(write["step"]["step"], "write_image");
    assert_eq!(write["step"]["interface"], "deploy");
    // The node is masked, what the step must have is not (lesson S48).
    assert_eq!(write["step"]["args"]["configdrive"], "H4sIAAAA");
    assert_eq!(write["node"]["instance_info"]["configdrive"], "******");
    assert_eq!(write["node"]["driver_internal_info"]["agent_secret_token"], "******");
    let port = &write["ports"][0];
    assert_eq!((&port["address"], &port["pxe_enabled"]), (&json!("52:54:00:00:00:01"), &json!(true)));
    assert_eq!(accepted[3].1["target_boot_mode"], "uefi");
}

#[tokio::test]
async fn a_partition_image_gets_its_partitions_and_a_boot_loader() {
    let stage = Stage::new(Script::default()).await;
    let mut info = image();
    for (key, value) in [
        ("image_type", json!("partition")),
        ("image_disk_format", json!("qcow2")),
        ("root_gb", json!(2)),
        ("ephemeral_gb", json!(1)),
    ] {
        info.insert(key.to_owned(), value);
    }
    stage.conductor.order("n1", Order::deploy(info.clone())).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    let accepted = stage.machine.script.lock().unwrap().accepted.clone();
    let of = |command: &str| &accepted.iter().find(|(name, _)| name == command).unwrap().1;
    let told = &of("deploy.execute_deploy_step")["step"]["args"]["image_info"];
    assert_eq!((&told["image_type"], &told["disk_format"]), (&json!("partition"), &json!("qcow2")));
    assert_eq!((&told["root_mb"], &told["ephemeral_mb"]), (&json!(2048), &json!(1024)));
    let expected = json!({"root_uuid": "ROOT", "efi_system_part_uuid": "ESP", "prep_boot_part_uuid": null,
        "target_boot_mode": "uefi"});
    assert_eq!(*of("image.install_bootloader"), expected);

    // A rebuild keeps the ephemeral partition where nothing moves, and else is refused before the machine is touched.
    info.insert("preserve_ephemeral".to_owned(), json!(true));
    info.insert("root_gb".to_owned(), json!(3));
    let refused = stage.conductor.order("n1", Order::deploy(info.clone())).await.unwrap_err().to_string();
    assert!(refused.starts_with("preserve_ephemeral: "), "{refused}");
    assert_eq!(stage.node().await.provision_state, ProvisionState::Active);
    info.insert("root_gb".to_owned(), json!(2));
    stage.conductor.order("n1", Order::deploy(info)).await.unwrap();
    stage.until(|events| events.last().unwrap().kind == EventKind::Active).await;
}

#[tokio::test]
async fn root_device_hints_that_no_disk_is_found_by_are_refused_before_the_machine_is_touched() {
    let stage = Stage::new(Script::default()).await;
    let mut info = image();
    info.insert("root_device".to_owned(), json!({"seriall": "ROOT1"}));
    let refused = stage.conductor.order("n1", Order::deploy(info)).await.unwrap_err().to_string();
    assert!(refused.starts_with("root_device: root device hint seriall"), "{refused}");
    assert_eq!(stage.node().await.provision_state, ProvisionState::Available);
    assert!(stage.machine.power_ons().is_empty());
}

#[tokio::test]
async fn f64_a_failed_write_is_told_in_the_agents_words() {
    let text = "http://192.0.2.5/debian.raw: the server answered 404; check the URL";
    let stage = Stage::new(Script { write_fails: Some(text.into()), ..Script::default() }).await;
    let error = stage.deploy_and_fail().await;
    assert_eq!(error, format!("deploy step write_image failed: {text} [FAR-0411]"));
    let node = stage.node().await;
    assert_eq!(node.power_state, Some(PowerState::Off));
    assert!(!knows_an_agent(&node));
    assert_eq!(node.deploy_step, None);
    let events = stage.until(|_| true).await;
    assert_eq!(events.last().unwrap().kind, EventKind::Failed { error });
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::ImageVerified { .. })));
}

#[tokio::test]
async fn a_failed_boot_entry_fails_the_deployment() {
    let script = Script { bootloader_fails: Some("no ESP on /dev/vda".into()), ..Script::default() };
    let stage = Stage::new(script).await;
    let error = stage.deploy_and_fail().await;
    assert_eq!(error, "deploy step prepare_instance_boot failed: no ESP on /dev/vda [FAR-0411]");
}

#[tokio::test]
async fn a_silent_machine_fails_with_what_to_look_at() {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |settings| {
        settings.deploy_callback_timeout = Duration::from_millis(100);
    })
    .await;
    let error = stage.deploy_and_fail().await;
    for part in ["node n1", "no agent called", "DHCP", "console.log", "link eth0 is down", &stage.ramdisk_api]
    {
        assert!(error.contains(part), "{part:?} in {error:?}");
    }
    assert_eq!(stage.node().await.power_state, Some(PowerState::Off));
}

#[tokio::test]
async fn a_machine_that_goes_off_fails_at_once() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    stage.machine.go_off();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("the machine went off"));
}

#[tokio::test]
async fn f36_a_silent_machine_whose_medium_nobody_read_is_told_apart() {
    let script = Script { silent: true, serves_medium: true, ..Script::default() };
    let stage = Stage::with(script, |settings| {
        settings.deploy_callback_timeout = Duration::from_millis(100);
    })
    .await;
    let error = stage.deploy_and_fail().await;
    for part in ["no agent called (no read of its virtual medium is recorded", "boot order", "console.log"] {
        assert!(error.contains(part), "{part:?} in {error:?}");
    }
    assert!(!error.contains("DHCP"), "{error}");
}

#[tokio::test]
async fn e01_an_agent_that_calls_and_does_not_answer_fails_the_deployment_at_its_deadline() {
    let stage = Stage::with(Script { deaf: true, ..Script::default() }, |settings| {
        settings.deploy_callback_timeout = Duration::from_secs(3);
        settings.agent.command_timeout = Duration::from_millis(200);
    })
    .await;
    let begun = Instant::now();
    let error = stage.deploy_and_fail().await;
    assert!(begun.elapsed() > Duration::from_secs(3), "{error}");
    assert!(error.contains("cannot be reached after 3 attempts"), "{error}");
    assert!(error.contains("was silent for 3 s"), "{error}");
    let token = stage.machine.script.lock().unwrap().token.clone().unwrap();
    assert!(!error.contains(&token), "{error}");
}

/// An agent, or the network to it, may be gone for a while: nothing fails because of that.
#[tokio::test]
async fn e01_an_agent_that_cannot_be_reached_for_a_while_fails_nothing() {
    let stage = Stage::with(Script { deaf: true, ..Script::default() }, |settings| {
        settings.agent.command_timeout = Duration::from_millis(100);
    })
    .await;
    stage.deploy().await;
    stage.until(|events| events.iter().any(|event| matches!(event.kind, EventKind::FirstHeartbeat))).await;
    // Asked again and again meanwhile.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let state = stage.node().await.provision_state;
    assert!(matches!(state, ProvisionState::DeployWait | ProvisionState::Deploying), "{state}");
    stage.change(|script| script.deaf = false);
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
}

#[tokio::test]
async fn a_ramdisk_that_restarts_during_a_step_fails_it() {
    let stage = Stage::new(Script { restarts: true, ..Script::default() }).await;
    let error = stage.deploy_and_fail().await;
    assert!(error.starts_with("deploy step write_image failed: the ramdisk restarted"), "{error}");
}

#[tokio::test]
async fn f36_an_agent_that_cannot_serve_is_asked_again() {
    let stage = Stage::new(Script { sick: 2, ..Script::default() }).await;
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    assert_eq!(stage.machine.script.lock().unwrap().sick, 0, "it was never sick");
}

#[tokio::test]
async fn f36_an_agent_that_can_never_serve_fails_the_deployment_in_its_own_words() {
    let stage = Stage::new(Script { sick: u32::MAX, ..Script::default() }).await;
    let error = stage.deploy_and_fail().await;
    assert!(error.contains("refused") && error.contains("with status 503: out of memory"), "{error}");
}

/// An agent is the only one to tell that such a machine goes off, and its answer may be lost with it.
#[tokio::test]
async fn a_machine_whose_power_nobody_sees_is_taken_for_off_when_its_agent_is_gone() {
    let stage = Stage::with(Script { is_switched_by_hand: true, ..Script::default() }, |settings| {
        settings.power_off_timeout = Duration::from_secs(60);
    })
    .await;
    let started = Instant::now();
    stage.deploy().await;
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
    assert!(started.elapsed() < Duration::from_secs(30), "it was not seen to be gone");
}

/// As when a conductor is killed once it has told the agent: the next one finds none any more, and a machine that flushes
/// its disks.
#[tokio::test]
async fn a_machine_that_is_still_on_when_its_agent_is_gone_may_be_going_off() {
    let stage = Stage::with(Script { ends_before_its_machine: true, ..Script::default() }, |settings| {
        settings.power_off_timeout = Duration::from_secs(60);
    })
    .await;
    let started = Instant::now();
    stage.deploy().await;
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
    assert!(started.elapsed() > FLUSH, "it was forced off");
}

/// Asking such an agent takes longer than the pause between two looks at its node.
#[tokio::test]
async fn an_agent_that_vanishes_at_work_fails_the_deployment_in_time() {
    let stage = Stage::with(Script { calls_once: true, vanishes: true, ..Script::default() }, |settings| {
        settings.deploy_callback_timeout = Duration::from_secs(3);
    })
    .await;
    let error = stage.deploy_and_fail().await;
    assert!(error.contains("was silent for 3 s (step write_image)"), "{error}");
    assert_eq!(stage.node().await.power_state, Some(PowerState::Off));
}

/// A result counts for the step that it names.
#[tokio::test]
async fn the_success_of_another_step_is_none() {
    let stage = Stage::with(Script { lies: true, calls_once: true, ..Script::default() }, |settings| {
        settings.deploy_callback_timeout = Duration::from_secs(1);
    })
    .await;
    let error = stage.deploy_and_fail().await;
    assert!(error.contains("was silent for 1 s (step write_image)"), "{error}");
    assert_eq!(stage.machine.power_ons().len(), 1, "the disk was booted");
}

#[tokio::test]
async fn a_slow_agent_is_waited_for() {
    let slow = Some(Duration::from_millis(200));
    let stage = Stage::new(Script { slow, ..Script::default() }).await;
    stage.deploy().await;
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
}

#[tokio::test]
async fn a_bmc_that_hangs_fails_the_deployment_in_time() {
    let stage = Stage::with(Script { bmc_hangs: true, ..Script::default() }, |settings| {
        settings.power_read_timeout = Duration::from_millis(100);
    })
    .await;
    let error = stage.deploy_and_fail().await;
    let expected =
        "deploy step tear_down_agent failed: driver \"fake\" did not answer power.power_state within 0.1 s";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_busy_agent_gets_the_step_again() {
    let stage = Stage::new(Script { busy: 2, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let accepted = stage.machine.script.lock().unwrap().accepted.clone();
    assert_eq!(accepted.iter().filter(|(name, _)| name == "deploy.execute_deploy_step").count(), 1);
}

#[tokio::test]
async fn f37_a_step_whose_answer_was_lost_is_not_sent_twice() {
    let stage = Stage::new(Script { loses_answer: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let accepted = stage.machine.script.lock().unwrap().accepted.clone();
    assert_eq!(accepted.iter().filter(|(name, _)| name == "deploy.execute_deploy_step").count(), 1);
}

#[tokio::test]
async fn e17_a_step_that_ended_before_its_answer_was_missed_does_not_run_twice() {
    let stage = Stage::new(Script { loses_late_answer: true, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.last_error, None);
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices"]);
}

#[tokio::test]
async fn a_machine_that_stays_on_is_forced_off() {
    let stage = Stage::new(Script { stays_on: true, ..Script::default() }).await;
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
}

#[tokio::test]
async fn f39_a_failed_node_and_an_active_one_can_be_deployed_again() {
    let stage = Stage::new(Script { write_fails: Some("disk full".into()), ..Script::default() }).await;
    stage.deploy_and_fail().await;
    stage.machine.script.lock().unwrap().write_fails = None;
    for _ in 0..2 {
        stage.deploy().await;
        let node = stage.wait_for(ProvisionState::Active).await;
        assert_eq!(node.last_error, None);
    }
    assert_eq!(stage.machine.power_ons().len(), 5);
}

#[tokio::test]
async fn a_deployment_in_progress_is_not_started_twice() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    let error = stage.conductor.order("n1", Order::deploy(image())).await.unwrap_err();
    assert!(matches!(error, Error::Task(TaskError::InvalidState { .. })), "{error}");
    assert!(error.to_string().contains("wait call-back"), "{error}");
}

#[tokio::test]
async fn a_removed_instance_leaves_an_available_node_that_is_off() {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let refused = stage.conductor.order("n1", Order::Delete).await.unwrap_err();
    assert!(matches!(refused, Error::Task(TaskError::InvalidState { .. })), "{refused}");
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!(node.power_state, Some(PowerState::Off));
    assert!(node.instance_info.is_empty());
    stage.conductor.order("n1", Order::Delete).await.unwrap();
    stage.gone("n1").await;
}

/// The Python agent is led as Ironic leads it.
#[tokio::test]
async fn an_agent_that_does_not_offer_its_progress_is_not_asked_for_it() {
    let stage = Stage::new(Script { offers_no_progress: true, ..Script::default() }).await;
    stage.watch().await;
    stage.deploy().await;
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
    assert_eq!(stage.script().progress_asked, 0);
}

/// Nobody would see it, and an agent that writes has something else to do.
#[tokio::test]
async fn l01_an_agent_that_nobody_watches_is_not_asked_for_its_progress() {
    let stage = Stage::new(Script { blocked: true, ..Script::default() }).await;
    stage.deploy().await;
    let end = Instant::now() + PATIENCE;
    let passes = || stage.conductor.figures().workers.passes;
    while stage.script().accepted.iter().all(|(name, _)| name != "deploy.execute_deploy_step") {
        assert!(Instant::now() < end, "waited for the step");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seen = passes();
    while passes() < seen + 20 {
        assert!(Instant::now() < end, "waited for passes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(stage.script().progress_asked, 0);
    // As soon as somebody watches, it is.
    stage.watch().await;
    while stage.script().progress_asked == 0 {
        assert!(Instant::now() < end, "waited for progress");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.change(|script| script.blocked = false);
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
}

/// One request at a time tells how far a step is; its end is found without a heartbeat, which may get lost.
#[tokio::test]
async fn an_agent_at_work_is_asked_for_its_progress_alone() {
    let stage = Stage::new(Script { calls_once: true, ..Script::default() }).await;
    stage.watch().await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let listed = stage.machine.script.lock().unwrap().listed_at_work;
    assert!(listed <= 1, "its commands were listed {listed} times while it wrote");
}
