//! Machines that only an operator can switch: their nodes go through their lives when the operator does the pending actions.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

use async_trait::async_trait;
use farrier_conductor::interfaces::{BootCapability, BootContext, BootInterface, Interface, InterfaceError};
use farrier_conductor::model::clock::SystemClock;
use farrier_conductor::model::{BootDevice, InitialState, NewNode, Node, PowerState, ProvisionState};
use farrier_conductor::{Drivers, PowerAction, Settings};
use farrier_drivers::manual::with_manual;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::{AgentLiveness, Conductor};
use farrier_media::KernelParameters;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Boots from a network that somebody else looks after.
struct Network;

impl Interface for Network {}

#[async_trait]
impl BootInterface for Network {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot]
    }

    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        _parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        boot.set_boot_device(BootDevice::Pxe, false).await
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_inspection(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// A conductor whose machines are booted from that network.
async fn conductor(folder: &std::path::Path) -> Conductor {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Arc::new(SqliteStore::open(&folder.join("nodes.sqlite")).await.unwrap());
    let settings = Settings {
        deploy_callback_timeout: Duration::from_secs(3600),
        check_interval: Duration::from_millis(20),
        power_check_interval: Duration::from_millis(20),
        automated_clean: false,
        ..Settings::new("http://127.0.0.1:1")
    };
    let agents = Arc::new(AgentLiveness::new(store.clone(), Arc::new(SystemClock), &settings));
    let drivers = Drivers::default().boot("network", Network);
    let drivers = with_manual(drivers, agents, folder, &["network"]);
    let conductor = Conductor::builder(settings, store, drivers).start().await.unwrap();
    let running = conductor.clone();
    tokio::spawn(async move { running.run().await });
    conductor
}

async fn wait_for(conductor: &Conductor, state: ProvisionState) -> Node {
    let end = Instant::now() + PATIENCE;
    loop {
        let node = conductor.node("n1").await.unwrap();
        if node.provision_state == state && node.reservation.is_none() && node.target_power_state.is_none() {
            return node;
        }
        assert!(Instant::now() < end, "waited for {state}, but {node:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn orders_are_for_an_operator_who_reports_when_they_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let conductor = conductor(folder.path()).await;
    let port = "52:54:00:00:00:01".parse().unwrap();
    let new = NewNode {
        name: Some("n1".into()),
        driver: "manual".into(),
        initial_state: InitialState::Enroll,
        ports: vec![port],
        ..NewNode::default()
    };
    conductor.create_node(new).await.unwrap();
    conductor.order("n1", Order::Manage).await.unwrap();
    let node = wait_for(&conductor, ProvisionState::Manageable).await;
    assert_eq!(node.power_state, Some(PowerState::Off), "it is taken for off until somebody tells");
    conductor.order("n1", Order::power(PowerAction::On)).await.unwrap();
    let node = wait_for(&conductor, ProvisionState::Manageable).await;
    assert_eq!(node.power_state, Some(PowerState::On));
    let explanation = conductor.evidence().explain("n1").await.unwrap();
    assert!(explanation.evidence.iter().all(|one| one.what != "order to an operator"), "{explanation:#?}");

    conductor.order("n1", Order::Inspect).await.unwrap();
    wait_for(&conductor, ProvisionState::InspectWait).await;
    let explanation = conductor.evidence().explain("n1").await.unwrap();
    assert_eq!(explanation.evidence[0].what, "order to an operator");
    assert!(
        explanation.evidence[0]
            .said
            .starts_with("power the machine on, or off and on, and have it start from pxe this time (since "),
        "{explanation:#?}"
    );
    assert!(
        explanation.next_action.starts_with("Unless that is done, power the machine on"),
        "{explanation:#?}"
    );

    // The operation that ends it ends the pending action too.
    conductor.order("n1", Order::Abort).await.unwrap();
    wait_for(&conductor, ProvisionState::InspectFailed).await;
    let explanation = conductor.evidence().explain("n1").await.unwrap();
    assert!(explanation.evidence[0].said.starts_with("power the machine off"), "{explanation:#?}");
    conductor.order("n1", Order::Manage).await.unwrap();
    wait_for(&conductor, ProvisionState::Manageable).await;
    conductor.order("n1", Order::power(PowerAction::Off)).await.unwrap();
    let node = wait_for(&conductor, ProvisionState::Manageable).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::Off), None));
    let explanation = conductor.evidence().explain("n1").await.unwrap();
    assert!(explanation.evidence.iter().all(|one| one.what != "order to an operator"), "{explanation:#?}");
}
