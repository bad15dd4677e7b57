//! Leases.

use super::{SECOND, node, session, terms, with_node};
use crate::records::{PendingOrder, Verb};
use crate::store::*;
use farrier_conductor::model::{AgentSession, Event};
use std::sync::Arc;
use time::OffsetDateTime;

pub(super) async fn leases_that_have_not_ended_are_told_with_their_holders(store: Arc<dyn Store>) {
    let node = with_node(&*store).await;
    assert_eq!(store.held().await.unwrap(), []);
    let terms = terms("one", 0);
    let (lease, _) = store.take(node.uuid, &terms).await.unwrap();
    let expected =
        Held { node: node.uuid, holder: "one".into(), epoch: lease.epoch, expires_at: terms.expires_at };
    assert_eq!(store.held().await.unwrap(), [expected]);
    store.release(&lease).await.unwrap();
    assert_eq!(store.held().await.unwrap(), []);
}

pub(super) async fn a_lease_has_one_holder_until_it_ends_or_expires(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let (lease, record) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    assert_eq!(record.node.reservation.as_deref(), Some("one"));
    // Not even for the same conductor: one of its requests would undo the other.
    for holder in ["one", "two"] {
        let held = store.take(first.uuid, &terms(holder, 59)).await.unwrap_err();
        assert!(matches!(&held, StoreError::Held { holder, .. } if holder == "one"), "{held}");
    }
    store.renew(&lease, OffsetDateTime::UNIX_EPOCH + SECOND * 90).await.unwrap();
    assert!(matches!(store.take(first.uuid, &terms("two", 89)).await, Err(StoreError::Held { .. })));
    store.release(&lease).await.unwrap();
    let (second, record) = store.take(first.uuid, &terms("two", 1)).await.unwrap();
    assert_eq!((record.node.reservation.as_deref(), second.epoch), (Some("two"), lease.epoch + 1));
    let (third, _) = store.take(first.uuid, &terms("three", 61)).await.unwrap();
    assert_eq!(third.epoch, second.epoch + 1);
}

pub(super) async fn whoever_was_overtaken_writes_nothing(store: Arc<dyn Store>) {
    let mut first = with_node(&*store).await;
    let (old, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let (new, _) = store.take(first.uuid, &terms("two", 60)).await.unwrap();
    first.set_last_error("written by the dead");
    let session = session("secret");
    let change = Change {
        session: SessionChange::Replace(&session),
        config_drive: ConfigDrive::Put("H4sI"),
        ends_lease: true,
        ..Change::of(&first)
    };
    assert!(matches!(store.write(&old, &change).await, Err(StoreError::Overtaken(_))));
    assert!(matches!(store.renew(&old, OffsetDateTime::UNIX_EPOCH).await, Err(StoreError::Overtaken(_))));
    assert!(matches!(store.delete(&old).await, Err(StoreError::Overtaken(_))));
    store.release(&old).await.unwrap();
    let record = store.get(first.uuid).await.unwrap().unwrap();
    assert_eq!(record.node.last_error, None);
    assert_eq!(record.session, AgentSession::default());
    assert_eq!(record.node.reservation.as_deref(), Some("two"));
    assert_eq!(store.config_drive(first.uuid).await.unwrap(), None);
    store.write(&new, &change).await.unwrap();
}

/// A statement under a lease may come to the store after the one that ends the lease.
pub(super) async fn e06_a_lease_that_has_ended_is_worth_nothing(store: Arc<dyn Store>) {
    let mut first = with_node(&*store).await;
    for is_released in [true, false] {
        let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
        match is_released {
            true => store.release(&lease).await.unwrap(),
            false => {
                store.write(&lease, &Change { ends_lease: true, ..Change::of(&first) }).await.unwrap();
            }
        }
        let later = OffsetDateTime::UNIX_EPOCH + SECOND * 500;
        assert!(matches!(store.renew(&lease, later).await, Err(StoreError::Overtaken(_))));
        assert!(store.renew_all(std::slice::from_ref(&lease), later).await.unwrap().is_empty());
        first.set_last_error("written without a lease");
        assert!(matches!(store.write(&lease, &Change::of(&first)).await, Err(StoreError::Overtaken(_))));
        assert!(matches!(store.delete(&lease).await, Err(StoreError::Overtaken(_))));
        let record = store.get(first.uuid).await.unwrap().unwrap();
        assert_eq!((record.node.last_error, record.lease_expires_at), (None, None));
        first.last_error = None;
    }
}

pub(super) async fn a_lease_that_expired_and_was_not_taken_goes_on(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    store.renew(&lease, OffsetDateTime::UNIX_EPOCH + SECOND * 500).await.unwrap();
    store.write(&lease, &Change::of(&first)).await.unwrap();
}

pub(super) async fn l04_all_leases_of_a_conductor_are_renewed_at_once(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let second = node("second", &[]);
    let third = node("third", &[]);
    store.create(&second).await.unwrap();
    store.create(&third).await.unwrap();
    let (kept, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let (lost, _) = store.take(second.uuid, &terms("one", 0)).await.unwrap();
    store.take(second.uuid, &terms("two", 60)).await.unwrap();
    let (others, _) = store.take(third.uuid, &terms("one", 0)).await.unwrap();
    let gone = Lease { node: Uuid::nil(), epoch: 1, follows_crash: false };
    let until = OffsetDateTime::UNIX_EPOCH + SECOND * 500;
    let renewed = store.renew_all(&[kept, lost, gone], until).await.unwrap();
    assert_eq!(renewed, [first.uuid]);
    let held = store.held().await.unwrap();
    let expiry = |node: Uuid| held.iter().find(|held| held.node == node).map(|held| held.expires_at);
    assert_eq!(expiry(first.uuid), Some(until));
    assert_eq!(expiry(second.uuid), Some(OffsetDateTime::UNIX_EPOCH + SECOND * 120));
    // A lease that this process has not is renewed by whoever has it.
    assert_eq!(expiry(others.node), Some(OffsetDateTime::UNIX_EPOCH + SECOND * 60));
    assert!(store.renew_all(&[], until).await.unwrap().is_empty());
}

pub(super) async fn a_conductor_that_starts_again_overtakes_itself(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let other = node("second", &["52:54:00:00:00:02"]);
    store.create(&other).await.unwrap();
    let (old, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let (others, _) = store.take(other.uuid, &terms("two", 0)).await.unwrap();
    store.expire_all("one").await.unwrap();
    assert!(matches!(store.write(&old, &Change::of(&first)).await, Err(StoreError::Overtaken(_))));
    store.take(first.uuid, &terms("one", 1)).await.unwrap();
    store.write(&others, &Change::of(&other)).await.unwrap();
}

pub(super) async fn nodes_that_are_not_at_rest_or_ordered_are_found_when_nobody_attends_to_them(
    store: Arc<dyn Store>,
) {
    let mut first = with_node(&*store).await;
    let at = |seconds| OffsetDateTime::UNIX_EPOCH + SECOND * seconds;
    assert!(store.unattended(at(0)).await.unwrap().is_empty());
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let order = OrderChange::Put(PendingOrder::new(Verb::PowerOff, at(0)));
    store.write(&lease, &Change { order, ..Change::of(&first) }).await.unwrap();
    assert!(store.unattended(at(59)).await.unwrap().is_empty());
    assert_eq!(store.unattended(at(60)).await.unwrap(), [first.uuid]);
    let done = Change { order: OrderChange::Remove, ends_lease: true, ..Change::of(&first) };
    store.write(&lease, &done).await.unwrap();
    assert!(store.unattended(at(60)).await.unwrap().is_empty());
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    assert!(first.apply(Event::Deploy, at(0)) && first.apply(Event::Wait, at(0)));
    store.write(&lease, &Change { ends_lease: true, ..Change::of(&first) }).await.unwrap();
    assert_eq!(store.unattended(at(0)).await.unwrap(), [first.uuid]);
}

/// Only a lease that its conductor did not end shows a crash, and it ends when it was not renewed.
pub(super) async fn e13_a_lease_tells_whether_the_one_before_was_ended(store: Arc<dyn Store>) {
    let node = with_node(&*store).await.uuid;
    let (lease, _) = store.take(node, &terms("one", 0)).await.unwrap();
    assert!(!lease.follows_crash);
    store.release(&lease).await.unwrap();
    let (lease, _) = store.take(node, &terms("one", 1)).await.unwrap();
    assert!(!lease.follows_crash);
    let seen = store.held().await.unwrap().remove(0);
    store.renew(&lease, OffsetDateTime::UNIX_EPOCH + SECOND * 500).await.unwrap();
    assert!(!store.expire(&seen).await.unwrap(), "it was renewed");
    let seen = store.held().await.unwrap().remove(0);
    assert!(store.expire(&seen).await.unwrap());
    assert!(!store.expire(&seen).await.unwrap(), "it has expired");
    assert!(matches!(store.renew(&lease, OffsetDateTime::UNIX_EPOCH).await, Err(StoreError::Overtaken(_))));
    let (lease, _) = store.take(node, &terms("two", 2)).await.unwrap();
    assert!(lease.follows_crash);
    store.expire_all("two").await.unwrap();
    assert!(matches!(store.renew(&lease, OffsetDateTime::UNIX_EPOCH).await, Err(StoreError::Overtaken(_))));
    let (lease, _) = store.take(node, &terms("two", 3)).await.unwrap();
    assert!(lease.follows_crash);
}
