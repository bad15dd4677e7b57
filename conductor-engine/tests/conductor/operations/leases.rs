//! Leases: no clock ends one, a lease that is lost ends the work under it, and what is ordered is carried out first.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{MAC, PATIENCE, Stage, change_node, image, new_node, quick};
use farrier_conductor::model::{PowerAction, PowerState, ProvisionState};
use farrier_engine::records::{Order, PendingOrder, Verb};
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, OrderChange, StoreError, Terms};
use farrier_engine::{Conductor, Error};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// A lease of another conductor, whenever the one before would end.
fn of_another() -> Terms<'static> {
    let far = OffsetDateTime::now_utc() + time::Duration::hours(24);
    Terms { holder: "another", now: far, expires_at: far }
}

async fn until(wanted: impl AsyncFn() -> bool, what: &str) {
    let end = Instant::now() + PATIENCE;
    while !wanted().await {
        assert!(Instant::now() < end, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Clocks of hosts differ, and jump. That a lease is not renewed is seen by one that does neither.
#[tokio::test]
async fn e07_a_lease_ends_when_it_is_not_renewed_and_not_when_a_clock_says_so() {
    let lease = Duration::from_millis(500);
    let stage = Stage::with(Script::default(), |settings| settings.lease = lease).await;
    let (uuid, begun) = (stage.node().await.uuid, Instant::now());
    stage.store.take(uuid, &of_another()).await.unwrap();
    stage.clock.jump(time::Duration::hours(48));
    assert_eq!(stage.node().await.reservation.as_deref(), Some("another"));
    let refused = stage.conductor.order("n1", Order::deploy(image())).await.unwrap_err();
    assert!(matches!(refused, Error::Store(StoreError::Held { .. })), "{refused}");
    until(async || stage.node().await.reservation.is_none(), "the end of a lease that nobody renews").await;
    assert!(begun.elapsed() >= lease, "{:?}", begun.elapsed());
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
}

/// A request that asks for the node again and again has no lease: it only claims one.
#[tokio::test]
async fn e07_a_lease_whose_answer_was_lost_ends_while_requests_ask_for_its_node() {
    let lease = Duration::from_millis(500);
    let stage = Stage::with(Script::default(), |settings| settings.lease = lease).await;
    let name = stage.conductor.settings().conductor_name.clone();
    stage.store.take(stage.node().await.uuid, &Terms { holder: &name, ..of_another() }).await.unwrap();
    until(
        async || match stage.conductor.set_maintenance("n1", true, None).await {
            Ok(()) => true,
            Err(Error::Store(StoreError::Held { .. })) => false,
            Err(error) => panic!("{error}"),
        },
        "the end of a lease that no task of the process knows",
    )
    .await;
}

/// A request on a node in work finds the lease of its own process, whatever the clock says of it.
#[tokio::test]
async fn e07_a_clock_that_jumps_lets_no_request_overtake_the_work_of_its_process() {
    let stage = Stage::new(Script::default()).await;
    let busy = stage.machine.power_off.lock().await;
    stage.deploy().await;
    until(async || stage.machine.waiting_for_power_off() == 1, "the order to go off").await;
    stage.clock.jump(time::Duration::hours(1));
    let refused = stage.conductor.set_maintenance("n1", true, None).await.unwrap_err();
    assert!(matches!(refused, Error::Store(StoreError::Held { .. })), "{refused}");
    let lookup = stage.get(&format!("/v1/lookup?addresses={MAC}"), "1.68").await;
    assert_eq!(lookup.status(), 409);
    drop(busy);
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    assert_eq!(stage.machine.power_ons().len(), 2);
}

/// The machine is another conductor's: what this one has begun with it ends at once.
#[tokio::test]
async fn e06_work_ends_when_its_lease_is_known_to_be_lost() {
    let stage = Stage::with(Script::default(), |settings| settings.lease = Duration::from_millis(400)).await;
    let busy = stage.machine.power_off.lock().await;
    stage.deploy().await;
    until(async || stage.machine.waiting_for_power_off() == 1, "the order to go off").await;
    let uuid = stage.node().await.uuid;
    let offs = stage.machine.offs();
    let (lease, _) = stage.store.take(uuid, &of_another()).await.unwrap();
    // The call that hangs in the driver is dropped, before the driver answers.
    let renewed = async || {
        stage.store.renew(&lease, of_another().expires_at).await.unwrap();
        stage.machine.waiting_for_power_off() == 0
    };
    until(renewed, "the end of work without its lease").await;
    drop(busy);
    assert_eq!(stage.machine.offs(), offs, "the machine was switched by a conductor that had lost it");
}

/// What a failure left to be cleaned up is no order that another one may replace.
#[tokio::test]
async fn e12_an_order_never_replaces_what_is_left_to_be_cleaned_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    let drivers = FakeMachine::new(Script::default()).drivers();
    // Nothing runs, as if the worker paused: what is written is left where it is.
    let conductor =
        Conductor::builder(quick("http://127.0.0.1:1"), store.clone(), drivers).start().await.unwrap();
    let node = conductor.create_node(new_node("n1", MAC)).await.unwrap().uuid;
    change_node(&store, node, |node| {
        node.provision_state = ProvisionState::DeployFailed;
        node.target_power_state = Some(PowerState::Off);
    })
    .await;
    let (lease, record) = store.take(node, &of_another()).await.unwrap();
    let order = PendingOrder::new(Verb::CleanUp, OffsetDateTime::UNIX_EPOCH);
    let change = Change { order: OrderChange::Put(order), ends_lease: true, ..Change::of(&record.node) };
    store.write(&lease, &change).await.unwrap();
    for order in
        [Order::power(PowerAction::On), Order::Undeploy, Order::deploy(image()), Order::Retry, Order::Delete]
    {
        let refused = conductor.order("n1", order.clone()).await.unwrap_err();
        assert!(matches!(refused, Error::Store(StoreError::Held { .. })), "{order:?}: {refused}");
    }
    let after = store.get(node).await.unwrap().unwrap();
    assert_eq!(after.order.map(|order| order.verb), Some(Verb::CleanUp));
    assert_eq!(after.node.target_power_state, Some(PowerState::Off));
}
