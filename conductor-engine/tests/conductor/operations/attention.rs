//! Nobody is forgotten: in every state, after every order.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{PATIENCE, image, new_node, quick};
use farrier_conductor::Error as TaskError;
use farrier_conductor::model::{Activity, Event, ProvisionState};
use farrier_conductor::{PowerAction, Settings};
use farrier_engine::explain::who_acts::Attention;
use farrier_engine::records::{Deployment, Order};
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, Record, Store, Terms};
use farrier_engine::{Conductor, Error};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// Puts a node into a state, as if a conductor had left it there.
pub async fn put(store: &dyn Store, uuid: Uuid, state: ProvisionState, target: Option<ProvisionState>) {
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
    let (lease, mut record) = store.take(uuid, &terms).await.unwrap();
    (record.node.provision_state, record.node.provision_updated_at) = (state, now);
    record.node.target_provision_state = target;
    store.write(&lease, &Change { ends_lease: true, ..Change::of(&record.node) }).await.unwrap();
}

/// Every order, with the verb of section 1.2 where it is one.
fn orders() -> Vec<(Order, Option<Event>)> {
    let steps = [json!({"interface": "deploy", "step": "erase_devices"})];
    let rebuild = Deployment { instance_info: Some(image()), ..Deployment::default() };
    let verbs = [
        (Order::deploy(image()), Event::Deploy),
        (Order::Rebuild(rebuild), Event::Rebuild),
        (Order::Undeploy, Event::Delete),
        (Order::Manage, Event::Manage),
        (Order::Provide, Event::Provide),
        (Order::clean(&steps), Event::Clean),
        (Order::service(&steps), Event::Service),
        (Order::rescue("oats"), Event::Rescue),
        (Order::Unrescue, Event::Unrescue),
        (Order::Adopt, Event::Adopt),
        (Order::Retry, Event::Retry),
        (Order::Abort, Event::Abort),
        (Order::Unhold, Event::Unhold),
        (Order::Inspect, Event::Inspect),
    ];
    let power = PowerAction::ALL.iter().map(|action| (Order::power(*action), None));
    let verbs = verbs.into_iter().map(|(order, event)| (order, Some(event)));
    verbs.chain(power).chain([(Order::Delete, None)]).collect()
}

struct Site {
    conductor: Conductor,
    store: Arc<SqliteStore>,
    machine: FakeMachine,
    settings: Settings,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        let machine = FakeMachine::new(Script { silent: true, ..Script::default() });
        let settings = quick("http://127.0.0.1:1");
        let conductor = machine.conductor(settings.clone(), store.clone()).start().await.unwrap();
        Self { conductor, store, machine, settings, _folder: folder }
    }

    async fn record(&self, uuid: Uuid) -> Option<Record> {
        let record = self.store.get(uuid).await.unwrap()?;
        assert_ne!(Attention::of(&record, &self.settings), Attention::Nobody, "{record:#?}");
        Some(record)
    }

    /// The record once nobody works on it; nothing when it is gone.
    async fn idle(&self, uuid: Uuid) -> Option<Record> {
        let end = Instant::now() + PATIENCE;
        loop {
            let record = self.record(uuid).await?;
            if record.node.reservation.is_none() {
                return Some(record);
            }
            assert!(Instant::now() < end, "waited for the end of the work on {record:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn f66_after_every_order_in_every_state_somebody_moves_the_node_on() {
    let site = Site::new().await;
    let (mut accepted, mut number) = (0, 0);
    for state in ProvisionState::ALL {
        for (order, event) in orders() {
            number += 1;
            let (name, mac) =
                (format!("n{number}"), format!("52:54:00:00:{:02x}:{:02x}", number >> 8, number & 255));
            let uuid = site.conductor.create_node(new_node(&name, &mac)).await.unwrap().uuid;
            if state.activity() != Activity::Work {
                put(&*site.store, uuid, *state, state.target()).await;
            }
            let before = site.record(uuid).await.unwrap();
            let state = before.node.provision_state;
            // The worker comes no further than this before the record is looked at.
            let busy = site.machine.power_off.lock().await;
            match site.conductor.order(&name, order.clone()).await {
                Err(Error::Task(TaskError::InvalidState { .. })) => {
                    // A deployment is ordered by either verb.
                    let other = event.filter(|event| [Event::Deploy, Event::Rebuild].contains(event));
                    let is_taken = |event: Event| state.takes_verb(event);
                    assert!(other.is_some() || !event.is_some_and(is_taken), "{state} {order:?}");
                    let after = site.record(uuid).await.unwrap();
                    assert_eq!((after.node.provision_state, after.order), (state, None));
                }
                Err(error) => panic!("{state} {order:?}: {error}"),
                Ok(()) => {
                    accepted += 1;
                    site.record(uuid).await;
                    drop(busy);
                    let Some(end) = site.idle(uuid).await else { continue };
                    let activity = end.node.provision_state.activity();
                    let is_under_way = activity == Activity::Wait && order != Order::Abort && event.is_some();
                    assert_eq!(end.order.is_some(), is_under_way, "{state} {order:?} {end:#?}");
                    let error = end.node.last_error.unwrap_or_default();
                    assert_eq!(
                        error.contains("aborted"),
                        order == Order::Abort,
                        "{state} {order:?}: {error}"
                    );
                    assert_ne!(activity, Activity::Work, "{state} {order:?}");
                }
            }
        }
    }
    // Power everywhere, and what section 1.2 allows besides.
    assert!(accepted > 120, "{accepted}");
}

#[tokio::test]
async fn a_conductor_that_starts_leaves_no_node_where_nobody_moves_it() {
    let site = Site::new().await;
    let mut nodes = Vec::new();
    for (number, state) in ProvisionState::ALL.iter().enumerate() {
        let (name, mac) = (format!("n{number}"), format!("52:54:00:00:00:{number:02x}"));
        let uuid = site.conductor.create_node(new_node(&name, &mac)).await.unwrap().uuid;
        put(&*site.store, uuid, *state, state.target()).await;
        nodes.push((uuid, *state));
    }
    let second = site.machine.conductor(site.settings.clone(), site.store.clone());
    let _second = second.start().await.unwrap();
    for (uuid, state) in nodes {
        let end = Instant::now() + PATIENCE;
        let record = loop {
            let record = site.store.get(uuid).await.unwrap().unwrap();
            let is_worked_on = record.node.provision_state.activity() == Activity::Work;
            if !is_worked_on && record.node.reservation.is_none() {
                break record;
            }
            assert!(Instant::now() < end, "{state}: {record:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        assert_ne!(Attention::of(&record, &site.settings), Attention::Nobody, "{state}");
        let expected = match state {
            ProvisionState::Deploying => ProvisionState::DeployWait,
            ProvisionState::Deleting | ProvisionState::Cleaning => ProvisionState::CleanWait,
            ProvisionState::Servicing => ProvisionState::ServiceWait,
            ProvisionState::Inspecting => ProvisionState::InspectWait,
            ProvisionState::Verifying => ProvisionState::Manageable,
            // Of its instance nothing is said.
            ProvisionState::Adopting => ProvisionState::Active,
            // Without a password, its rescue system has it.
            ProvisionState::Rescuing => ProvisionState::Rescue,
            ProvisionState::Unrescuing => ProvisionState::Active,
            state if state.activity() == Activity::Work => {
                assert!(record.node.last_error.is_some(), "{state}");
                state.after(Event::Fail).unwrap()
            }
            state => state,
        };
        // Machines that are off are not waited for, and all nodes have the same one.
        let gone_on = [Some(expected), expected.after(Event::Fail), state.after(Event::Fail)];
        assert!(gone_on.contains(&Some(record.node.provision_state)), "{state}: {record:#?}");
    }
}
