//! A conductor that is served, with one node of the type `manual` whose agent switches its machine.

use crate::machine::{MAC, Machine};
use farrier_conductor::agent::AgentSettings;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{InitialState, InterfaceKind, NewNode, Node, ProvisionState};
use farrier_conductor::{Drivers, Settings};
use farrier_drivers::manual::with_manual;
use farrier_engine::records::{Order, PendingOrder, Verb};
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, OrderChange, SessionChange, Terms};
use farrier_engine::{AgentLiveness, Conductor, Error};
use farrier_node_api::ramdisk::ramdisk_router;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// Longest time any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    pub conductor: Conductor,
    pub machine: Machine,
    store: Arc<SqliteStore>,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(|_| {}, |builder| builder).await
    }

    /// One with changed settings and more interfaces.
    pub async fn with(change: impl FnOnce(&mut Settings), compose: impl FnOnce(Drivers) -> Drivers) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        let mut settings = quick(&url);
        change(&mut settings);
        let machine = Machine::new(&url);
        let agents = Arc::new(AgentLiveness::new(store.clone(), Arc::new(SystemClock), &settings));
        let drivers = Drivers::default().boot("network", machine.clone());
        let drivers = compose(with_manual(drivers, agents, folder.path(), &["network"]));
        let conductor = Conductor::builder(settings, store.clone(), drivers).start().await.unwrap();
        tokio::spawn(axum::serve(listener, ramdisk_router(conductor.clone())).into_future());
        let running = conductor.clone();
        tokio::spawn(async move { running.run().await });
        let mut new = new_node("n1", "manual");
        new.ports = vec![MAC.parse().unwrap()];
        new.interfaces.set(InterfaceKind::Power, "agent");
        new.interfaces.set(InterfaceKind::Management, "noop");
        conductor.create_node(new).await.unwrap();
        Self { conductor, machine, store, _folder: folder }
    }

    /// One whose machine was started by hand, and whose node is manageable.
    pub async fn manageable() -> Self {
        Self::manageable_with(|_| {}).await
    }

    pub async fn manageable_with(change: impl FnOnce(&mut Settings)) -> Self {
        let stage = Self::with(change, |builder| builder).await;
        stage.machine.start_ramdisk();
        stage.alive(true).await;
        stage.conductor.order("n1", Order::Manage).await.unwrap();
        stage.wait_for(ProvisionState::Manageable).await;
        stage
    }

    pub async fn clean(&self, steps: Value) {
        self.conductor.order("n1", Order::clean(steps.as_array().unwrap())).await.unwrap();
    }

    /// Leaves the node as a conductor does that stops in the middle of its work.
    pub async fn leave(&self, change: impl FnOnce(&mut Node)) {
        self.leave_so(change, false, OrderChange::Keep).await;
    }

    /// As [`Self::leave`], while its agent has the order to reboot the machine, for the sake of another order.
    pub async fn leave_rebooting(&self, verb: Verb, change: impl FnOnce(&mut Node)) {
        self.leave_so(change, true, OrderChange::Put(PendingOrder::new(verb, SystemClock.now()))).await;
    }

    async fn leave_so(&self, change: impl FnOnce(&mut Node), is_rebooting: bool, order: OrderChange) {
        let now = SystemClock.now();
        let terms = Terms { holder: "test", now, expires_at: now + Duration::from_secs(60) };
        let uuid = self.conductor.node("n1").await.unwrap().uuid;
        let (lease, mut record) = self.store.take(uuid, &terms).await.unwrap();
        change(&mut record.node);
        record.session.agent_told_to_reboot = is_rebooting;
        let session = SessionChange::Learned(&record.session);
        let change = Change { session, order, ends_lease: true, ..Change::of(&record.node) };
        self.store.write(&lease, &change).await.unwrap();
    }

    /// The node once it has reached `state` and nobody works on it any more.
    pub async fn wait_for(&self, state: ProvisionState) -> Node {
        self.until(&format!("{state}"), async || {
            let node = self.conductor.node("n1").await.unwrap();
            let rests = node.reservation.is_none() && node.target_power_state.is_none();
            (node.provision_state == state && rests).then_some(node)
        })
        .await
    }

    /// Waits until the node counts as one whose agent is alive, or not.
    pub async fn alive(&self, wanted: bool) {
        self.until("the agent", async || (self.power_fault().await.is_none() == wanted).then_some(())).await;
    }

    /// What its power interface lacks.
    pub async fn power_fault(&self) -> Option<String> {
        let validities = self.conductor.machines().validate("n1").await.unwrap();
        validities[&InterfaceKind::Power].reason.clone()
    }

    /// What `look` finds, once it does.
    pub async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(Instant::now() < end, "waited for {what}, but {:#?}", self.conductor.node("n1").await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Settings whose waits take milliseconds, with fast track.
fn quick(api_url: &str) -> Settings {
    Settings {
        fast_track: true,
        automated_clean: false,
        check_interval: Duration::from_millis(20),
        power_check_interval: Duration::from_millis(20),
        progress_interval: Duration::from_millis(10),
        power_state_change_timeout: Duration::from_secs(10),
        power_poll_interval: Duration::from_millis(5),
        agent: AgentSettings {
            command_timeout: Duration::from_secs(2),
            command_retry_pause: Duration::from_millis(10),
            ..AgentSettings::default()
        },
        ..Settings::new(api_url)
    }
}

pub fn new_node(name: &str, driver: &str) -> NewNode {
    NewNode {
        name: Some(name.to_owned()),
        driver: driver.to_owned(),
        initial_state: InitialState::Enroll,
        ..NewNode::default()
    }
}

/// The text of a refusal.
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().to_string()
}
