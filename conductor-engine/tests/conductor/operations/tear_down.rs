//! The end of a cleaning whose steps are done.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::Stage;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::records::Order;
use serde_json::json;

/// A cleaning by hand after whose step so many orders to go off fail.
async fn cleaned(power_off_fails: u32) -> Stage {
    let stage = Stage::new(Script { power_off_fails, ..Script::default() }).await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage
}

#[tokio::test]
async fn e14_a_hiccup_of_the_bmc_does_not_throw_a_finished_cleaning_away() {
    let stage = cleaned(3).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.maintenance, node.power_state), (None, false, Some(PowerState::Off)));
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices"]);
    assert_eq!(stage.script().power_off_fails, 0);
}

#[tokio::test]
async fn e14_a_retry_of_a_cleaning_whose_end_failed_does_its_end_alone() {
    let stage = cleaned(7).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert!(node.last_error.unwrap().contains("its BMC is busy"));
    assert_eq!((node.fault, stage.script().power_off_fails), (None, 2));
    assert!(!node.maintenance, "no step failed");
    stage.conductor.order("n1", Order::Retry).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::Off)));
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices"], "the disks were erased again");
}
