//! What agents cannot do for the power of their machines, and what is left alone.

use crate::stage::{Stage, new_node, refusal};
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface};
use farrier_conductor::model::{Node, PowerState, ProvisionState};
use farrier_conductor::{HardwareType, PowerAction};
use farrier_engine::records::Order;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test]
async fn nobody_but_a_living_agent_that_stays_begins_anything() {
    let stage = Stage::new().await;
    let error = stage.power_fault().await.unwrap();
    let expected = "power_interface: the agent of node n1 was silent for 300 s, so its conductor has no control \
        over the power of the machine; start its ramdisk by hand, or choose another power_interface";
    assert_eq!(error, expected);
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    let node = stage.until("the end", async || {
        stage.conductor.node("n1").await.ok().filter(|node| node.last_error.is_some())
    });
    let node = node.await;
    assert_eq!(
        (node.provision_state, node.last_error.unwrap()),
        (ProvisionState::Enroll, format!("{expected} [FAR-0214]"))
    );
    let stage = Stage::with(|settings| settings.fast_track = false, |builder| builder).await;
    let error = stage.power_fault().await.unwrap();
    assert!(error.contains("fast track is off for node n1; set its driver_info fast_track=true"), "{error}");
}

#[tokio::test]
async fn machines_are_never_powered_on_or_off() {
    let stage = Stage::manageable().await;
    for (action, name) in [
        (PowerAction::On, "power on"),
        (PowerAction::Off, "power off"),
        (PowerAction::SoftOff, "soft power off"),
    ] {
        let error = refusal(stage.conductor.order("n1", Order::power(action)).await);
        assert_eq!(error, format!("{name} is not supported; choose another power_interface for the node"));
    }
    stage.clean(json!([{"interface": "power", "step": "power_off"}])).await;
    let error = stage.wait_for(ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(error.contains("power_off failed: power off is not supported"), "{error}");
    assert_eq!(stage.machine.state().ramdisks, 1);
}

/// Whose machine it is, nobody knows any more; the record goes all the same.
#[tokio::test]
async fn a_node_goes_without_its_machine() {
    let stage = Stage::manageable().await;
    stage.machine.cut_off();
    stage.conductor.order("n1", Order::Delete).await.unwrap();
    stage.until("the end", async || stage.conductor.node("n1").await.err()).await;
}

/// A machine that is always read to be on, and counts how often.
struct Counted(Arc<AtomicUsize>);

impl Interface for Counted {}

#[async_trait]
impl PowerInterface for Counted {
    async fn power_state(&self, _node: &Node) -> Result<PowerState, InterfaceError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(PowerState::On)
    }

    async fn power_on(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_recorded_of_an_agents_machine_is_not_synchronised() {
    let reads = Arc::new(AtomicUsize::new(0));
    let change = |settings: &mut farrier_conductor::Settings| {
        settings.fast_track_timeout = Duration::from_secs(2);
        settings.power_sync.sync_power_state_interval = Duration::from_millis(20);
        settings.power_sync.power_state_sync_max_retries = 1;
    };
    let counted = Counted(Arc::clone(&reads));
    let stage = Stage::with(change, |builder| {
        builder.power("counted", counted).hardware_type(
            HardwareType::new("counted").power(["counted"]).boot(["network"]).deploy(["direct"]),
        )
    })
    .await;
    stage.machine.start_ramdisk();
    stage.alive(true).await;
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    stage.wait_for(ProvisionState::Manageable).await;
    stage.machine.cut_off();
    stage.alive(false).await;
    stage.conductor.create_node(new_node("n2", "counted")).await.unwrap();
    stage.conductor.order("n2", Order::Manage).await.unwrap();
    let first = reads.load(Ordering::Relaxed);
    stage.until("some rounds", async || (reads.load(Ordering::Relaxed) > first + 5).then_some(())).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    let commands = (node.power_state, node.maintenance, node.fault, node.last_error);
    assert_eq!(commands, (Some(PowerState::On), false, None, None));
}
