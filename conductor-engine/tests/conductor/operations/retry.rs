//! Retry: an operation that failed goes on at the step that failed, or begins anew.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, fault};
use farrier_conductor::Error as TaskError;
use farrier_conductor::EventKind;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::Error;
use farrier_engine::records::Order;
use serde_json::json;

/// A cleaning by hand whose second step has failed, and whose machine was mended since.
async fn mended() -> Stage {
    let stage = Stage::new(Script { write_fails: Some("worn out".into()), ..Script::default() }).await;
    stage.manageable().await;
    let steps =
        json!([{"interface": "power", "step": "at_once"}, {"interface": "deploy", "step": "erase_devices"}]);
    stage.clean(steps).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!(node.power_state, Some(PowerState::On));
    let refused = stage.conductor.order("n1", Order::Retry).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    stage.conductor.set_maintenance("n1", false, None).await.unwrap();
    stage.change(|script| script.write_fails = None);
    stage
}

/// Where it went on.
async fn retried_at(stage: &Stage) -> Option<String> {
    let is_retried = |kind: &EventKind| matches!(kind, EventKind::Retried { .. });
    let events = stage.until(|events| events.iter().any(|event| is_retried(&event.kind))).await;
    let retried = events.into_iter().find_map(|event| match event.kind {
        EventKind::Retried { at } => Some(at),
        _ => None,
    });
    retried.unwrap()
}

#[tokio::test]
async fn a_cleaning_goes_on_at_the_step_that_failed() {
    let stage = mended().await;
    stage.conductor.order("n1", Order::Retry).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::Off)));
    assert_eq!(retried_at(&stage).await.as_deref(), Some("erase_devices"));
    assert_eq!(stage.script().driven, ["at_once"]);
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices"; 2]);
    assert_eq!(stage.machine.power_ons().len(), 1);
    let refused = stage.conductor.order("n1", Order::Retry).await;
    assert!(matches!(refused, Err(Error::Task(TaskError::InvalidState { .. }))), "{refused:?}");
}

#[tokio::test]
async fn a_cleaning_whose_agent_is_gone_begins_anew() {
    let stage = mended().await;
    stage.machine.end_agent();
    stage.conductor.order("n1", Order::Retry).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, retried_at(&stage).await), (None, None));
    assert_eq!(stage.script().driven, ["at_once"; 2]);
    assert_eq!(stage.machine.power_ons().len(), 2);
}

#[tokio::test]
async fn a_deployment_goes_on_where_its_machine_was_left_on() {
    for (is_left_on, expected) in [(true, Some("write_image")), (false, None)] {
        let script = Script { write_fails: Some("disk full".into()), ..Script::default() };
        let stage =
            Stage::with(script, |settings| settings.power_off_after_deploy_failure = !is_left_on).await;
        stage.deploy_and_fail().await;
        stage.change(|script| script.write_fails = None);
        let url = format!("{}/v1/nodes/n1/states/provision", stage.node_api);
        let ordered = stage.http.put(&url).json(&json!({"target": "retry"})).send().await.unwrap();
        assert_eq!(ordered.status(), 202);
        let node = stage.wait_for(ProvisionState::Active).await;
        assert_eq!((node.last_error, retried_at(&stage).await.as_deref()), (None, expected));
        assert_eq!(stage.script().steps(), ["deploy deploy.write_image"; 2]);
        // Its config drive is written too.
        let accepted = stage.script().accepted;
        let (_, last) = accepted.iter().rfind(|(name, _)| name.contains("deploy_step")).unwrap();
        assert_eq!(last["step"]["args"]["configdrive"], "H4sIAAAA");
        let again = stage.http.put(&url).json(&json!({"target": "retry"})).send().await.unwrap();
        assert_eq!(again.status(), 400);
        assert!(fault(again).await.contains("deploy failed, clean failed, service failed"));
    }
}
