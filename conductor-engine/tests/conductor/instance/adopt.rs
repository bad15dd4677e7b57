//! Adoption: a machine that runs its instance already is taken over.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{Stage, image};
use farrier_conductor::model::{InstanceInfo, PowerState, ProvisionState};
use farrier_engine::records::Order;

/// A manageable node whose machine runs what `instance_info` says.
async fn running(instance_info: InstanceInfo) -> Stage {
    let stage = Stage::new(Script::default()).await;
    stage.manageable().await;
    stage.machine.state.lock().unwrap().power = PowerState::On;
    stage.change_node(|node| node.instance_info = instance_info).await;
    stage
}

#[tokio::test]
async fn a_machine_that_runs_its_instance_is_taken_over_and_not_switched() {
    let stage = running(image()).await;
    stage.conductor.order("n1", Order::Adopt).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    assert!(stage.machine.power_ons().is_empty() && stage.script().accepted.is_empty());
    assert_eq!(stage.machine.state.lock().unwrap().boot, Some(Boot::Disk));
    // It is as any other.
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
}

#[tokio::test]
async fn k23_a_machine_of_whose_instance_nothing_is_known_is_taken_over_all_the_same() {
    let stage = running(InstanceInfo::default()).await;
    stage.conductor.order("n1", Order::Adopt).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    assert!(stage.machine.power_ons().is_empty() && stage.script().accepted.is_empty());
}

#[tokio::test]
async fn a_machine_of_whose_instance_something_else_is_said_than_can_be_is_left_as_it_is() {
    let mut wrong = InstanceInfo::default();
    wrong.insert("image_source".into(), "http://192.0.2.5/debian.raw".into());
    let stage = running(wrong).await;
    stage.conductor.order("n1", Order::Adopt).await.unwrap();
    let node = stage.wait_for(ProvisionState::AdoptFailed).await;
    assert!(node.last_error.unwrap().contains("image_checksum"));
    assert_eq!(stage.machine.state.lock().unwrap().power, PowerState::On);
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    stage.wait_for(ProvisionState::Manageable).await;
}
