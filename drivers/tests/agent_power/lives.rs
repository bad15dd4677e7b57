//! What nodes go through whose machines are rebooted by their agents.

use crate::stage::{Stage, refusal};
use farrier_conductor::PowerAction;
use farrier_conductor::model::{
    InstanceInfo, InterfaceKind, PlannedStep, PowerState, ProvisionState, StepKind,
};
use farrier_engine::records::{Order, Verb};
use serde_json::json;
use std::time::Duration;

const REBOOT: &str = "standby.run_image";

fn image() -> InstanceInfo {
    let info = json!({
        "image_source": "http://192.0.2.5/debian.raw", "image_checksum": format!("sha256:{}", "a".repeat(64)),
    });
    serde_json::from_value(info).unwrap()
}

#[tokio::test]
async fn a_step_that_wants_a_reboot_goes_on_in_the_next_agent() {
    let stage = Stage::manageable().await;
    let steps = ["flash", "erase_devices"].map(|step| json!({"interface": "deploy", "step": step}));
    stage.clean(json!(steps)).await;
    stage
        .until("the end", async || stage.machine.state().commands.last()?.contains("erase").then_some(()))
        .await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    let state = stage.machine.state();
    let [list, flash, erase] =
        ["get_clean_steps", "execute_clean_step flash", "execute_clean_step erase_devices"]
            .map(|command| format!("clean.{command}"));
    assert_eq!(state.commands, [&list, &flash, REBOOT, &list, &erase]);
    assert_eq!((state.ramdisks, state.disks), (2, 0));
}

/// A reboot that is a step by itself is done when the machine's ramdisk answers again, not when it was ordered.
#[tokio::test]
async fn a_step_that_is_a_reboot_ends_when_the_next_agent_calls() {
    let stage = Stage::manageable().await;
    let reboot = json!({"interface": "power", "step": "reboot"});
    stage.clean(json!([reboot, reboot])).await;
    stage.until("both", async || (stage.machine.state().ramdisks == 3).then_some(())).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.last_error, None);
    assert_eq!(stage.power_fault().await, None, "the third agent has called");
}

/// A lookup while the machine restarts is refused until later: a masked token is the end of an agent.
#[tokio::test]
async fn f39_the_next_agent_gets_a_token_even_if_it_asks_before_the_order_to_reboot_is_answered() {
    let stage = Stage::manageable().await;
    stage.machine.state().is_quick = true;
    let steps = ["flash", "erase_devices"].map(|step| json!({"interface": "deploy", "step": step}));
    stage.clean(json!(steps)).await;
    stage
        .until("the end", async || stage.machine.state().commands.last()?.contains("erase").then_some(()))
        .await;
    assert_eq!(stage.wait_for(ProvisionState::Manageable).await.last_error, None);
    assert_eq!(stage.machine.state().ramdisks, 2);
}

/// The conductor that gave the order was killed before it could say so.
#[tokio::test]
async fn a_reboot_that_was_ordered_before_a_conductor_stopped_is_waited_for() {
    let stage = Stage::manageable().await;
    stage.machine.cut_off();
    stage
        .leave(|node| {
            let step = |name| PlannedStep { in_band: true, ..PlannedStep::new("deploy", name, 0) };
            let plan = node.plan_mut(StepKind::Clean);
            (plan.steps, plan.index) = (vec![step("flash"), step("erase_devices")], Some(0));
            plan.reboot = true;
            node.clean_step = Some(step("flash"));
            node.provision_state = ProvisionState::Cleaning;
            node.target_provision_state = Some(ProvisionState::Manageable);
        })
        .await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.machine.start_ramdisk();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.last_error, None);
    let listed = "clean.get_clean_steps";
    assert_eq!(stage.machine.state().commands, [listed, "clean.execute_clean_step erase_devices"]);
}

/// The conductor that gave the order was killed before the machine was gone, which it is by now. Nothing is ordered
/// again, and nothing fails because no agent answers.
#[tokio::test]
async fn an_agent_that_a_conductor_ended_before_it_stopped_is_not_missed() {
    for (verb, state, target, end) in [
        (Verb::Deploy, ProvisionState::Deploying, Some(ProvisionState::Active), ProvisionState::Active),
        (
            Verb::Inspect,
            ProvisionState::Inspecting,
            Some(ProvisionState::Manageable),
            ProvisionState::InspectWait,
        ),
        (Verb::Reboot, ProvisionState::Manageable, None, ProvisionState::Manageable),
    ] {
        let stage = Stage::manageable().await;
        stage.machine.cut_off();
        stage
            .leave_rebooting(verb, |node| {
                (node.provision_state, node.target_provision_state) = (state, target);
                node.power_state = Some(PowerState::On);
                node.target_power_state = (verb == Verb::Reboot).then_some(PowerState::On);
                if verb == Verb::Deploy {
                    node.interfaces.set(InterfaceKind::Deploy, "direct");
                    let step = |name, priority| PlannedStep::new("deploy", name, priority);
                    let plan = node.plan_mut(StepKind::Deploy);
                    (plan.steps, plan.index) =
                        (vec![step("tear_down_agent", 40), step("boot_instance", 20)], Some(0));
                    node.deploy_step = Some(step("tear_down_agent", 40));
                }
            })
            .await;
        let node = stage.wait_for(end).await;
        assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)), "{verb:?}");
        assert_eq!(stage.machine.state().commands, [""; 0], "{verb:?}");
        if end == ProvisionState::Manageable {
            stage.machine.start_ramdisk();
            stage.alive(true).await;
        }
    }
}

#[tokio::test]
async fn a_machine_that_never_comes_back_fails_the_operation_at_its_deadline() {
    let stage =
        Stage::manageable_with(|settings| settings.clean_callback_timeout = Duration::from_secs(1)).await;
    stage.machine.state().is_lost = true;
    stage.clean(json!([{"interface": "deploy", "step": "flash"}])).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    let error = node.last_error.unwrap();
    assert!(error.starts_with("node n1: no agent called for 1 s (step flash); check"), "{error}");
    assert_eq!(stage.machine.state().commands.last().unwrap(), REBOOT);
}

#[tokio::test]
async fn an_agent_that_does_not_leave_fails_the_operation_at_its_deadline() {
    let stage =
        Stage::manageable_with(|settings| settings.power_state_change_timeout = Duration::from_millis(300))
            .await;
    stage.machine.state().stays = true;
    stage.clean(json!([{"interface": "deploy", "step": "flash"}])).await;
    let error = stage.wait_for(ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(
        error.contains("still answers 0.3 s after the command to reboot its machine; look at"),
        "{error}"
    );
    // An operator who restarts the machine by hand, as the error asks for, gets an agent with a token.
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    stage.wait_for(ProvisionState::Manageable).await;
    stage.machine.state().stays = false;
    stage.machine.start_ramdisk();
    stage.alive(true).await;
    stage.conductor.order("n1", Order::power(PowerAction::Reboot)).await.unwrap();
    stage.until("the reboot", async || (stage.machine.state().disks == 1).then_some(())).await;
}

#[tokio::test]
async fn f64_an_agent_that_cannot_reboot_its_machine_says_why() {
    let stage = Stage::manageable().await;
    stage.machine.state().reboot_fails = Some("the kernel refused".to_owned());
    stage.clean(json!([{"interface": "deploy", "step": "flash"}])).await;
    let error = stage.wait_for(ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(error.contains("the kernel refused"), "{error}");
    // It is there still.
    stage.machine.state().reboot_fails = None;
    stage.conductor.order("n1", Order::power(PowerAction::Reboot)).await.unwrap();
    stage.until("the reboot", async || (stage.machine.state().disks == 1).then_some(())).await;
}

#[tokio::test]
async fn a_deployment_ends_with_a_reboot_into_the_instance() {
    let stage = Stage::manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    stage.conductor.order("n1", Order::deploy(image())).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    {
        let state = stage.machine.state();
        assert_eq!((state.ramdisks, state.disks), (1, 1));
        // What was written is on the disk before the machine restarts.
        assert_eq!(state.commands[state.commands.len() - 2..], ["standby.sync", REBOOT]);
    }
    // An instance has no agent that could switch its machine.
    let error = refusal(stage.conductor.order("n1", Order::Undeploy).await);
    assert!(error.contains("was silent for 300 s"), "{error}");
    assert_eq!(stage.wait_for(ProvisionState::Active).await.instance_info, node.instance_info);
}

/// The agent of a deployment that failed is all that there is of the machine: it is kept.
#[tokio::test]
async fn a_deployment_that_failed_can_be_removed_or_tried_again() {
    let stage = Stage::manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    for is_removed in [true, false] {
        stage.machine.state().write_fails = Some("no disk".to_owned());
        stage.conductor.order("n1", Order::deploy(image())).await.unwrap();
        let node = stage.wait_for(ProvisionState::DeployFailed).await;
        assert!(node.last_error.unwrap().contains("no disk"));
        assert_eq!(stage.power_fault().await, None);
        stage.machine.state().write_fails = None;
        if is_removed {
            stage.conductor.order("n1", Order::Undeploy).await.unwrap();
            let node = stage.wait_for(ProvisionState::Available).await;
            assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
        }
    }
    stage.conductor.order("n1", Order::Retry).await.unwrap();
    assert_eq!(stage.wait_for(ProvisionState::Active).await.last_error, None);
    let state = stage.machine.state();
    assert_eq!((state.ramdisks, state.disks), (1, 1));
}

#[tokio::test]
async fn an_inspection_reboots_its_machine() {
    let stage = Stage::manageable().await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    stage.wait_for(ProvisionState::InspectWait).await;
    stage.until("the ramdisk", async || (stage.machine.state().ramdisks == 2).then_some(())).await;
    assert_eq!(stage.machine.state().commands, [REBOOT]);
}

#[tokio::test]
async fn an_operator_reboots_a_machine_softly_or_not() {
    let stage = Stage::manageable().await;
    for action in [PowerAction::Reboot, PowerAction::SoftReboot] {
        let before = stage.machine.state().disks;
        stage.conductor.order("n1", Order::power(action)).await.unwrap();
        stage.until("the reboot", async || (stage.machine.state().disks > before).then_some(())).await;
        let node = stage.wait_for(ProvisionState::Manageable).await;
        assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)), "{action}");
        stage.machine.start_ramdisk();
        stage.alive(true).await;
    }
}

/// A token is told once, so the next agent of a machine that was restarted by hand gets none while the one before is
/// remembered. An order to reboot forgets it.
#[tokio::test]
async fn f39_an_agent_that_is_gone_is_forgotten_by_an_order_to_reboot() {
    let stage = Stage::manageable().await;
    stage.machine.cut_off();
    stage.conductor.order("n1", Order::power(PowerAction::Reboot)).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    let error = node.last_error.unwrap();
    assert!(
        error.contains("no agent answers for node n1, and nothing else can switch its machine"),
        "{error}"
    );
    assert_eq!(node.power_state, None);
    assert!(stage.power_fault().await.unwrap().contains("was silent for"));
    stage.machine.start_ramdisk();
    stage.alive(true).await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage
        .until("the step", async || stage.machine.state().commands.last()?.contains("erase").then_some(()))
        .await;
    assert_eq!(stage.wait_for(ProvisionState::Manageable).await.last_error, None);
}
