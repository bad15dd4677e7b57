//! What outlives conductors, their lives and sudden ends, and what they are ordered to do.

use crate::stand_ins::agent::Script;
use crate::stand_ins::gate::{Gate, GatedStore};
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{MAC, PATIENCE, image, new_node, quick};
use farrier_conductor::Settings;
use farrier_conductor::agent::AgentSettings;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{Activity, Node, PowerState, ProvisionState};
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, Record, Store, Terms};
use farrier_node_api::ramdisk::ramdisk_router;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// How often a test looks whether what it waits for is there. Each look reads a record.
const POLL: Duration = Duration::from_millis(20);

/// After so long without anything to do an order is done.
const QUIET: Duration = Duration::from_secs(3);

/// What outlives every conductor: a machine with its agent, and the file.
pub struct Site {
    pub outside: Runtime,
    pub machine: FakeMachine,
    pub store: SqliteStore,
    pub file: PathBuf,
    _folder: tempfile::TempDir,
}

/// One life of a conductor, whose end is as sudden as that of a process.
pub struct Life {
    pub runtime: Runtime,
    pub conductor: Conductor,
    pub store: Arc<GatedStore>,
    pub address: SocketAddr,
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

impl Site {
    pub fn new(script: Script) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (outside, folder) = (runtime(), tempfile::tempdir().unwrap());
        let file = folder.path().join("nodes.sqlite");
        let (machine, store) =
            outside.block_on(async { (FakeMachine::new(script), SqliteStore::open(&file).await.unwrap()) });
        Self { outside, machine, store, file, _folder: folder }
    }

    pub fn record(&self) -> Record {
        self.outside.block_on(self.store.by_name("n1")).unwrap().unwrap()
    }

    /// Changes the record, as an operator does.
    pub fn change_node(&self, change: impl FnOnce(&mut Node)) {
        let now = SystemClock.now();
        let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
        self.outside.block_on(async {
            let uuid = self.store.by_name("n1").await.unwrap().unwrap().node.uuid;
            let (lease, mut record) = self.store.take(uuid, &terms).await.unwrap();
            change(&mut record.node);
            self.store.write(&lease, &Change { ends_lease: true, ..Change::of(&record.node) }).await.unwrap();
        });
    }

    /// The record once it is as wanted.
    pub fn until(&self, mut wanted: impl FnMut(&Record) -> bool) -> Record {
        let end = Instant::now() + PATIENCE;
        loop {
            let record = self.record();
            if wanted(&record) {
                return record;
            }
            assert!(Instant::now() < end, "waited for something else than {record:#?}");
            std::thread::sleep(POLL);
        }
    }

    /// The record once there is nothing to do.
    pub fn at_rest(&self) -> Record {
        self.until(is_at_rest)
    }

    pub fn power(&self) -> PowerState {
        self.machine.state.lock().unwrap().power
    }
}

impl Life {
    /// A conductor begins, at the address of an earlier one or at any.
    pub fn begin(site: &Site, name: &str, address: Option<SocketAddr>, gate: Gate) -> Self {
        let runtime = runtime();
        let (conductor, store, address) = runtime.block_on(async {
            let listener = listen(address.unwrap_or(([127, 0, 0, 1], 0).into())).await;
            let address = listener.local_addr().unwrap();
            let settings = Settings {
                conductor_name: name.to_owned(),
                lease: Duration::from_millis(400),
                // On a busy computer somebody else's short work may be met again and again.
                node_locked_attempts: 100,
                deploy_callback_timeout: Duration::from_secs(2),
                clean_callback_timeout: Duration::from_secs(2),
                service_callback_timeout: Duration::from_secs(2),
                rescue_callback_timeout: Duration::from_secs(2),
                inspect_wait_timeout: Duration::from_secs(2),
                // A step whose answer came late on a busy host would be begun twice.
                agent: AgentSettings { command_timeout: Duration::from_secs(5), ..quick("").agent },
                ..quick(&format!("http://{address}"))
            };
            let inner: Arc<dyn Store> = Arc::new(SqliteStore::open(&site.file).await.unwrap());
            let store = GatedStore::new(inner, gate, settings.clone());
            let conductor = site.machine.conductor(settings, store.clone()).start().await.unwrap();
            tokio::spawn(axum::serve(listener, ramdisk_router(conductor.clone())).into_future());
            let runner = conductor.clone();
            tokio::spawn(async move { runner.run().await });
            (conductor, store, address)
        });
        Self { runtime, conductor, store, address }
    }

    pub fn enrol(&self) {
        self.runtime.block_on(self.conductor.create_node(new_node("n1", MAC))).unwrap();
    }

    /// Orders a deployment, and does not wait for the answer.
    pub fn order(&self) {
        let conductor = self.conductor.clone();
        self.runtime.spawn(async move { conductor.order("n1", Order::deploy(image())).await });
    }

    /// Waits until the gate stops this, or nothing happens any more: how many writes an order takes depends on how busy
    /// the computer is, and it may be done before.
    fn until_it_stops(&self, site: &Site) {
        let mut at_rest_since = None;
        site.until(|record| {
            let since = is_at_rest(record).then(|| at_rest_since.unwrap_or_else(Instant::now));
            at_rest_since = since;
            self.store.has_stopped() || since.is_some_and(|since| since.elapsed() > QUIET)
        });
    }

    pub fn kill(self) {
        self.store.assert_none_forgotten();
        self.runtime.shutdown_background();
    }
}

fn is_at_rest(record: &Record) -> bool {
    let activity = record.node.provision_state.activity();
    let is_free = record.lease_expires_at.is_none_or(|until| until <= SystemClock.now());
    record.order.is_none() && is_free && !matches!(activity, Activity::Work | Activity::Wait)
}

/// The address may be that of a conductor that was killed a moment ago.
async fn listen(address: SocketAddr) -> TcpListener {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(Instant::now() < end, "{address}: {error}"),
        }
        tokio::time::sleep(POLL).await;
    }
}

/// How many writes an order takes that nobody disturbs.
pub fn writes_of(script: Script, prepare: impl Fn(&Site, &Life), order: impl Fn(&Life)) -> usize {
    let site = Site::new(script);
    let life = Life::begin(&site, "c1", None, Gate::Open);
    life.enrol();
    prepare(&site, &life);
    let before = life.store.writes();
    order(&life);
    // An order may be carried out between two looks at the record.
    site.until(|_| life.store.writes() > before);
    // On a busy host the lease of an order may expire before the order is written: rest has to last.
    life.until_it_stops(&site);
    life.store.writes() - before
}

/// Kills a conductor at the gate while it carries out an order, starts another, and gives the node once it rests.
pub fn killed_at(
    script: Script,
    gate: Gate,
    prepare: impl Fn(&Site, &Life),
    order: impl Fn(&Life),
) -> (Site, Node) {
    let site = Site::new(script);
    let first = Life::begin(&site, "c1", None, Gate::Open);
    first.enrol();
    prepare(&site, &first);
    let writes = first.store.writes();
    first.store.set(match gate {
        Gate::RefusesAfter(more) => Gate::RefusesAfter(writes + more),
        Gate::HangsAfter(more) => Gate::HangsAfter(writes + more),
        Gate::LosesAnswer(more) => Gate::LosesAnswer(writes + more),
        Gate::Open | Gate::HangsAfterListing(_) | Gate::Damages(_) | Gate::LosesCall(_) => gate,
    });
    order(&first);
    first.until_it_stops(&site);
    // What was begun before the gate shut comes to its end.
    std::thread::sleep(Duration::from_millis(30));
    let address = first.address;
    first.kill();

    let second = Life::begin(&site, "c1", Some(address), Gate::Open);
    let node = site.at_rest().node;
    second.kill();
    assert_eq!(node.power_state.unwrap_or(PowerState::Off), site.power(), "{gate:?}");
    assert_eq!(node.target_power_state, None, "{gate:?}");
    (site, node)
}

/// Does something for every gate, some at a time, since it is mostly waited.
pub fn for_each<T: Send>(
    gates: impl Iterator<Item = Gate>,
    act: impl Fn(Gate) -> T + Sync,
) -> Vec<(Gate, T)> {
    let gates: Vec<_> = gates.collect();
    let next = AtomicUsize::new(0);
    let some = || {
        let mut ends = Vec::new();
        while let Some(gate) = gates.get(next.fetch_add(1, Ordering::SeqCst)) {
            ends.push((*gate, act(*gate)));
        }
        ends
    };
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ends.len(), gates.len());
    ends
}

/// Both ways to be killed after each of the first writes of an order.
pub fn gates(writes: usize) -> impl Iterator<Item = Gate> {
    (1..=writes).flat_map(|writes| [Gate::RefusesAfter(writes), Gate::HangsAfter(writes)])
}

fn offer(step: &str, priority: u32, reboot_requested: bool) -> Value {
    json!({"interface": "deploy", "step": step, "priority": priority, "reboot_requested": reboot_requested})
}

/// An agent with two steps, the first of which wants a reboot.
pub fn two_steps() -> Script {
    Script { offers: Some(vec![offer("first", 20, true), offer("second", 10, false)]), ..Script::default() }
}

pub fn manage(site: &Site, life: &Life) {
    life.runtime.block_on(life.conductor.order("n1", Order::Manage)).unwrap();
    site.until(|record| record.node.reservation.is_none());
}

pub fn activate(site: &Site, life: &Life) {
    // Its own steps are those of its service.
    let offers = site.machine.script.lock().unwrap().offers.take();
    life.order();
    site.until(|record| {
        record.node.provision_state == ProvisionState::Active && record.node.reservation.is_none()
    });
    let mut script = site.machine.script.lock().unwrap();
    (script.offers, script.accepted) = (offers, Vec::new());
}

/// Sees that each step was begun once.
pub fn assert_begun_once(site: &Site, kind: &str, gate: Gate) {
    let begun = site.machine.script.lock().unwrap().steps();
    assert_eq!(begun, ["first", "second"].map(|step| format!("{kind} deploy.{step}")), "{gate:?}");
}
