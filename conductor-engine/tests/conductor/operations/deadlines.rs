//! Each state that waits for an agent has a deadline of its own (section 1.6).

use super::attention::put;
use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{PATIENCE, Stage};
use farrier_conductor::Settings;
use farrier_conductor::model::{Event, PowerState, ProvisionState};
use farrier_engine::explain::who_acts::Attention;
use farrier_engine::records::{Order, StepsOrder};
use farrier_engine::store::NodeStore;
use serde_json::json;
use std::time::{Duration, Instant};

/// The setting of a state, by its name in section 1.6.
fn timeout(settings: &mut Settings, state: ProvisionState) -> &mut Duration {
    match state {
        ProvisionState::DeployWait => &mut settings.deploy_callback_timeout,
        ProvisionState::CleanWait => &mut settings.clean_callback_timeout,
        ProvisionState::ServiceWait => &mut settings.service_callback_timeout,
        ProvisionState::RescueWait => &mut settings.rescue_callback_timeout,
        ProvisionState::InspectWait => &mut settings.inspect_wait_timeout,
        other => panic!("{other} does not wait"),
    }
}

const WAITS: [ProvisionState; 5] = [
    ProvisionState::DeployWait,
    ProvisionState::CleanWait,
    ProvisionState::ServiceWait,
    ProvisionState::RescueWait,
    ProvisionState::InspectWait,
];

/// A node that waits in a state, where no other state has a deadline.
async fn waiting(state: ProvisionState, target: Option<ProvisionState>, deadline: Duration) -> Stage {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |settings| {
        WAITS.iter().for_each(|other| *timeout(settings, *other) = Duration::ZERO);
        *timeout(settings, state) = deadline;
    })
    .await;
    stage.machine.state.lock().unwrap().power = PowerState::On;
    put(&*stage.store, stage.node().await.uuid, state, target).await;
    stage
}

#[tokio::test]
async fn a_wait_fails_at_its_own_deadline() {
    for state in WAITS {
        let stage = waiting(state, state.target(), Duration::from_millis(100)).await;
        let node = stage.wait_for(state.after(Event::Fail).unwrap()).await;
        let error = node.last_error.unwrap();
        assert!(error.starts_with("node n1: no agent called for 0.1 s"), "{state}: {error}");
        // Whoever looks for what is wrong with a cleaning or service finds the machine as it was (section 2.8).
        let expected = match state {
            ProvisionState::CleanWait | ProvisionState::ServiceWait => PowerState::On,
            _ => PowerState::Off,
        };
        assert_eq!(stage.machine.state.lock().unwrap().power, expected, "{state}");
    }
}

#[tokio::test]
async fn a_wait_without_a_deadline_is_its_operators() {
    for state in WAITS {
        let stage = waiting(state, state.target(), Duration::ZERO).await;
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(300) {
            let record = stage.store.by_name("n1").await.unwrap().unwrap();
            assert_eq!(record.node.provision_state, state);
            let attention = Attention::of(&record, stage.conductor.settings());
            assert!(matches!(attention, Attention::Operator | Attention::Conductor { .. }), "{state}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // It is not forgotten: that its machine goes off is seen.
        stage.machine.go_off();
        let end = Instant::now() + PATIENCE;
        while stage.node().await.provision_state == state {
            assert!(Instant::now() < end, "{state}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Pitfall 13.9: cleaning by hand stays cleaning by hand, also where it fails.
#[tokio::test]
async fn cleaning_by_hand_keeps_its_target_when_nobody_calls() {
    let by_hand = Some(ProvisionState::Manageable);
    let stage = waiting(ProvisionState::CleanWait, by_hand, Duration::from_millis(100)).await;
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert_eq!(node.target_provision_state, by_hand);
}

/// A BMC takes longer for each answer than the conductor may be deaf, and says for ever that the step runs.
#[tokio::test]
async fn e05_a_step_on_a_slow_bmc_has_its_deadline() {
    let poll_takes = Duration::from_millis(1300);
    let stage = Stage::with(Script { poll_takes, ..Script::default() }, |settings| {
        settings.clean_callback_timeout = Duration::from_secs(4);
    })
    .await;
    stage.manageable().await;
    let ordered = Instant::now();
    let steps = StepsOrder::given(&[json!({"interface": "power", "step": "slow"})]);
    let order = Order::Clean(StepsOrder { disable_ramdisk: true, ..steps });
    stage.conductor.order("n1", order).await.unwrap();
    let node = stage.wait_for(ProvisionState::CleanFailed).await;
    assert!(ordered.elapsed() >= Duration::from_secs(4), "{:?}", ordered.elapsed());
    assert!(node.last_error.unwrap().contains("(step slow)"));
}
