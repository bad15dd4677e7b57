//! Cleaning, automated and by hand.

mod certificates;
mod raid;

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{Stage, image};
use farrier_conductor::Error as TaskError;
use farrier_conductor::model::{Fault, PowerState, ProvisionState, StepId};
use farrier_engine::Error;
use farrier_engine::records::{Order, StepsOrder};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ERASED: [&str; 2] = ["clean deploy.erase_devices_metadata", "clean deploy.erase_devices"];

fn step(name: &str) -> Value {
    json!({"interface": "deploy", "step": name})
}

/// An offer of an agent.
fn offer(name: &str, priority: i64, rest: Value) -> Value {
    let mut offer = json!({"interface": "deploy", "step": name, "priority": priority});
    offer.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    offer
}

fn offers(offers: &[Value]) -> Script {
    Script { offers: Some(offers.to_vec()), ..Script::default() }
}

fn ramdisk_boots(stage: &Stage) -> usize {
    stage.machine.power_ons().iter().filter(|boot| matches!(boot, Some(Boot::Ramdisk(_)))).count()
}

async fn provide(stage: &Stage) {
    stage.manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
}

#[tokio::test]
async fn a_machine_is_cleaned_before_it_is_available_again() {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::Off), None));
    assert_eq!((node.target_provision_state, node.clean_step), (None, None));
    assert!(node.driver_internal_info.clean.steps.is_empty() && node.instance_info.is_empty());
    assert_eq!(stage.script().steps()[1..], ERASED);
    let (_, params) = stage.script().accepted.last().cloned().unwrap();
    // What the agent erases by (section 1.8).
    for (key, value) in [
        ("agent_erase_devices_iterations", json!(1)),
        ("agent_erase_devices_zeroize", json!(true)),
        ("agent_continue_if_secure_erase_failed", json!(false)),
        ("disk_erasure_concurrency", json!(4)),
    ] {
        assert_eq!(params["node"]["driver_internal_info"][key], value, "{key}");
    }
}

#[tokio::test]
async fn a_node_is_provided_by_cleaning_it() {
    let stage = Stage::new(Script::default()).await;
    provide(&stage).await;
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(stage.script().steps(), ERASED);
    assert_eq!((ramdisk_boots(&stage), stage.machine.power_ons().len()), (1, 1));
}

/// Nothing becomes available without being cleaned, unless an operator has said so.
#[tokio::test]
async fn cleaning_is_left_out_by_an_explicit_word_alone() {
    let stage = Stage::with(Script::default(), |settings| settings.automated_clean = false).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::Available).await;
    assert!(stage.machine.power_ons().is_empty() && node.last_error.is_none());

    let stage = Stage::with(Script::default(), |settings| {
        for priority in ["erase_devices", "erase_devices_metadata"] {
            settings.steps.clean.priorities.insert(StepId::new("deploy", priority), 0);
        }
    })
    .await;
    provide(&stage).await;
    stage.wait_for(ProvisionState::Available).await;
    assert!(stage.script().steps().is_empty());
    // An agent that has nothing to clean with is none.
    let stage = Stage::new(offers(&[])).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert!(node.last_error.unwrap().contains("lists no clean steps"));
}

#[tokio::test]
async fn priorities_and_disallowed_steps_are_the_conductors() {
    let stage = Stage::with(Script::default(), |settings| {
        let policy = &mut settings.steps.clean;
        policy.priorities.insert(StepId::new("deploy", "erase_devices"), 100);
        policy.disallowed.insert(StepId::new("deploy", "erase_devices_metadata"));
    })
    .await;
    provide(&stage).await;
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices"]);
}

#[tokio::test]
async fn f64_a_failed_cleaning_is_told_in_the_agents_words_and_the_node_is_nobodys() {
    let script = Script { write_fails: Some("/dev/sda: security is frozen".into()), ..Script::default() };
    let stage = Stage::new(script).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    let error = "clean step erase_devices_metadata failed: /dev/sda: security is frozen [FAR-0411]";
    assert_eq!(node.last_error.as_deref(), Some(error));
    assert_eq!((node.maintenance, node.fault), (true, Some(Fault::Clean)));
    assert_eq!(node.maintenance_reason.as_deref(), Some(error));
    // Whoever looks for what is wrong finds the ramdisk running.
    assert_eq!((node.power_state, node.target_power_state), (Some(PowerState::On), None));
    for refused in [
        stage.conductor.order("n1", Order::Provide).await,
        stage.conductor.order("n1", Order::deploy(image())).await,
    ] {
        assert!(matches!(refused, Err(Error::Task(TaskError::InvalidState { .. }))), "{refused:?}");
    }
    // The way out: manage, end the maintenance, provide.
    stage.change(|script| script.write_fails = None);
    stage.manageable().await;
    let forbidden = stage.conductor.order("n1", Order::clean(&[step("erase_devices")])).await;
    assert!(matches!(forbidden, Err(Error::Forbidden(_))), "{forbidden:?}");
    stage.conductor.set_maintenance("n1", false, None).await.unwrap();
    assert_eq!(stage.node().await.fault, None);
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
}

#[tokio::test]
async fn a_machine_whose_cleaning_failed_is_powered_off_where_that_is_wanted() {
    let script = Script { write_fails: Some("broken".into()), ..Script::default() };
    let stage = Stage::with(script, |settings| settings.poweroff_in_cleanfail = true).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!((node.power_state, node.target_power_state), (Some(PowerState::Off), None));
}

/// An agent that never called has broken nothing: there is no fault.
#[tokio::test]
async fn a_silent_machine_fails_its_cleaning_without_a_fault() {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |settings| {
        settings.clean_callback_timeout = std::time::Duration::from_millis(100);
    })
    .await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!((node.maintenance, node.fault), (false, None));
    assert!(node.last_error.unwrap().contains("no agent called"));
}

#[tokio::test]
async fn a_step_that_wants_a_reboot_gets_one_and_the_next_agent_goes_on() {
    let first = offer("first", 20, json!({"reboot_requested": true}));
    let stage = Stage::new(offers(&[first, offer("second", 10, json!({}))])).await;
    provide(&stage).await;
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(stage.script().steps(), ["clean deploy.first", "clean deploy.second"]);
    assert_eq!(ramdisk_boots(&stage), 2);
    // It was the second agent that was asked for its steps anew.
    let listed = stage.script().accepted.iter().filter(|(name, _)| name == "clean.get_clean_steps").count();
    assert_eq!(listed, 2);
}

/// Each boot has one of its own: the last call of an agent that ends is not taken for the first of the next.
#[tokio::test]
async fn a_token_on_the_medium_of_a_boot_is_told_to_nobody_who_asks_for_one() {
    let script = offers(&[offer("first", 20, json!({"reboot_requested": true}))]);
    let stage = Stage::new(Script { has_own_media: true, ..script }).await;
    provide(&stage).await;
    stage.wait_for(ProvisionState::Available).await;
    let script = stage.script();
    assert_eq!((script.steps().len(), script.looked_up.as_deref()), (1, Some("******")));
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    let boots = stage.machine.power_ons().into_iter().filter_map(|boot| match boot? {
        Boot::Ramdisk(parameters) => Some(parameters.to_string()),
        Boot::Disk | Boot::Memory(..) => None,
    });
    let token = |line: &str| line.split_once("ipa-agent-token=").map(|(_, token)| token.to_owned());
    let tokens: Vec<_> = boots.map(|line| token(&line).expect("it is on the medium")).collect();
    assert_eq!((tokens.len(), tokens[0].len()), (4, 43));
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 4, "{tokens:?}");
}

/// Ironic takes a step for done whose agent has forgotten it.
#[tokio::test]
async fn a_reboot_that_nobody_wants_fails_the_step() {
    let stage = Stage::new(Script { restarts: true, ..Script::default() }).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    let error = node.last_error.unwrap();
    assert!(error.starts_with("clean step erase_devices_metadata failed: the ramdisk restarted"), "{error}");
    assert_eq!(node.fault, Some(Fault::Clean));
}

#[tokio::test]
async fn an_automated_cleaning_begins_anew_when_the_hardware_managers_change() {
    let stage = Stage::new(Script::default()).await;
    provide(&stage).await;
    stage.told(|script| script.steps().len() == 1).await;
    stage.change(|script| script.mismatches = 1);
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(stage.script().steps(), [ERASED[0], ERASED[1], ERASED[0], ERASED[1]]);
}

#[tokio::test]
async fn a_cleaning_by_hand_runs_the_same_step_again_when_the_hardware_managers_change() {
    let stage = Stage::new(Script { mismatches: 2, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([step("erase_devices"), step("erase_devices_metadata")])).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.last_error, None);
    assert_eq!(stage.script().steps(), [ERASED[1], ERASED[1], ERASED[1], ERASED[0]]);
}

#[tokio::test]
async fn an_agent_that_never_agrees_with_its_own_listing_fails_the_step() {
    let stage = Stage::new(Script { mismatches: 9, mismatches_in_vain: true, ..Script::default() }).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert!(node.last_error.unwrap().contains("lists the same ones"));
}

#[tokio::test]
async fn a_busy_agent_gets_the_step_when_it_is_free() {
    let stage = Stage::new(Script { busy: 2, ..Script::default() }).await;
    provide(&stage).await;
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(stage.script().steps(), ERASED);
}

#[tokio::test]
async fn steps_by_hand_run_as_they_are_given_and_the_node_stays_manageable() {
    let arguments = json!({"argsinfo": {"depth": {"description": "how far", "required": true}}});
    let stage = Stage::new(offers(&[offer("dig", 0, arguments), offer("fill", 0, json!({}))])).await;
    stage.manageable().await;
    let dig = json!({"interface": "deploy", "step": "dig", "args": {"depth": 7}});
    // The end of an equal step before is not that of the next one (pitfall 13.10).
    stage.clean(json!([step("fill"), dig, dig])).await;
    let node = stage.node().await;
    assert_eq!(node.target_provision_state, Some(ProvisionState::Manageable));
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::Off)));
    assert_eq!(stage.script().steps(), ["clean deploy.fill", "clean deploy.dig", "clean deploy.dig"]);
    assert_eq!(stage.script().accepted.last().unwrap().1["step"]["args"], json!({"depth": 7}));
}

/// K29: what is no step is refused at once; what the node lacks fails the cleaning: before the machine is touched, where
/// that is known, else when the agent has called.
#[tokio::test]
async fn k29_steps_are_validated_when_they_come_and_when_they_are_known() {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    for (steps, part) in [
        (json!([]), "at least one"),
        (json!([{"step": "x"}]), "lacks \"interface\""),
        (json!([{"interface": "a", "step": "b", "priority": 1}]), "unknown key \"priority\""),
    ] {
        let refused = stage
            .conductor
            .order("n1", Order::clean(steps.as_array().unwrap()))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("clean_steps: ") && refused.contains(part), "{refused}");
    }
    assert_eq!(stage.node().await.provision_state, ProvisionState::Manageable);
    let boots = stage.machine.power_ons().len();
    for (steps, without_ramdisk, part) in [
        (json!([{"interface": "a", "step": "wait", "args": {"seconds": "long"}}]), false, "whole number"),
        (json!([{"interface": "a", "step": "hold", "args": {"x": 1}}]), false, "has no argument"),
        (json!([step("erase_devices")]), true, "deploy.erase_devices is unknown"),
    ] {
        stage
            .conductor
            .order(
                "n1",
                Order::Clean(StepsOrder {
                    disable_ramdisk: without_ramdisk,
                    ..StepsOrder::given(steps.as_array().unwrap())
                }),
            )
            .await
            .unwrap();
        let node = stage.wait_for(ProvisionState::CleanFailed).await;
        let error = node.last_error.unwrap();
        assert!(error.contains(part), "{error}");
        // Nothing was done to the machine.
        assert_eq!((node.fault, node.maintenance, stage.machine.power_ons().len()), (None, false, boots));
        stage.manageable().await;
    }

    stage.clean(json!([step("erase_devices"), step("polish"), step("wax")])).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("deploy.polish is unknown") && error.contains("deploy.wax is unknown"), "{error}");
    assert_eq!((node.fault, stage.script().steps().len()), (None, 0));
}

#[tokio::test]
async fn steps_of_the_bmc_need_no_ramdisk() {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    let power = |step: &str| json!({"interface": "power", "step": step});
    let steps = [power("at_once"), power("slow"), json!({"interface": "power", "step": "power_on"})];
    stage
        .conductor
        .order("n1", Order::Clean(StepsOrder { disable_ramdisk: true, ..StepsOrder::given(&steps) }))
        .await
        .unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, stage.script().driven), (None, vec!["at_once".into(), "slow".to_owned()]));
    assert_eq!((ramdisk_boots(&stage), stage.script().polls), (0, 5));
}

#[tokio::test]
async fn a_step_that_the_bmc_runs_is_asked_for_and_heartbeats_do_not_end_it() {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    let power = |step: &str| json!({"interface": "power", "step": step});
    stage
        .clean(json!([power("slow"), step("erase_devices"), power("with_reboot"), step("erase_devices")]))
        .await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    let script = stage.script();
    assert_eq!((node.last_error, script.polls), (None, 5));
    assert_eq!(script.steps(), [ERASED[1], ERASED[1]]);
    // It wants a second one, after which it runs again.
    assert_eq!(
        (script.driven, ramdisk_boots(&stage)),
        (["slow", "with_reboot", "with_reboot"].map(str::to_owned).into(), 3)
    );

    let stage = Stage::new(Script { bmc_fails: true, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([power("slow")])).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!(node.last_error.unwrap(), "clean step slow failed: driver_info power: is too weak [FAR-0213]");
    assert_eq!(node.fault, Some(Fault::Clean));
}

#[tokio::test]
async fn maintenance_pauses_a_cleaning_or_fails_it() {
    for pauses in [true, false] {
        let stage = Stage::with(Script { blocked: true, ..Script::default() }, |settings| {
            settings.allow_provisioning_in_maintenance = pauses;
        })
        .await;
        provide(&stage).await;
        stage.told(|script| script.steps().len() == 1).await;
        stage.wait_for(ProvisionState::CleanWait).await;
        stage.conductor.set_maintenance("n1", true, Some("a fan".into())).await.unwrap();
        if pauses {
            stage.change(|script| script.blocked = false);
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            assert_eq!(
                (stage.node().await.provision_state, stage.script().steps().len()),
                (ProvisionState::CleanWait, 1)
            );
            stage.conductor.set_maintenance("n1", false, None).await.unwrap();
            stage.wait_for(ProvisionState::Available).await;
        } else {
            let node = stage.wait_for(ProvisionState::CleanFailed).await;
            assert!(node.last_error.unwrap().contains("in maintenance"));
        }
    }
}

#[tokio::test]
async fn no_step_begins_once_maintenance_was_set_while_the_agent_was_being_asked() {
    let stage = Stage::new(Script { holds: true, ..Script::default() }).await;
    provide(&stage).await;
    stage.told(|script| script.held > 0).await;
    stage.conductor.set_maintenance("n1", true, None).await.unwrap();
    stage.change(|script| script.holds = false);
    // Time for a step that must not begin.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    stage.conductor.set_maintenance("n1", false, None).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    let script = stage.script();
    let begun: Vec<_> = script.accepted.iter().filter(|(_, params)| params.get("step").is_some()).collect();
    assert_eq!(begun.len(), 2, "{begun:?}");
    assert!(begun.iter().all(|(_, params)| params["node"]["maintenance"] == false), "{begun:?}");
}

#[tokio::test]
async fn a_machine_that_cannot_be_controlled_stays_enrolled() {
    use farrier_engine::store::{Change, NodeStore, Terms};
    let stage = Stage::new(Script::default()).await;
    for (broken, expected) in [(true, ProvisionState::Enroll), (false, ProvisionState::Manageable)] {
        let uuid = stage.node().await.uuid;
        let now = time::OffsetDateTime::now_utc();
        let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
        let (lease, mut record) = stage.store.take(uuid, &terms).await.unwrap();
        record.node.provision_state = ProvisionState::Enroll;
        record.node.driver_info.remove("fake_broken");
        if broken {
            record.node.driver_info.insert("fake_broken".into(), json!("yes"));
        }
        stage.store.write(&lease, &Change { ends_lease: true, ..Change::of(&record.node) }).await.unwrap();
        stage.conductor.order("n1", Order::Manage).await.unwrap();
        let node = stage.wait_for(expected).await;
        assert_eq!(node.last_error.is_some(), broken, "{node:?}");
        assert_eq!(node.power_state.is_some(), !broken);
    }
}
