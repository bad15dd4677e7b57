//! What a conductor asks of its store, of agents and of BMCs while nodes wait, or are worked on by others.

use crate::stand_ins::agent::Script;
use crate::stand_ins::gate::{Gate, GatedStore};
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{PATIENCE, change_node, quick};
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface};
use farrier_conductor::model::{Event, NewNode, Node, PowerAction, PowerState, ProvisionState};
use farrier_conductor::{HardwareType, Settings};
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, StoreError, Terms, WriteKind};
use farrier_engine::{Conductor, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < end, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A store with a node in a state.
async fn store_with(state: ProvisionState) -> (tempfile::TempDir, Arc<SqliteStore>, Node) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    let new = NewNode { name: Some("n1".into()), driver: "fake".into(), ..NewNode::default() };
    let mut node = Node::enrol(new, OffsetDateTime::now_utc());
    node.provision_state = state;
    store.create(&node).await.unwrap();
    (folder, store, node)
}

async fn conductor(store: &Arc<SqliteStore>, name: &str, change: impl FnOnce(&mut Settings)) -> Conductor {
    let mut settings = Settings { conductor_name: name.into(), ..quick("http://127.0.0.1:1") };
    change(&mut settings);
    FakeMachine::new(Script::default()).conductor(settings, store.clone()).start().await.unwrap()
}

fn run(conductor: &Conductor) {
    let runner = conductor.clone();
    tokio::spawn(async move { runner.run().await });
}

/// Otherwise each conductor that knows the node takes the lock of the whole store once a second.
#[tokio::test]
async fn l05_a_worker_that_finds_its_node_held_asks_for_no_turn_to_write() {
    let (_folder, store, node) = store_with(ProvisionState::CleanWait).await;
    let loser = conductor(&store, "two", |settings| {
        settings.clean_callback_timeout = Duration::from_secs(3600);
    })
    .await;
    run(&loser);
    until("a worker", async || loser.figures().workers.workers == 1).await;
    // Another conductor takes the node, and works on it.
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "one", now, expires_at: now + time::Duration::HOUR };
    let (lease, record) = store.take(node.uuid, &terms).await.unwrap();
    let mut working = record.node;
    assert!(working.apply(Event::Resume, now));
    store.write(&lease, &Change::of(&working)).await.unwrap();
    let writes = async || WriteKind::ALL.iter().map(|kind| store.waited(*kind).turns).sum::<u64>();
    let passes = async || loser.figures().workers.passes;
    let seen = passes().await + 2;
    until("a look at the node that is held", async || passes().await > seen).await;
    let (before, seen) = (writes().await, passes().await);
    until("more looks", async || passes().await > seen + 20).await;
    assert_eq!(writes().await, before);
}

/// A task for each lease would write once for each.
#[tokio::test]
async fn l04_the_leases_of_a_conductor_are_renewed_by_one_statement() {
    let (_folder, store, first) = store_with(ProvisionState::Manageable).await;
    let second = Node { uuid: Uuid::new_v4(), name: Some("n2".into()), ..first };
    store.create(&second).await.unwrap();
    let machine = FakeMachine::new(Script::default());
    let lease = Duration::from_millis(200);
    let settings = Settings { lease, power_state_change_timeout: PATIENCE, ..quick("http://127.0.0.1:1") };
    let conductor = machine.conductor(settings, store.clone()).start().await.unwrap();
    machine.state.lock().unwrap().power = PowerState::On;
    // Both nodes are worked on for as long as this is held.
    let busy = machine.power_off.lock().await;
    for node in ["n1", "n2"] {
        conductor.order(node, Order::power(PowerAction::Off)).await.unwrap();
    }
    until("orders that hang", async || machine.waiting_for_power_off() == 2).await;
    let renewed = async || conductor.figures().renewed_leases;
    let turns = || store.waited(WriteKind::Mailbox).turns;
    let (before, turns_before) = (renewed().await, turns());
    until("renewals", async || renewed().await >= before + 20).await;
    let (renewed, turns) = (renewed().await - before, turns() - turns_before);
    assert!(turns <= renewed / 2 + 1, "{turns} writes renewed leases {renewed} times");
    let figures = conductor.figures();
    assert_eq!((figures.leases, figures.lost_leases), (2, 0));
    // A lease that another conductor has taken is not renewed, and its work ends.
    let far = OffsetDateTime::now_utc() + time::Duration::hours(24);
    store.take(second.uuid, &Terms { holder: "two", now: far, expires_at: far }).await.unwrap();
    until("the end of work", async || machine.waiting_for_power_off() == 1).await;
    until("a lease that is lost", async || conductor.figures().lost_leases == 1).await;
    drop(busy);
}

/// A BMC takes a hundred times as long to answer as the store, and may hang.
#[tokio::test]
async fn l01_the_machine_of_a_waiting_node_is_read_at_a_rate_of_its_own_and_nobody_waits_for_it() {
    for hangs in [false, true] {
        let (_folder, store, node) = store_with(ProvisionState::Manageable).await;
        let strip = Strip { hangs, readings: Arc::default() };
        let readings = strip.readings.clone();
        let machine = FakeMachine::new(Script::default());
        let strip_type = HardwareType::new("strip").power(["strip"]).boot(["fake"]).deploy(["direct"]);
        let drivers = machine.drivers().power("strip", strip).hardware_type(strip_type);
        let hour = Duration::from_secs(3600);
        let settings = Settings {
            power_check_interval: hour,
            power_read_timeout: hour,
            clean_callback_timeout: hour,
            boot_retry_timeout: hour,
            ..quick("http://127.0.0.1:1")
        };
        change_node(&store, node.uuid, |kept| {
            (kept.driver, kept.provision_state) = ("strip".into(), ProvisionState::CleanWait);
        })
        .await;
        let gate = GatedStore::new(store.clone(), Gate::Open, settings.clone());
        let conductor = Conductor::builder(settings, gate.clone(), drivers).start().await.unwrap();
        until("passes", async || conductor.figures().workers.passes > 30).await;
        until("a reading", async || readings.load(Ordering::SeqCst) > 0).await;
        assert_eq!(readings.load(Ordering::SeqCst), 1, "{hangs}");
        // Nor is a record read again that has not changed.
        assert_eq!(gate.reads(), 1);
        assert_eq!(conductor.find("n1").await.unwrap().node.provision_state, ProvisionState::CleanWait);
    }
}

/// A power strip whose answers are counted.
#[derive(Clone)]
struct Strip {
    hangs: bool,
    readings: Arc<AtomicUsize>,
}

impl Interface for Strip {}

#[async_trait]
impl PowerInterface for Strip {
    async fn power_state(&self, _: &Node) -> Result<PowerState, InterfaceError> {
        self.readings.fetch_add(1, Ordering::SeqCst);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(PowerState::On)
    }

    async fn power_on(&self, _: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn power_off(&self, _: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// It slept a whole second before.
#[tokio::test]
async fn k42_a_request_that_finds_its_node_locked_goes_on_when_the_lease_is_given_back() {
    let (_folder, store, _node) = store_with(ProvisionState::Manageable).await;
    let conductor = conductor(&store, "one", |settings| {
        settings.node_locked_attempts = 3;
        // Whoever sleeps for this long fails the test.
        settings.node_locked_pause = PATIENCE * 2;
    })
    .await;
    run(&conductor);
    let requests = (0..20).map(|number: usize| {
        let conductor = conductor.clone();
        tokio::spawn(async move {
            conductor
                .update("n1", |mut node| {
                    node.extra.insert(number.to_string(), true.into());
                    Ok::<_, Error>(node)
                })
                .await
        })
    });
    let requests: Vec<_> = requests.collect();
    for request in requests {
        let answered = tokio::time::timeout(PATIENCE, request).await;
        answered.expect("a request slept").unwrap().unwrap();
    }
    assert_eq!(conductor.find("n1").await.unwrap().node.extra.len(), 20);
    // Of another conductor nothing is heard: its lease is looked at again, and not for ever.
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "two", now, expires_at: now + time::Duration::HOUR };
    let node = conductor.find("n1").await.unwrap().node.uuid;
    store.take(node, &terms).await.unwrap();
    let other = self::conductor(&store, "three", |_| {}).await;
    let refused = other.update("n1", Ok::<_, Error>).await.unwrap_err();
    assert!(matches!(refused, Error::Store(StoreError::Held { .. })), "{refused}");
}
