//! Operations that are held, wait, or are aborted.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{Stage, image};
use farrier_conductor::Error as TaskError;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::Error;
use farrier_engine::records::{Order, StepsOrder};
use serde_json::{Value, json};

fn step(name: &str) -> Value {
    json!({"interface": "deploy", "step": name})
}

fn reserved(name: &str) -> Value {
    json!({"interface": "power", "step": name})
}

fn last_boot(stage: &Stage) -> Option<Boot> {
    stage.machine.power_ons().pop().flatten()
}

async fn active(script: Script) -> Stage {
    let stage = Stage::new(script).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    stage
}

async fn service(stage: &Stage, steps: Value) {
    stage.conductor.order("n1", Order::service(steps.as_array().unwrap())).await.unwrap();
}

#[tokio::test]
async fn a_held_cleaning_waits_for_its_operator() {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    stage.clean(json!([step("erase_devices"), reserved("hold"), step("erase_devices_metadata")])).await;
    let node = stage.wait_for(ProvisionState::CleanHold).await;
    assert_eq!(node.clean_step.unwrap().step, "hold");
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices"]);
    // Heartbeats change nothing.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(stage.node().await.provision_state, ProvisionState::CleanHold);
    stage.conductor.order("n1", Order::Unhold).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, stage.script().steps().len()), (None, 2));
    let refused = stage.conductor.order("n1", Order::Unhold).await;
    assert!(matches!(refused, Err(Error::Task(TaskError::InvalidState { .. }))), "{refused:?}");
}

#[tokio::test]
async fn deployments_and_services_are_held_too() {
    let stage = Stage::new(Script::default()).await;
    let hold = json!({"interface": "deploy", "step": "hold", "args": {}, "priority": 90});
    stage.conductor.order("n1", Order::deploy_with_steps(image(), &[hold])).await.unwrap();
    stage.wait_for(ProvisionState::DeployHold).await;
    stage.conductor.order("n1", Order::Unhold).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;

    // Nothing of this service needs the ramdisk, so no agent ever calls.
    service(&stage, json!([reserved("hold"), reserved("power_off"), reserved("power_on")])).await;
    stage.wait_for(ProvisionState::ServiceHold).await;
    stage.conductor.order("n1", Order::Unhold).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, last_boot(&stage)), (None, Some(Boot::Disk)));
}

#[tokio::test]
async fn a_cleaning_waits_for_the_next_heartbeat_or_some_seconds() {
    let stage = Stage::with(Script::default(), |settings| {
        settings.max_conductor_wait_step = std::time::Duration::from_millis(50);
    })
    .await;
    stage.manageable().await;
    let seconds = json!({"interface": "power", "step": "wait", "args": {"seconds": 3600}});
    stage.clean(json!([reserved("wait"), step("erase_devices"), seconds, step("erase_devices")])).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, stage.script().steps().len()), (None, 2));
    // Without the ramdisk there is no heartbeat to wait for.
    stage
        .conductor
        .order(
            "n1",
            Order::Clean(StepsOrder { disable_ramdisk: true, ..StepsOrder::given(&[reserved("wait")]) }),
        )
        .await
        .unwrap();
    let error = stage.wait_for(ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(error.contains("needs the ramdisk"), "{error}");
}

#[tokio::test]
async fn power_steps_switch_the_machine_and_the_ramdisk_comes_again() {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    let erase = step("erase_devices");
    let steps = json!([reserved("reboot"), erase, reserved("power_off"), reserved("power_on"), erase]);
    stage.clean(steps).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, stage.script().steps().len()), (None, 2));
    let boots = stage.machine.power_ons();
    assert!(boots.len() == 3 && boots.iter().all(|boot| matches!(boot, Some(Boot::Ramdisk(_)))), "{boots:?}");
}

#[tokio::test]
async fn f65_a_step_that_must_not_be_cut_off_ends_and_the_operation_with_it() {
    let stage = Stage::new(Script { blocked: true, ..Script::default() }).await;
    stage.manageable().await;
    // The last step, so that everything has been done when it ends.
    stage.clean(json!([step("erase_devices_metadata")])).await;
    stage.told(|script| script.steps().len() == 1).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.idle().await;
    assert_eq!(node.provision_state, ProvisionState::CleanWait);
    assert!(node.clean_step.unwrap().abort_after);
    stage.change(|script| script.blocked = false);
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!(
        node.last_error.unwrap(),
        "cleaning aborted by request (step erase_devices_metadata) [FAR-0510]"
    );
    assert_eq!((node.fault, node.power_state), (None, Some(PowerState::Off)));
    assert_eq!(node.target_provision_state, Some(ProvisionState::Manageable));
}

#[tokio::test]
async fn f65_a_step_that_may_be_cut_off_ends_at_once() {
    let stage = Stage::new(Script { blocked: true, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([step("erase_devices")])).await;
    stage.told(|script| script.steps().len() == 1).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert!(node.last_error.unwrap().contains("aborted"));
    assert_eq!((node.maintenance, node.power_state), (false, Some(PowerState::Off)));
}

#[tokio::test]
async fn f65_every_operation_that_waits_or_is_held_is_aborted_into_its_failed_state() {
    let silent = || Script { silent: true, ..Script::default() };
    let stage = Stage::new(silent()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert_eq!(node.last_error.unwrap(), "deployment aborted by request (step deploy) [FAR-0510]");
    assert_eq!((node.power_state, stage.idle().await.target_power_state), (Some(PowerState::Off), None));

    let stage = Stage::new(Script::default()).await;
    let hold = json!({"interface": "deploy", "step": "hold", "args": {}, "priority": 90});
    stage.conductor.order("n1", Order::deploy_with_steps(image(), &[hold])).await.unwrap();
    stage.wait_for(ProvisionState::DeployHold).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("aborted by request (step hold)"));
    assert_eq!(node.power_state, Some(PowerState::Off));

    // Before its agent has called.
    let stage = Stage::new(silent()).await;
    stage.manageable().await;
    stage.clean(json!([step("erase_devices_metadata")])).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!(node.last_error.unwrap(), "cleaning aborted by request [FAR-0510]");

    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    stage.clean(json!([reserved("hold")])).await;
    stage.wait_for(ProvisionState::CleanHold).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert!(node.last_error.unwrap().contains("aborted"));
    let refused = stage.conductor.order("n1", Order::Abort).await;
    assert!(matches!(refused, Err(Error::Task(TaskError::InvalidState { .. }))), "{refused:?}");
}

/// An aborted service gives the instance back (section 3.10), and says that it was aborted.
#[tokio::test]
async fn f65_an_aborted_service_starts_the_instance_and_is_no_success() {
    for held in [false, true] {
        let stage = active(Script::default()).await;
        stage.change(|script| script.blocked = true);
        let first = if held { reserved("hold") } else { step("erase_devices") };
        service(&stage, json!([first, step("erase_devices")])).await;
        let state = if held { ProvisionState::ServiceHold } else { ProvisionState::ServiceWait };
        stage.wait_for(state).await;
        if !held {
            stage.told(|script| script.steps().len() == 2).await;
        }
        let _free = stage.wait_for(state).await;
        stage.conductor.order("n1", Order::Abort).await.unwrap();
        let node = stage.wait_for(ProvisionState::Active).await;
        assert!(node.last_error.unwrap().contains("service aborted by request"));
        assert_eq!((node.maintenance, node.power_state), (false, Some(PowerState::On)));
        assert_eq!(last_boot(&stage), Some(Boot::Disk));
    }
}
