//! What happened to a node, and what is proven of its disks.

use crate::evidence::erasing::EraseCertificate;
use crate::records::{Beginning, HISTORY_LIMIT, HistoryEntry, HistoryKind, Severity};
use crate::store::conformance::{node, terms, with_node};
use crate::store::{CertificateChange, Change, Store, StoreError};
use serde_json::json;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

fn entry(event: &str, user: Option<&str>) -> HistoryEntry {
    HistoryEntry {
        uuid: Uuid::new_v4(),
        created_at: OffsetDateTime::UNIX_EPOCH,
        severity: Severity::Error,
        event_type: HistoryKind::Power,
        event: event.into(),
        conductor: "c1".into(),
        user: user.map(str::to_owned),
        beginning: user.map(|step| Beginning::Step { step: step.to_owned(), number: Some(1), of: 2 }),
    }
}

fn certificate(disk: &str, step: &str, text: &str) -> EraseCertificate {
    let certificate = json!({
        "disk": disk, "agent": "00", "accepted_at": "1970-01-01T00:00:00Z", "certificate": text,
        "statement": {
            "version": 1, "node": "n", "step": step, "device": "/dev/sda", "serial": disk, "verdict": "erased",
            "method": "overwrite", "finished_at": "1970-01-01T00:00:00Z", "samples": 64,
        },
    });
    serde_json::from_value(certificate).unwrap()
}

pub(super) async fn a_history_is_written_with_the_change_that_it_tells_of_or_not_at_all(
    store: Arc<dyn Store>,
) {
    let node = with_node(&*store).await;
    let (lease, _) = store.take(node.uuid, &terms("c1", 0)).await.unwrap();
    let history = [entry("one", Some("groom")), entry("two", None)];
    store.write(&lease, &Change { history: &history, ..Change::of(&node) }).await.unwrap();
    assert_eq!(store.history(node.uuid).await.unwrap(), history);

    store.take(node.uuid, &terms("c2", 100)).await.unwrap();
    let late = [entry("late", None)];
    let refused = store.write(&lease, &Change { history: &late, ..Change::of(&node) }).await;
    assert!(matches!(refused, Err(StoreError::Overtaken(_))));
    assert_eq!(store.history(node.uuid).await.unwrap(), history);
}

pub(super) async fn the_oldest_entries_of_a_history_are_forgotten_and_those_of_others_stay(
    store: Arc<dyn Store>,
) {
    let first = with_node(&*store).await;
    let second = node("second", &[]);
    store.create(&second).await.unwrap();
    let (of_second, _) = store.take(second.uuid, &terms("c1", 0)).await.unwrap();
    let kept = [entry("kept", None)];
    store.write(&of_second, &Change { history: &kept, ..Change::of(&second) }).await.unwrap();
    let (lease, _) = store.take(first.uuid, &terms("c1", 0)).await.unwrap();
    let many: Vec<_> = (0..=HISTORY_LIMIT).map(|turn| entry(&turn.to_string(), None)).collect();
    store.write(&lease, &Change { history: &many, ..Change::of(&first) }).await.unwrap();
    assert_eq!(store.history(first.uuid).await.unwrap(), many[1..]);
    assert_eq!(store.history(second.uuid).await.unwrap(), kept);
    store.delete(&lease).await.unwrap();
    assert_eq!(store.history(first.uuid).await.unwrap(), []);
}

pub(super) async fn a_disk_has_one_certificate_of_each_step(store: Arc<dyn Store>) {
    let node = with_node(&*store).await;
    let (lease, _) = store.take(node.uuid, &terms("c1", 0)).await.unwrap();
    let write = async |forgets, new: &[EraseCertificate]| {
        let certificates = CertificateChange { forgets, new };
        store.write(&lease, &Change { certificates, ..Change::of(&node) }).await.unwrap();
        let texts = store.certificates(node.uuid).await.unwrap();
        texts.iter().map(|one| one.certificate.clone()).collect::<Vec<_>>()
    };
    let (data, metadata) = ("erase_devices", "erase_devices_metadata");
    let [first, second] = [certificate("A", data, "1"), certificate("B", data, "2")];
    assert_eq!(write(false, &[second.clone(), first]).await, ["1", "2"]);
    assert_eq!(write(false, &[certificate("A", metadata, "3")]).await, ["1", "3", "2"]);
    assert_eq!(write(false, &[certificate("A", data, "4")]).await, ["4", "3", "2"]);
    assert_eq!(write(true, &[second]).await, ["2"]);
    assert_eq!(write(true, &[]).await, Vec::<String>::new());
}
