//! The conductors over one store.

use crate::store::{ConductorRecord, ProcessId, Store};
use farrier_conductor::model::InterfaceKind;
use std::collections::BTreeMap;
use std::sync::Arc;
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

pub(super) async fn e08_a_conductor_is_seen_by_its_counter_until_it_ends_in_order(store: Arc<dyn Store>) {
    assert_eq!(store.conductors().await.unwrap(), []);
    let (two, mut one) = (conductor("two", 2), conductor("one", 1));
    assert!(store.renew_conductor(&two, None).await.unwrap());
    assert!(store.renew_conductor(&one, None).await.unwrap());
    assert_eq!(store.conductors().await.unwrap(), [one.clone(), two.clone()], "by name");
    // Whatever its clock says, and whatever became of its composition.
    one.updated_at -= time::Duration::HOUR;
    one.hardware.clear();
    assert!(store.renew_conductor(&one, None).await.unwrap());
    one.counter = 1;
    assert_eq!(store.conductors().await.unwrap(), [one.clone(), two.clone()]);
    // What was read before the last renewal removes nothing, but one that ends itself.
    store.remove_conductor(&ConductorRecord { counter: 0, ..one.clone() }, false).await.unwrap();
    assert_eq!(store.conductors().await.unwrap().len(), 2);
    store.remove_conductor(&ConductorRecord { counter: 0, ..one.clone() }, true).await.unwrap();
    assert_eq!(store.conductors().await.unwrap(), std::slice::from_ref(&two));
    // A record that others have removed is written again.
    store.remove_conductor(&two, false).await.unwrap();
    assert_eq!(store.conductors().await.unwrap(), []);
    assert!(store.renew_conductor(&two, None).await.unwrap());
    assert_eq!(store.conductors().await.unwrap(), [two]);
}

pub(super) async fn e08_a_name_has_one_process_until_that_is_silent(store: Arc<dyn Store>) {
    let (first, second) = (conductor("one", 1), conductor("one", 2));
    assert!(store.renew_conductor(&first, None).await.unwrap());
    assert!(!store.renew_conductor(&second, None).await.unwrap());
    let seen = store.conductors().await.unwrap().remove(0);
    // It was renewed since.
    assert!(store.renew_conductor(&first, None).await.unwrap());
    assert!(!store.renew_conductor(&second, Some(&seen)).await.unwrap());
    let seen = store.conductors().await.unwrap().remove(0);
    assert_eq!(seen.process, first.process);
    assert!(store.renew_conductor(&second, Some(&seen)).await.unwrap());
    // The first one has lost its name, and takes nothing of the second with it.
    assert!(!store.renew_conductor(&first, None).await.unwrap());
    store.remove_conductor(&first, true).await.unwrap();
    assert_eq!(store.conductors().await.unwrap().remove(0).process, second.process);
}
