//! Rescue: a system to repair an instance with, and the instance again.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{PATIENCE, Stage};
use async_trait::async_trait;
use farrier_conductor::Error as TaskError;
use farrier_conductor::interfaces::{Interface, InterfaceError, NetworkInterface, NetworkKind};
use farrier_conductor::model::PasswordHashAlgorithm;
use farrier_conductor::model::{Fault, Node, PowerState, ProvisionState};
use farrier_conductor::{HardwareType, Settings};
use farrier_engine::Error;
use farrier_engine::records::Order;
use farrier_engine::store::NodeStore;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PASSWORD: &str = "oats and barley";

async fn active(stage: Stage) -> Stage {
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    stage
}

async fn rescued(script: Script) -> Stage {
    let stage = active(Stage::new(script).await).await;
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    stage.wait_for(ProvisionState::Rescue).await;
    stage
}

/// The hash by which the machine can be entered.
fn hash(stage: &Stage) -> Option<String> {
    stage.script().rescue_password
}

/// Sees that nothing is left of a password in the record, whoever looks.
async fn assert_forgotten(stage: &Stage) {
    let record = stage.store.by_name("n1").await.unwrap().unwrap();
    for text in [serde_json::to_string(&record.node).unwrap(), format!("{record:?}")] {
        assert!(!text.contains("rescue_password") && !text.contains("oats"), "{text}");
    }
}

#[tokio::test]
async fn a_machine_is_rescued_with_a_hashed_password_and_gets_its_instance_back() {
    for (algorithm, prefix) in
        [(PasswordHashAlgorithm::Sha256, "$5$"), (PasswordHashAlgorithm::Sha512, "$6$")]
    {
        let change = |settings: &mut Settings| settings.rescue_password_hash_algorithm = algorithm;
        let stage = active(Stage::with(Script::default(), change).await).await;
        let instance = stage.node().await.instance_info;
        stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
        let waiting = serde_json::to_string(&stage.node().await).unwrap();
        assert!(
            !waiting.contains("$5$") && !waiting.contains("$6$") && !waiting.contains("oats"),
            "{waiting}"
        );
        let node = stage.wait_for(ProvisionState::Rescue).await;
        assert_eq!((node.last_error, node.target_provision_state), (None, None));
        assert!(hash(&stage).unwrap().starts_with(prefix));
        assert_forgotten(&stage).await;
        assert_eq!(stage.machine.state.lock().unwrap().power, PowerState::On);
        // Its agent has ended, and nothing of it is known any more.
        let record = stage.store.by_name("n1").await.unwrap().unwrap();
        assert_eq!((record.session.agent_url, record.order), (None, None));

        stage.conductor.order("n1", Order::Unrescue).await.unwrap();
        let node = stage.wait_for(ProvisionState::Active).await;
        assert_eq!(
            (node.last_error, node.power_state, node.instance_info),
            (None, Some(PowerState::On), instance)
        );
        let boots = stage.machine.power_ons();
        assert!(
            matches!(boots[1..], [Some(Boot::Disk), Some(Boot::Ramdisk(_)), Some(Boot::Disk)]),
            "{boots:?}"
        );
    }
}

#[tokio::test]
async fn a_rescue_whose_answer_gets_lost_begins_anew_and_is_given_up_after_some_time() {
    let stage = rescued(Script { loses_rescue_answers: 2, ..Script::default() }).await;
    assert!(hash(&stage).is_some());
    // The deployment, its instance, and three times the rescue.
    assert_eq!(stage.machine.power_ons().len(), 5);

    stage.change(|script| script.loses_rescue_answers = u32::MAX);
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    let node = stage.wait_for(ProvisionState::RescueFailed).await;
    assert!(node.last_error.unwrap().contains("cannot be reached"));
    assert_eq!(stage.machine.power_ons().len(), 5 + 4);
    assert_forgotten(&stage).await;
}

/// An agent that cannot be reached has not got the password yet: it is waited for, without another boot.
#[tokio::test]
async fn e01_a_rescue_waits_for_an_agent_that_cannot_be_reached_until_its_deadline() {
    let within = |limit: Duration| {
        move |settings: &mut Settings| {
            settings.agent.command_timeout = Duration::from_millis(100);
            settings.rescue_callback_timeout = limit;
        }
    };
    let stage = active(Stage::with(Script::default(), within(PATIENCE)).await).await;
    stage.change(|script| script.deaf = true);
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    stage.wait_for(ProvisionState::RescueWait).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.node().await.provision_state, ProvisionState::RescueWait);
    stage.change(|script| script.deaf = false);
    assert_eq!(stage.wait_for(ProvisionState::Rescue).await.last_error, None);
    // The deployment, its instance, and the rescue once.
    assert_eq!(stage.machine.power_ons().len(), 3);

    let stage = active(Stage::with(Script::default(), within(Duration::from_secs(5))).await).await;
    stage.change(|script| script.deaf = true);
    let begun = Instant::now();
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    let error = stage.wait_for(ProvisionState::RescueFailed).await.last_error.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(5), "{error}");
    assert!(error.contains("cannot be reached") && error.contains("was silent for 5 s"), "{error}");
    assert_eq!(stage.machine.power_ons().len(), 3);
}

#[tokio::test]
async fn f64_a_failed_rescue_is_told_in_the_agents_words_and_can_be_ended_or_ordered_again() {
    let stage = active(Stage::new(Script::default()).await).await;
    stage.change(|script| script.rescue_fails = Some("no login service".into()));
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    let node = stage.wait_for(ProvisionState::RescueFailed).await;
    assert_eq!(
        (node.last_error.as_deref(), node.power_state),
        (Some("no login service [FAR-0411]"), Some(PowerState::Off))
    );
    assert_forgotten(&stage).await;
    stage.conductor.order("n1", Order::Unrescue).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, stage.machine.power_ons().pop().flatten()), (None, Some(Boot::Disk)));
    stage.change(|script| script.rescue_fails = None);
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    stage.wait_for(ProvisionState::Rescue).await;
    // Another one takes the place of the first.
    let first = hash(&stage);
    stage.conductor.order("n1", Order::rescue("hay")).await.unwrap();
    stage.wait_for(ProvisionState::Rescue).await;
    assert_ne!(first, hash(&stage));
}

#[tokio::test]
async fn f65_a_rescue_that_waits_is_aborted_at_once() {
    let stage = active(Stage::new(Script::default()).await).await;
    stage.change(|script| script.silent = true);
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    stage.wait_for(ProvisionState::RescueWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::RescueFailed).await;
    assert_eq!(node.last_error.as_deref(), Some("rescue aborted by request [FAR-0510]"));
    assert_eq!((node.maintenance, node.power_state), (false, Some(PowerState::Off)));
    assert_forgotten(&stage).await;
    stage.conductor.order("n1", Order::Unrescue).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
}

#[tokio::test]
async fn a_rescued_instance_can_be_removed() {
    let stage = rescued(Script::default()).await;
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!((node.last_error, node.instance_info.is_empty()), (None, true));
    assert_eq!(stage.machine.state.lock().unwrap().power, PowerState::Off);
}

#[tokio::test]
async fn what_cannot_be_rescued_is_refused_at_once() {
    let stage = active(
        Stage::composed(Script::default(), "plain", |drivers| {
            let plain = HardwareType::new("plain").power(["fake"]).boot(["fake"]).deploy(["direct"]);
            drivers.hardware_type(plain)
        })
        .await,
    )
    .await;
    let refused = stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap_err().to_string();
    assert_eq!(refused, "rescue is not supported; choose another rescue_interface for the node");
    let refused = stage.conductor.order("n1", Order::rescue("")).await;
    assert!(matches!(refused, Err(Error::Task(TaskError::Invalid { .. }))), "{refused:?}");
    assert_eq!(stage.idle().await.provision_state, ProvisionState::Active);
    assert_forgotten(&stage).await;
}

/// The network of rescues can be entered, and not left while it is stuck.
#[derive(Clone, Default)]
struct Sticky(Arc<Mutex<(bool, Vec<String>)>>);

impl Sticky {
    fn note(&self, what: impl Into<String>) -> Result<(), InterfaceError> {
        self.0.lock().unwrap().1.push(what.into());
        Ok(())
    }
}

impl Interface for Sticky {}

#[async_trait]
impl NetworkInterface for Sticky {
    async fn add_network(&self, _node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        self.note(format!("add {kind:?}"))
    }

    async fn remove_network(&self, _node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        self.note(format!("remove {kind:?}"))?;
        match self.0.lock().unwrap().0 && kind == NetworkKind::Rescuing {
            true => Err(InterfaceError::invalid("network", "is stuck")),
            false => Ok(()),
        }
    }

    async fn configure_tenant_networks(&self, _node: &mut Node) -> Result<(), InterfaceError> {
        self.note("configure tenant")
    }

    async fn unconfigure_tenant_networks(&self, _node: &mut Node) -> Result<(), InterfaceError> {
        self.note("unconfigure tenant")
    }
}

#[tokio::test]
async fn a_rescue_is_on_its_own_network_and_one_whose_abort_fails_is_its_operators() {
    let sticky = Sticky::default();
    let stage = active(
        Stage::composed(Script::default(), "wired", |drivers| {
            let wired = HardwareType::new("wired").power(["fake"]).boot(["fake"]).deploy(["direct"]);
            drivers
                .network("sticky", sticky.clone())
                .hardware_type(wired.network(["sticky"]).rescue(["agent"]))
        })
        .await,
    )
    .await;
    let noted = || std::mem::take(&mut sticky.0.lock().unwrap().1);
    noted();
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    stage.wait_for(ProvisionState::Rescue).await;
    let to_rescue = ["unconfigure tenant", "add Rescuing", "remove Rescuing", "configure tenant"];
    assert_eq!(noted(), to_rescue);
    stage.conductor.order("n1", Order::Unrescue).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(noted(), ["remove Rescuing", "configure tenant"]);

    stage.change(|script| script.silent = true);
    stage.conductor.order("n1", Order::rescue(PASSWORD)).await.unwrap();
    stage.wait_for(ProvisionState::RescueWait).await;
    sticky.0.lock().unwrap().0 = true;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::RescueFailed).await;
    assert_eq!((node.maintenance, node.fault), (true, Some(Fault::RescueAbort)));
    let error = node.last_error.unwrap();
    assert!(error.contains("aborted") && error.contains("network: is stuck"), "{error}");
    let refused = stage.conductor.order("n1", Order::Unrescue).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    assert_eq!(serde_json::to_value(node.fault).unwrap(), Value::from("rescue abort failure"));
}
