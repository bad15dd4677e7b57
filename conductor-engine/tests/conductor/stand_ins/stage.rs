//! A conductor with both of its interfaces served, and one machine.

use super::agent::Script;
use super::machine::FakeMachine;
use farrier_conductor::EventKind;
use farrier_conductor::agent::AgentSettings;
use farrier_conductor::model::{InstanceInfo, NewNode, Node, ProvisionState};
use farrier_conductor::testing::JumpingClock;
use farrier_conductor::{Drivers, Settings};
use farrier_engine::evidence::events::Event;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, Record, Terms};
use farrier_engine::{Conductor, Error};
use farrier_node_api::nodes::nodes_router;
use farrier_node_api::ramdisk::ramdisk_router;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use uuid::Uuid;

/// Address of the only machine.
pub const MAC: &str = "52:54:00:00:00:01";

/// Longest time any test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a record.
const POLL: Duration = Duration::from_millis(20);

pub struct Stage {
    pub conductor: Conductor,
    pub machine: FakeMachine,
    /// Base URL of the ramdisk API.
    pub ramdisk_api: String,
    /// Base URL of the node API.
    pub node_api: String,
    pub http: reqwest::Client,
    pub store: Arc<SqliteStore>,
    pub clock: JumpingClock,
    _folder: tempfile::TempDir,
}

/// Settings whose waits take milliseconds.
pub fn quick(api_url: &str) -> Settings {
    Settings {
        deploy_callback_timeout: PATIENCE,
        clean_callback_timeout: PATIENCE,
        service_callback_timeout: PATIENCE,
        rescue_callback_timeout: PATIENCE,
        inspect_wait_timeout: PATIENCE,
        check_interval: Duration::from_millis(50),
        power_check_interval: Duration::from_millis(50),
        progress_interval: Duration::from_millis(20),
        power_state_change_timeout: Duration::from_secs(10),
        soft_power_off_timeout: Duration::from_secs(10),
        power_off_timeout: Duration::from_millis(300),
        power_poll_interval: Duration::from_millis(10),
        tear_down_pause: Duration::from_millis(10),
        node_locked_attempts: 2,
        node_locked_pause: Duration::from_millis(200),
        agent: AgentSettings {
            command_timeout: Duration::from_secs(2),
            command_retry_pause: Duration::from_millis(10),
            command_wait_interval: Duration::from_millis(10),
            ..AgentSettings::default()
        },
        ..Settings::new(api_url)
    }
}

impl Stage {
    pub async fn new(script: Script) -> Self {
        Self::with(script, |_| {}).await
    }

    /// A stage with changed settings and one enrolled node, `n1`.
    pub async fn with(script: Script, change: impl FnOnce(&mut Settings)) -> Self {
        Self::built(script, change, "fake", |drivers| drivers).await
    }

    /// A stage with more interfaces, and one enrolled node of a hardware type. Nodes are not cleaned by themselves.
    pub async fn composed(script: Script, driver: &str, compose: impl FnOnce(Drivers) -> Drivers) -> Self {
        Self::built(script, |settings| settings.automated_clean = false, driver, compose).await
    }

    /// A stage with both.
    pub async fn built(
        script: Script,
        change: impl FnOnce(&mut Settings),
        driver: &str,
        compose: impl FnOnce(Drivers) -> Drivers,
    ) -> Self {
        Self::built_with(script, change, driver, |_, drivers| compose(drivers)).await
    }

    /// As [`Self::built`], with the machine for drivers that need it.
    pub async fn built_with(
        script: Script,
        change: impl FnOnce(&mut Settings),
        driver: &str,
        compose: impl FnOnce(&FakeMachine, Drivers) -> Drivers,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console.log");
        std::fs::write(&console, "farrier-agent: link eth0 is down\r\n").unwrap();
        let machine = FakeMachine { console: Some(console), ..FakeMachine::new(script) };
        let ramdisk = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ramdisk_api = format!("http://{}", ramdisk.local_addr().unwrap());
        let node_api = format!("http://{}", admin.local_addr().unwrap());
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        let mut settings = quick(&ramdisk_api);
        change(&mut settings);
        let clock = JumpingClock::default();
        let drivers = compose(&machine, machine.drivers());
        let builder = Conductor::builder(settings, store.clone(), drivers).clock(clock.clone());
        let conductor = builder.start().await.unwrap();
        tokio::spawn(axum::serve(ramdisk, ramdisk_router(conductor.clone())).into_future());
        tokio::spawn(axum::serve(admin, nodes_router(conductor.clone())).into_future());
        let watcher = conductor.clone();
        tokio::spawn(async move { watcher.run().await });
        let new = NewNode { driver: driver.to_owned(), ..new_node("n1", MAC) };
        conductor.create_node(new).await.unwrap();
        let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        Self { conductor, machine, ramdisk_api, node_api, http, store, clock, _folder: folder }
    }

    pub async fn node(&self) -> Node {
        self.conductor.node("n1").await.unwrap()
    }

    /// Changes the record of the node, as an operator does.
    pub async fn change_node(&self, change: impl FnOnce(&mut Node)) {
        change_node(&self.store, self.idle().await.uuid, change).await;
    }

    pub async fn record(&self) -> Record {
        self.store.by_name("n1").await.unwrap().unwrap()
    }

    pub async fn store_node(&self) -> Node {
        self.record().await.node
    }

    pub async fn deploy(&self) {
        self.conductor.order("n1", Order::deploy(image())).await.unwrap();
    }

    /// A manageable node.
    pub async fn manageable(&self) {
        self.conductor.order("n1", Order::Manage).await.unwrap();
        self.wait_for(ProvisionState::Manageable).await;
    }

    pub async fn clean(&self, steps: Value) {
        self.conductor.order("n1", Order::clean(steps.as_array().unwrap())).await.unwrap();
    }

    /// What the agents of the machine were told.
    pub fn script(&self) -> Script {
        self.machine.script.lock().unwrap().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.machine.script.lock().unwrap());
    }

    /// Waits until the agents of the machine are as wanted.
    pub async fn told(&self, wanted: impl Fn(&Script) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !wanted(&self.script()) {
            assert!(Instant::now() < end, "waited for something else than {:?}", self.script());
            tokio::time::sleep(POLL).await;
        }
    }

    /// The node once it has reached `state` and nobody works on it any more.
    pub async fn wait_for(&self, state: ProvisionState) -> Node {
        self.named("n1", state).await
    }

    /// The node of this name once it has reached `state` and nobody works on it any more.
    pub async fn named(&self, name: &str, state: ProvisionState) -> Node {
        let end = Instant::now() + PATIENCE;
        loop {
            let node = self.conductor.node(name).await.unwrap();
            if node.provision_state == state && node.reservation.is_none() {
                return node;
            }
            assert!(Instant::now() < end, "waited for {state}, but {node:#?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The node once nobody works on it any more.
    pub async fn idle(&self) -> Node {
        let end = Instant::now() + PATIENCE;
        loop {
            let node = self.node().await;
            if node.reservation.is_none() {
                return node;
            }
            assert!(Instant::now() < end, "waited for an end of the work, but {node:#?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until there is no node of this name.
    pub async fn gone(&self, name: &str) {
        let end = Instant::now() + PATIENCE;
        while !matches!(self.conductor.node(name).await, Err(Error::NodeNotFound(_))) {
            assert!(Instant::now() < end, "waited for the end of node {name}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Deploys and returns the `last_error` of the node, which must fail.
    pub async fn deploy_and_fail(&self) -> String {
        self.deploy().await;
        let node = self.wait_for(ProvisionState::DeployFailed).await;
        self.until(|events| matches!(events.last().unwrap().kind, EventKind::Failed { .. })).await;
        node.last_error.unwrap()
    }

    /// Events of the node once they are as wanted.
    pub async fn until(&self, wanted: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        let uuid = self.node().await.uuid;
        let end = Instant::now() + PATIENCE;
        loop {
            let events = self.conductor.events().since(uuid, 0);
            if !events.is_empty() && wanted(&events) {
                return events;
            }
            assert!(Instant::now() < end, "waited for events, but {events:#?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Has somebody watch the node from now on.
    pub async fn watch(&self) {
        self.change(|script| script.is_watched = true);
        let (conductor, uuid) = (self.conductor.clone(), self.node().await.uuid);
        tokio::spawn(async move {
            loop {
                conductor.events().since(uuid, 0);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }

    /// GET on the ramdisk API.
    pub async fn get(&self, path: &str, version: &str) -> reqwest::Response {
        let request = self.http.get(format!("{}{path}", self.ramdisk_api));
        request.header("X-OpenStack-Ironic-API-Version", version).send().await.unwrap()
    }

    /// POST of a heartbeat.
    pub async fn heartbeat(&self, node: &str, body: &Value) -> reqwest::Response {
        let request = self.http.post(format!("{}/v1/heartbeat/{node}", self.ramdisk_api)).json(body);
        request.header("X-OpenStack-Ironic-API-Version", "1.68").send().await.unwrap()
    }
}

/// Changes the record of a node that nobody works on.
pub async fn change_node(store: &SqliteStore, node: Uuid, change: impl FnOnce(&mut Node)) {
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
    let (lease, mut record) = store.take(node, &terms).await.unwrap();
    change(&mut record.node);
    store.write(&lease, &Change { ends_lease: true, ..Change::of(&record.node) }).await.unwrap();
}

pub fn new_node(name: &str, mac: &str) -> NewNode {
    NewNode {
        name: Some(name.into()),
        driver: "fake".into(),
        ports: vec![mac.parse().unwrap()],
        ..NewNode::default()
    }
}

/// What to deploy; the fake agent reads nothing of it.
pub fn image() -> InstanceInfo {
    let info = json!({
        "image_source": "http://192.0.2.5/debian.raw",
        "image_checksum": format!("sha256:{}", "a".repeat(64)),
        "configdrive": "H4sIAAAA",
    });
    serde_json::from_value(info).unwrap()
}

/// The text of an error body, which is JSON inside JSON.
pub async fn fault(response: reqwest::Response) -> String {
    let outer: Value = response.json().await.unwrap();
    let inner: Value = serde_json::from_str(outer["error_message"].as_str().unwrap()).unwrap();
    inner["faultstring"].as_str().unwrap().to_owned()
}
