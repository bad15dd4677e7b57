//! How far machines came, as every conductor over a store sees it.

use crate::evidence::boot_trace::{BootMark, BootStage, BootTrace};
use crate::store::conformance::{terms, with_node};
use crate::store::{BootTraceChange, Change, SessionChange, Store, StoreError};
use farrier_conductor::model::{AgentSession, ProvisionState};
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

fn reached(stage: BootStage, what: &str, bytes: u64) -> BootTrace {
    let mut trace = BootTrace::default();
    trace.reach(BootMark {
        stage,
        what: what.into(),
        host_name: None,
        bytes,
        total: 100,
        at: OffsetDateTime::UNIX_EPOCH,
    });
    trace
}

pub(super) async fn a_trace_is_kept_from_its_beginning_to_its_end_whoever_serves_the_machine(
    store: Arc<dyn Store>,
) {
    let node = with_node(&*store).await;
    let told = async || store.boot_trace(node.uuid).await.unwrap().map(|trace| trace.to_string());
    let loader = (node.uuid, reached(BootStage::Loader, "pxelinux.0", 100));
    // Nobody waits for it, and of one there is no node.
    let unknown = (Uuid::new_v4(), loader.1.clone());
    store.reach_boot_stages(&[loader.clone(), unknown.clone()]).await.unwrap();
    assert_eq!(told().await, None);

    let (lease, _) = store.take(node.uuid, &terms("one", 0)).await.unwrap();
    let begin = Change { boot_trace: BootTraceChange::Begin, ..Change::of(&node) };
    store.write(&lease, &begin).await.unwrap();
    assert_eq!(told().await.as_deref(), Some(""));
    store.reach_boot_stages(&[unknown, loader]).await.unwrap();
    store.write(&lease, &Change::of(&node)).await.unwrap();
    store.reach_boot_stages(&[(node.uuid, reached(BootStage::Ramdisk, "r", 43))]).await.unwrap();
    assert_eq!(told().await.as_deref(), Some("loader pxelinux.0 fetched, initramfs 43 %"));
    store.write(&lease, &begin).await.unwrap();
    assert_eq!(told().await.as_deref(), Some(""));
    let end = Change { boot_trace: BootTraceChange::End, ..Change::of(&node) };
    store.write(&lease, &end).await.unwrap();
    assert_eq!(told().await, None);

    let awaited = async || store.awaited_boots().await.unwrap().len();
    let mut waiting = node.clone();
    store.write(&lease, &begin).await.unwrap();
    assert_eq!(awaited().await, 0, "its node waits for nobody");
    waiting.provision_state = ProvisionState::CleanWait;
    store.write(&lease, &Change::of(&waiting)).await.unwrap();
    assert_eq!(awaited().await, 1);
    assert_eq!(store.with_boot_trace().await.unwrap(), [node.uuid]);
    assert_eq!(store.provision_states().await.unwrap(), [(ProvisionState::CleanWait, 1)]);
    let called =
        AgentSession { agent_url: Some("https://192.0.2.101:9999".into()), ..AgentSession::default() };
    let session = SessionChange::Replace(&called);
    store.write(&lease, &Change { session, ..Change::of(&waiting) }).await.unwrap();
    assert_eq!(awaited().await, 0, "its agent has called");
    store.write(&lease, &end).await.unwrap();

    store.take(node.uuid, &terms("two", 100)).await.unwrap();
    assert!(matches!(store.write(&lease, &begin).await, Err(StoreError::Overtaken(_))));
    assert_eq!(told().await, None);
}
