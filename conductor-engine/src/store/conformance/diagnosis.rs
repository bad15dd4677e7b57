//! What could be had of machines that stayed silent.

use crate::evidence::diagnosis::{Cause, Diagnosis};
use crate::store::conformance::{terms, with_node};
use crate::store::{Change, DiagnosisChange, Store};
use farrier_conductor::model::LogEntry;
use std::sync::Arc;
use time::OffsetDateTime;

pub(super) async fn a_diagnosis_is_kept_until_it_is_removed_or_followed_by_another(store: Arc<dyn Store>) {
    let node = with_node(&*store).await;
    let (lease, _) = store.take(node.uuid, &terms("one", 0)).await.unwrap();
    let cause =
        Cause { what: "no link".into(), named_by: "the console".into(), next: "check the cable".into() };
    let entry = LogEntry { at: Some(OffsetDateTime::UNIX_EPOCH), said: "AC lost".into() };
    let words = Diagnosis {
        at: OffsetDateTime::UNIX_EPOCH,
        cause: Some(cause),
        log: vec![entry, LogEntry { at: None, said: "OEM record".into() }],
        console: vec!["Booting".into()],
        screenshot: Some("n1_screen.png".into()),
        missing: Vec::new(),
    };
    let others = Diagnosis { cause: None, missing: vec!["event log: no".into()], ..words.clone() };
    for words in [words, others] {
        let put = Change { diagnosis: DiagnosisChange::Put(&words), ..Change::of(&node) };
        store.write(&lease, &put).await.unwrap();
        store.write(&lease, &Change::of(&node)).await.unwrap();
        assert_eq!(store.diagnosis(node.uuid).await.unwrap(), Some(words));
    }
    let remove = Change { diagnosis: DiagnosisChange::Remove, ..Change::of(&node) };
    store.write(&lease, &remove).await.unwrap();
    assert_eq!(store.diagnosis(node.uuid).await.unwrap(), None);
}
