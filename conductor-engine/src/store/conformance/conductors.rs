//! The conductors over one store.

use crate::store::{ConductorRecord, ProcessId, Store};
use farrier_conductor::model::InterfaceKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

fn conductor(name: &str, start: u128) -> ConductorRecord {
    let power = BTreeMap::from([(InterfaceKind::Power, vec!["fake".to_owned(), "ipmitool".to_owned()])]);
    ConductorRecord {
        name: name.into(),
        process: ProcessId { start: Uuid::from_u128(start), host_process: format!("host {start}") },
        conductor_group: "rack1".into(),
        hardware: BTreeMap::from([("fake".to_owned(), power)]),
        counter: 0,
        registered_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
    }
}

/// The records of all conductors without their times, which the store sets.
async fn known(store: &dyn Store) -> Vec<ConductorRecord> {
    let timeless = |(record, _)| ConductorRecord {
        registered_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
        ..record
    };
    store.conductors().await.unwrap().into_iter().map(timeless).collect()
}

pub(super) async fn e08_a_conductor_is_seen_by_its_counter_until_it_ends_in_order(store: Arc<dyn Store>) {
    let store = &*store;
    assert_eq!(known(store).await, []);
    let (two, mut one) = (conductor("two", 2), conductor("one", 1));
    assert!(store.renew_conductor(&two, None).await.unwrap());
    assert!(store.renew_conductor(&one, None).await.unwrap());
    assert_eq!(known(store).await, [one.clone(), two.clone()], "by name");
    // Whatever became of its composition.
    one.hardware.clear();
    assert!(store.renew_conductor(&one, None).await.unwrap());
    one.counter = 1;
    assert_eq!(known(store).await, [one.clone(), two.clone()]);
    // What was read before the last renewal removes nothing, but one that ends itself.
    store.remove_conductor(&ConductorRecord { counter: 0, ..one.clone() }, false).await.unwrap();
    assert_eq!(known(store).await.len(), 2);
    store.remove_conductor(&ConductorRecord { counter: 0, ..one.clone() }, true).await.unwrap();
    assert_eq!(known(store).await, std::slice::from_ref(&two));
    // A record that others have removed is written again.
    store.remove_conductor(&two, false).await.unwrap();
    assert_eq!(known(store).await, []);
    assert!(store.renew_conductor(&two, None).await.unwrap());
    assert_eq!(known(store).await, [two]);
}

/// Clocks of hosts differ, so the store has the one by which the records of all conductors are written and read.
pub(super) async fn n28_the_times_of_a_conductor_are_by_the_clock_of_the_store(store: Arc<dyn Store>) {
    let seen = async || store.conductors().await.unwrap().remove(0);
    let far = OffsetDateTime::UNIX_EPOCH + time::Duration::days(365_000);
    let own = ConductorRecord { registered_at: far, updated_at: far, ..conductor("one", 1) };
    assert!(store.renew_conductor(&own, None).await.unwrap());
    let (first, _) = seen().await;
    assert!(first.registered_at < far && first.registered_at == first.updated_at, "{first:?}");
    // The clock may count in milliseconds.
    let passed = loop {
        let (_, silence) = seen().await;
        if silence >= Duration::from_millis(2) {
            break silence;
        }
    };
    assert!(store.renew_conductor(&own, None).await.unwrap());
    let (renewed, silence) = seen().await;
    assert_eq!(renewed.registered_at, first.registered_at);
    assert!(renewed.updated_at - first.updated_at >= passed, "{renewed:?}");
    assert!(silence < Duration::from_secs(3600), "{silence:?}");
    // Another process that takes the name has registered later.
    assert!(store.renew_conductor(&conductor("one", 2), Some(&renewed)).await.unwrap());
    let (other, _) = seen().await;
    assert!(other.registered_at > first.registered_at, "{other:?}");
}

pub(super) async fn e08_a_name_has_one_process_until_that_is_silent(store: Arc<dyn Store>) {
    let (first, second) = (conductor("one", 1), conductor("one", 2));
    assert!(store.renew_conductor(&first, None).await.unwrap());
    assert!(!store.renew_conductor(&second, None).await.unwrap());
    let seen = known(&*store).await.remove(0);
    // It was renewed since.
    assert!(store.renew_conductor(&first, None).await.unwrap());
    assert!(!store.renew_conductor(&second, Some(&seen)).await.unwrap());
    let seen = known(&*store).await.remove(0);
    assert_eq!(seen.process, first.process);
    assert!(store.renew_conductor(&second, Some(&seen)).await.unwrap());
    // The first one has lost its name, and takes nothing of the second with it.
    assert!(!store.renew_conductor(&first, None).await.unwrap());
    store.remove_conductor(&first, true).await.unwrap();
    assert_eq!(known(&*store).await.remove(0).process, second.process);
}
