//! What could be had of machines that stayed silent.

use crate::evidence::diagnosis::{Cause, LastWords};
use crate::store::sqlite::tests::{store_with_node, terms};
use crate::store::{Change, LastWordsChange, Store};
use farrier_conductor::model::LogEntry;
use time::OffsetDateTime;

#[tokio::test]
async fn last_words_are_kept_until_they_are_removed_or_followed_by_others() {
    let (_folder, store, node) = store_with_node().await;
    let (lease, _) = store.take(node.uuid, &terms("one", 0)).await.unwrap();
    let cause =
        Cause { what: "no link".into(), named_by: "the console".into(), next: "check the cable".into() };
    let entry = LogEntry { at: Some(OffsetDateTime::UNIX_EPOCH), said: "AC lost".into() };
    let words = LastWords {
        at: OffsetDateTime::UNIX_EPOCH,
        cause: Some(cause),
        log: vec![entry, LogEntry { at: None, said: "OEM record".into() }],
        console: vec!["Booting".into()],
        screenshot: Some("n1_screen.png".into()),
        missing: Vec::new(),
    };
    let others = LastWords { cause: None, missing: vec!["event log: no".into()], ..words.clone() };
    for words in [words, others] {
        let put = Change { last_words: LastWordsChange::Put(&words), ..Change::of(&node) };
        store.write(&lease, &put).await.unwrap();
        store.write(&lease, &Change::of(&node)).await.unwrap();
        assert_eq!(store.last_words(node.uuid).await.unwrap(), Some(words));
    }
    let remove = Change { last_words: LastWordsChange::Remove, ..Change::of(&node) };
    store.write(&lease, &remove).await.unwrap();
    assert_eq!(store.last_words(node.uuid).await.unwrap(), None);
}
