//! Service: steps beneath an instance.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{Stage, image};
use farrier_conductor::model::{Fault, PowerState, ProvisionState};
use farrier_engine::Error;
use farrier_engine::records::{Deployment, Order};
use serde_json::{Value, json};

fn step(interface: &str, name: &str) -> Value {
    json!({"interface": interface, "step": name})
}

async fn active() -> Stage {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    stage
}

#[tokio::test]
async fn an_instance_is_serviced_and_runs_again() {
    let stage = active().await;
    let instance = stage.node().await.instance_info;
    stage
        .conductor
        .order("n1", Order::service(&[step("deploy", "erase_devices"), step("power", "at_once")]))
        .await
        .unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    assert_eq!((node.service_step, &node.instance_info), (None, &instance));
    let boots = stage.machine.power_ons();
    assert!(matches!(boots[2..], [Some(Boot::Ramdisk(_)), Some(Boot::Disk)]), "{boots:?}");
    assert_eq!(stage.script().steps()[1..], ["service deploy.erase_devices"]);
    assert_eq!(stage.script().driven, ["at_once"]);
}

#[tokio::test]
async fn a_service_that_needs_no_ramdisk_leaves_the_instance_running() {
    let stage = active().await;
    let boots = stage.machine.power_ons().len();
    stage
        .conductor
        .order("n1", Order::service(&[step("power", "at_once"), step("power", "slow")]))
        .await
        .unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, stage.machine.power_ons().len()), (None, boots));
    assert_eq!(stage.script().driven, ["at_once", "slow"]);
}

#[tokio::test]
async fn f64_a_failed_service_is_told_in_the_agents_words_and_can_be_aborted() {
    let stage = active().await;
    stage.change(|script| script.write_fails = Some("flash: bad magic".into()));
    stage.conductor.order("n1", Order::service(&[step("deploy", "erase_devices")])).await.unwrap();
    let node = stage.wait_for(ProvisionState::ServiceFailed).await;
    let error = "service step erase_devices failed: flash: bad magic [FAR-0411]";
    assert_eq!(node.last_error.as_deref(), Some(error));
    assert_eq!((node.maintenance, node.fault), (true, Some(Fault::Service)));
    // What was to be done stays for whoever looks for what is wrong.
    assert_eq!(node.driver_internal_info.service.steps.len(), 1);
    assert_eq!(node.power_state, Some(PowerState::On));
    let forbidden = stage.conductor.order("n1", Order::service(&[step("deploy", "erase_devices")])).await;
    assert!(matches!(forbidden, Err(Error::Forbidden(_))), "{forbidden:?}");
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.machine.power_ons().pop().flatten(), Some(Boot::Disk));
    assert!(node.last_error.unwrap().contains("aborted"));
}

/// K29: nothing was done to the machine, so its end has nothing to undo; tried again, the service has its ramdisk as before.
#[tokio::test]
async fn k29_a_service_whose_steps_are_refused_leaves_its_machine_alone() {
    let stage = active().await;
    let boots = stage.machine.power_ons().len();
    let unusable = json!({"interface": "power", "step": "hold", "args": {"x": 1}});
    stage.conductor.order("n1", Order::service(&[unusable, step("deploy", "erase_devices")])).await.unwrap();
    for again in [false, true] {
        if again {
            stage.conductor.order("n1", Order::Retry).await.unwrap();
        }
        let node = stage.wait_for(ProvisionState::ServiceFailed).await;
        let error = node.last_error.unwrap();
        assert!(error.contains("has no argument") && !error.contains("erase_devices"), "{error}");
    }
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.machine.power_ons().len(), boots);
}

#[tokio::test]
async fn a_service_whose_hardware_managers_change_runs_the_same_step_again() {
    let stage = active().await;
    stage.change(|script| script.mismatches = 1);
    let steps = [step("deploy", "erase_devices"), step("deploy", "erase_devices_metadata")];
    stage.conductor.order("n1", Order::service(&steps)).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    let expected = ["erase_devices", "erase_devices", "erase_devices_metadata"];
    assert_eq!(stage.script().steps()[1..], expected.map(|step| format!("service deploy.{step}")));
}

#[tokio::test]
async fn a_deployment_whose_hardware_managers_change_runs_the_same_step_again() {
    let stage = Stage::new(Script { mismatches: 1, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.script().steps(), ["deploy deploy.write_image", "deploy deploy.write_image"]);
}

/// What the user of a deployment may say about its steps (section 3.4).
#[tokio::test]
async fn a_deployment_takes_steps_of_its_user() {
    let offered =
        |step: &str, priority: i64| json!({"interface": "deploy", "step": step, "priority": priority});
    let asked = |step: &str, priority: i64| json!({"interface": "deploy", "step": step, "args": {}, "priority": priority});
    let stage = Stage::new(Script {
        offers: Some(vec![offered("burn", 70), offered("scrub", 0), offered("polish", 65)]),
        ..Script::default()
    })
    .await;
    let steps = [asked("scrub", 90), asked("burn", 0)];
    stage.conductor.order("n1", Order::deploy_with_steps(image(), &steps)).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    let expected = ["scrub", "write_image", "polish"].map(|step| format!("deploy deploy.{step}"));
    assert_eq!(stage.script().steps(), expected);

    // What cannot be is refused as soon as it is known.
    for (steps, part) in [
        (json!([{"interface": "deploy", "step": "burn"}]), "lacks \"args\""),
        (json!([asked("deploy", 50)]), "keeps its priority of 100"),
        (json!([asked("write_image", 30)]), "from 99 down to 41"),
    ] {
        let refused = stage
            .conductor
            .order(
                "n1",
                Order::Deploy(Deployment {
                    instance_info: Some(image()),
                    steps: steps.as_array().unwrap().to_vec(),
                    ..Deployment::default()
                }),
            )
            .await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.starts_with("deploy_steps: ") && refused.contains(part), "{refused}");
    }
    stage
        .conductor
        .order("n1", Order::deploy_with_steps(image(), &[asked("scrub", 20), asked("none", 50)]))
        .await
        .unwrap();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("deploy.none is unknown"), "{error}");
}
