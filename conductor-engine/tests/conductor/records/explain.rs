//! What operators are told of a node that does not do what they expect.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{PATIENCE, Stage};
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::explain::Explanation;
use farrier_engine::records::Order;
use serde_json::json;
use std::time::Duration;

pub async fn explain(stage: &Stage) -> Explanation {
    let url = format!("{}/farrier/v1/nodes/n1/explanation", stage.node_api);
    stage.http.get(url).send().await.unwrap().json().await.unwrap()
}

fn said<'a>(told: &'a Explanation, what: &str) -> &'a str {
    let found = told.evidence.iter().find(|one| one.what == what);
    &found.unwrap_or_else(|| panic!("{what:?} is not in {told:#?}")).said
}

#[tokio::test]
async fn a_node_that_waits_is_explained_with_what_its_agent_and_its_console_say() {
    let stage = Stage::new(Script { blocked: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.told(|script| script.steps() == ["deploy deploy.write_image"]).await;
    stage.wait_for(ProvisionState::DeployWait).await;
    let told = explain(&stage).await;
    assert_eq!(told.waits_for, "It waits for its agent to end the step deploy.write_image.");
    assert!(told.until.is_some() && !told.is_overdue, "{told:#?}");
    assert_eq!(said(&told, "last command"), "execute_deploy_step RUNNING");
    assert!(said(&told, "console").ends_with("ends with: farrier-agent: link eth0 is down"), "{told:#?}");
    assert_eq!(said(&told, "power"), "power on");
    assert_eq!(told.commands, ["farrier node abort n1"]);
    stage.change(|script| script.blocked = false);
    stage.wait_for(ProvisionState::Active).await;
    let told = explain(&stage).await;
    assert_eq!(
        (told.waits_for.as_str(), told.next_action.as_str()),
        ("It waits for nothing: its instance runs.", "Nothing.")
    );
}

#[tokio::test]
async fn an_agent_that_does_not_answer_is_told() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    let told = explain(&stage).await;
    assert!(told.waits_for.starts_with("It waits for its agent to call"), "{told:#?}");
    assert_eq!(said(&told, "last heartbeat"), "none since the machine was started");
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    stage.wait_for(ProvisionState::DeployFailed).await;
    let told = explain(&stage).await;
    assert!(said(&told, "last error").contains("aborted"), "{told:#?}");
    assert_eq!(told.commands, ["farrier node retry n1"]);
    let unknown = stage.http.get(format!("{}/farrier/v1/nodes/n2/explanation", stage.node_api));
    assert_eq!(unknown.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn f36_power_that_has_failed_is_not_told_as_it_was_recorded() {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |settings| {
        settings.check_interval = Duration::from_secs(3600);
    })
    .await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    assert_eq!(said(&explain(&stage).await, "power"), "power on");
    stage.machine.go_off();
    let told = explain(&stage).await;
    assert_eq!(said(&told, "power"), "power off (it was power on when it was read last)");
}

#[tokio::test]
async fn f36_a_machine_that_went_off_is_off_in_its_record() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.machine.go_off();
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!(node.power_state, Some(PowerState::Off), "{:?}", node.last_error);
    assert_eq!(said(&explain(&stage).await, "power"), "power off");
}

#[tokio::test]
async fn f36_how_much_of_a_medium_was_read_is_evidence() {
    let stage = Stage::new(Script { silent: true, serves_medium: true, ..Script::default() }).await;
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::DeployWait).await;
    assert!(said(&explain(&stage).await, "boot").contains("no read of its virtual medium is recorded"));
    stage.conductor.ramdisks().medium_read(node.uuid, 9000, 20_000);
    // The conductor may write it down just now, and an explanation does not wait for that.
    let is_told = async {
        while !said(&explain(&stage).await, "boot")
            .starts_with("9 KiB of its virtual medium read, silent for")
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_told).await.expect("what was read is evidence");
}
