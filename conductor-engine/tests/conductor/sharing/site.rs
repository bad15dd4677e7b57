//! Conductors over one SQLite file, each on a host of its own that can stand still.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{PATIENCE, quick};
use crate::stand_ins::witness::{Seen, Witness};
use farrier_conductor::Settings;
use farrier_conductor::model::{Activity, Node, ProvisionState};
use farrier_conductor::testing::JumpingClock;
use farrier_engine::records::{Order, StepsOrder};
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, Record, Selection, Terms};
use farrier_engine::{Conductor, Error};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// What outlives every conductor: machines, and the file.
pub struct Site {
    pub outside: Runtime,
    pub store: SqliteStore,
    pub seen: Arc<Mutex<Seen>>,
    machine: FakeMachine,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

/// A conductor on a host of its own.
pub struct Host {
    pub runtime: Runtime,
    pub conductor: Conductor,
    pub clock: JumpingClock,
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

impl Site {
    pub fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (outside, folder) = (runtime(), tempfile::tempdir().unwrap());
        let file = folder.path().join("nodes.sqlite");
        let (machine, store) = outside.block_on(async {
            (FakeMachine::new(Script::default()), SqliteStore::open(&file).await.unwrap())
        });
        Self { outside, store, seen: Arc::default(), machine, file, _folder: folder }
    }

    /// A conductor with these hardware types begins.
    pub fn try_begin(
        &self,
        name: &str,
        hardware_types: &[&'static str],
        change: impl FnOnce(&mut Settings),
    ) -> Result<Host, Error> {
        let (runtime, clock) = (runtime(), JumpingClock::default());
        let mut settings = Settings {
            conductor_name: name.to_owned(),
            lease: Duration::from_millis(1500),
            node_locked_attempts: 200,
            automated_clean: false,
            clean_callback_timeout: Duration::from_secs(60),
            ..quick("http://127.0.0.1:1")
        };
        settings.power_sync.sync_power_state_interval = Duration::from_millis(100);
        settings.power_sync.power_failure_recovery_interval = Duration::ZERO;
        change(&mut settings);
        let drivers =
            Witness::new(&self.seen, name).drivers(hardware_types).boot("fake", self.machine.clone());
        let conductor = runtime.block_on(async {
            let store = Arc::new(SqliteStore::open(&self.file).await.unwrap());
            let conductor = Conductor::builder(settings, store, drivers).clock(clock.clone()).start().await?;
            let runner = conductor.clone();
            tokio::spawn(async move { runner.run().await });
            Ok::<_, Error>(conductor)
        })?;
        Ok(Host { runtime, conductor, clock })
    }

    pub fn begin(&self, name: &str, hardware_types: &[&'static str]) -> Host {
        self.try_begin(name, hardware_types, |_| {}).unwrap()
    }

    pub fn records(&self) -> Vec<Record> {
        self.outside.block_on(self.store.records(&Selection::first(1000))).unwrap()
    }

    pub async fn store_node(&self) -> Node {
        self.store.by_name("n1").await.unwrap().unwrap().node
    }

    /// Leaves a node as a conductor leaves it that is killed while it works on a step.
    pub fn leave_in_the_middle(&self, name: &str) {
        let node = self.record(name).node.uuid;
        let far = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
        let terms = Terms { holder: "c1", now: far, expires_at: far };
        self.outside.block_on(async {
            let (lease, mut record) = self.store.take(node, &terms).await.unwrap();
            record.node.provision_state = ProvisionState::Cleaning;
            self.store.write(&lease, &Change::of(&record.node)).await.unwrap();
        });
    }

    pub fn record(&self, name: &str) -> Record {
        self.outside.block_on(self.store.by_name(name)).unwrap().unwrap()
    }

    /// Waits until all nodes are as wanted.
    pub fn until_all(&self, wanted: impl Fn(&Record) -> bool) {
        self.until(|records| records.iter().all(&wanted));
    }

    pub fn until(&self, wanted: impl Fn(&[Record]) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let records = self.records();
            if wanted(&records) {
                return;
            }
            assert!(Instant::now() < end, "waited for something else than {records:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Host {
    pub fn create(&self, name: &str, hardware_type: &str) -> Node {
        let node = json!({"name": name, "driver": hardware_type});
        self.runtime.block_on(self.conductor.create_node(serde_json::from_value(node).unwrap())).unwrap()
    }

    pub fn order(&self, name: &str, order: Order) -> Result<(), Error> {
        self.runtime.block_on(self.conductor.order(name, order))
    }

    /// The conductors that this one sees.
    pub fn sees(&self) -> Vec<(String, bool)> {
        let known = self.runtime.block_on(self.conductor.conductors()).unwrap();
        known.into_iter().map(|known| (known.record.name, known.is_alive)).collect()
    }

    /// Waits until this conductor is as wanted.
    pub fn until(&self, wanted: impl Fn(&Conductor) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !wanted(&self.conductor) {
            assert!(Instant::now() < end, "waited for a conductor that sees {:?}", self.sees());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until this conductor sees so many others and itself, all alive.
    pub fn until_it_sees(&self, alive: usize) {
        let end = Instant::now() + PATIENCE;
        while self.sees().iter().filter(|(_, is_alive)| *is_alive).count() != alive {
            assert!(Instant::now() < end, "waited for {alive} conductors, but {:?}", self.sees());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The host stands still until the sender is dropped.
    #[must_use]
    pub fn suspend(&self) -> mpsc::Sender<()> {
        let (resume, resumed) = mpsc::channel();
        self.runtime.spawn(async move { resumed.recv() });
        resume
    }

    /// Its process ends without a word.
    pub fn kill(self) {
        self.runtime.shutdown_background();
    }

    /// Its process ends in order.
    pub fn stop(self) {
        self.runtime.block_on(async {
            self.conductor.drain().await;
            self.conductor.shut_down().await;
        });
        self.runtime.shutdown_background();
    }
}

/// A step of the power interface without the ramdisk.
pub fn step(name: &str) -> Order {
    let steps = [json!({"interface": "power", "step": name})];
    Order::Clean(StepsOrder { disable_ramdisk: true, ..StepsOrder::given(&steps) })
}

pub fn is_in(state: ProvisionState) -> impl Fn(&Record) -> bool {
    move |record| {
        let is_free = record.lease_expires_at.is_none_or(|until| until <= time::OffsetDateTime::UNIX_EPOCH);
        // The order of an operation stays until the operation ends.
        let is_done = record.order.is_none() || state.activity() == Activity::Wait;
        record.node.provision_state == state && is_done && is_free
    }
}
