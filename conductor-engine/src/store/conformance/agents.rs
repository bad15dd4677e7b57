//! What agents say, and their tokens.

use super::{SECOND, session, terms, with_node};
use crate::records::{PendingOrder, Verb};
use crate::store::*;
use farrier_conductor::model::AgentSession;
use farrier_protocol::heartbeat::AgentStatus;
use std::sync::Arc;
use time::OffsetDateTime;

pub(super) async fn heartbeats_and_orders_are_published_as_changes(store: Arc<dyn Store>) {
    let node = with_node(&*store).await;
    let mut changes = store.changed();
    let session = session("secret");
    let (lease, _) = store.take(node.uuid, &terms("one", 0)).await.unwrap();
    let told = Change { session: SessionChange::Replace(&session), ..Change::of(&node) };
    store.write(&lease, &told).await.unwrap();
    assert!(store.hear(node.uuid, &session).await.unwrap());
    assert_eq!(changes.next().await, Some(Changed::Node(node.uuid)));
    let order = OrderChange::Put(PendingOrder::new(Verb::PowerOff, OffsetDateTime::UNIX_EPOCH));
    store.write(&lease, &Change { order, ..Change::of(&node) }).await.unwrap();
    assert_eq!(changes.next().await, Some(Changed::Node(node.uuid)));
}

pub(super) async fn f40_a_heartbeat_is_written_down_whoever_works_on_the_node(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let mut heard = session("secret");
    assert!(!store.hear(first.uuid, &heard).await.unwrap(), "without a token there is no session");
    let change = Change { session: SessionChange::Replace(&heard), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();

    heard.agent_url = Some("https://192.0.2.20:9999".into());
    heard.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH + SECOND);
    heard.agent_verify_ca = Some("PEM".into());
    heard.agent_status = Some(AgentStatus::Error);
    heard.agent_status_message = Some("no space left".into());
    assert!(store.hear(first.uuid, &heard).await.unwrap());
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().session, heard);

    let other_token = AgentSession { agent_secret_token: Some("other".into()), ..heard.clone() };
    let other_url = AgentSession { agent_url: Some("https://192.0.2.66:9999".into()), ..heard.clone() };
    let other_ca = AgentSession { agent_verify_ca: Some("OTHER".into()), ..heard.clone() };
    for refused in [other_token, other_url, other_ca] {
        assert!(!store.hear(first.uuid, &refused).await.unwrap());
    }
    // The next session begins: what comes late of the old one is refused.
    let change = Change { session: SessionChange::Replace(&AgentSession::default()), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();
    assert!(!store.hear(first.uuid, &heard).await.unwrap());
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().session, AgentSession::default());
}

pub(super) async fn what_is_learned_does_not_undo_what_was_said_meanwhile(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let mut learned = session("secret");
    store
        .write(&lease, &Change { session: SessionChange::Replace(&learned), ..Change::of(&first) })
        .await
        .unwrap();
    let heard = AgentSession { agent_version: Some("2".into()), ..learned.clone() };
    assert!(store.hear(first.uuid, &heard).await.unwrap());
    learned.agent_cached_deploy_steps = Some(Vec::new());
    store
        .write(&lease, &Change { session: SessionChange::Learned(&learned), ..Change::of(&first) })
        .await
        .unwrap();
    let known = store.get(first.uuid).await.unwrap().unwrap().session;
    assert_eq!(known, AgentSession { agent_version: Some("2".into()), ..learned });
}

pub(super) async fn a_token_is_issued_once_and_never_while_somebody_works_on_the_node(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let now = OffsetDateTime::UNIX_EPOCH;
    let seen = store.get(first.uuid).await.unwrap().unwrap();
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let current = store.get(first.uuid).await.unwrap().unwrap();
    assert!(!store.issue_token(&current, "early", now).await.unwrap());
    store.release(&lease).await.unwrap();
    // Something happened since the record was read: the machine may have been powered off.
    assert!(!store.issue_token(&seen, "late", now).await.unwrap());
    assert!(store.issue_token(&current, "first", now).await.unwrap());
    let current = store.get(first.uuid).await.unwrap().unwrap();
    assert!(!store.issue_token(&current, "second", now).await.unwrap());
    assert_eq!(current.session.agent_secret_token.as_deref(), Some("first"));
    // A refusal changes nothing, not even the epoch.
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap(), current);
}
