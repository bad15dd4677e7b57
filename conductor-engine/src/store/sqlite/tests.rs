mod boot_traces;
mod evidence;
mod last_words;
mod resources;

use crate::records::{Order, Verb};
use crate::store::sqlite::*;
use crate::store::{ConfigDrive, Filter, NodeColumn, OrderChange, Position, SessionChange};
use farrier_conductor::model::{Event, InterfaceKind, NewNode, Port};
use farrier_protocol::heartbeat::AgentStatus;
use serde_json::{Value, json};
use sqlx::Row;
use time::Duration as Span;

const SECOND: Span = Span::SECOND;

fn node(name: &str, ports: &[&str]) -> Node {
    let ports = ports.iter().map(|text| text.parse().unwrap()).collect();
    let new = NewNode { name: Some(name.into()), driver: "fake".into(), ports, ..NewNode::default() };
    Node::enrol(new, OffsetDateTime::UNIX_EPOCH)
}

async fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("deep/nodes.sqlite")).await.unwrap();
    (folder, store)
}

/// A store with one node.
async fn store_with_node() -> (tempfile::TempDir, SqliteStore, Node) {
    let (folder, store) = store().await;
    let node = node("first", &["52:54:00:00:00:01"]);
    store.create(&node).await.unwrap();
    (folder, store, node)
}

/// A lease of a minute from `seconds` after the epoch.
fn terms(holder: &str, seconds: i64) -> Terms<'_> {
    let now = OffsetDateTime::UNIX_EPOCH + SECOND * seconds as f64;
    Terms { holder, now, expires_at: now + Span::MINUTE }
}

fn session(token: &str) -> AgentSession {
    AgentSession { agent_secret_token: Some(token.into()), ..AgentSession::default() }
}

async fn count(store: &SqliteStore, what: &'static str) -> i64 {
    sqlx::query(what).fetch_one(&store.readers).await.unwrap().get(0)
}

#[tokio::test]
async fn records_are_found_again_after_the_file_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    let mut first = node("first", &["52:54:00:00:00:02", "52:54:00:00:00:01"]);
    let session = session("secret");
    let order = Order::new(Verb::Deploy, OffsetDateTime::UNIX_EPOCH + SECOND);
    {
        let store = SqliteStore::open(&file).await.unwrap();
        store.create(&first).await.unwrap();
        let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
        assert!(first.apply(Event::Deploy, OffsetDateTime::UNIX_EPOCH + SECOND));
        first.driver_internal_info.others.insert("vendor_note".into(), json!({"deep": [1]}));
        first.ports[1].internal_info.insert("tenant_vif_port_id".into(), json!("v1"));
        first.interfaces.set(InterfaceKind::Boot, "ipxe");
        let change = Change {
            session: SessionChange::Replace(&session),
            config_drive: ConfigDrive::Put("H4sI"),
            order: OrderChange::Put(order),
            ends_lease: true,
            ..Change::of(&first)
        };
        store.write(&lease, &change).await.unwrap();
    }
    let store = SqliteStore::open(&file).await.unwrap();
    let expected =
        Record { node: first.clone(), session, order: Some(order), epoch: 1, lease_expires_at: None };
    assert_eq!(store.get(first.uuid).await.unwrap(), Some(expected.clone()));
    assert_eq!(store.by_name("first").await.unwrap(), Some(expected.clone()));
    assert_eq!(store.by_name("other").await.unwrap(), None);
    assert_eq!(store.identities().await.unwrap(), [first.uuid]);
    assert_eq!(store.records(&Selection::first(9)).await.unwrap(), [expected]);
    assert_eq!(store.config_drive(first.uuid).await.unwrap().as_deref(), Some("H4sI"));
}

#[tokio::test]
async fn nodes_are_read_with_their_ports_in_order() {
    let (_folder, store) = store().await;
    let second = node("b", &["52:54:00:00:00:09", "52:54:00:00:00:03"]);
    let first = node("a", &["52:54:00:00:00:05"]);
    for node in [&second, &first] {
        store.create(node).await.unwrap();
    }
    let read = store.records(&Selection::first(9)).await.unwrap();
    let mut read: Vec<_> = read.into_iter().map(|record| record.node).collect();
    read.sort_by_key(Node::label);
    assert_eq!(read, [first, second]);
}

#[tokio::test]
async fn s48_only_the_owner_may_read_the_files() {
    let (folder, store) = store().await;
    store.create(&node("first", &[])).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path().join("deep")).unwrap().map(Result::unwrap).collect();
    assert!(files.len() > 1, "{files:?}");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn names_and_addresses_are_unique_and_a_refused_node_leaves_nothing() {
    let (_folder, store) = store().await;
    store.create(&node("first", &["52:54:00:00:00:01"])).await.unwrap();
    let same_name = store.create(&node("first", &["52:54:00:00:00:02"])).await.unwrap_err();
    assert!(
        same_name.to_string().starts_with("a node with the name \"first\" already exists"),
        "{same_name}"
    );
    let same_port = node("second", &["52:54:00:00:00:03", "52:54:00:00:00:01"]);
    let same_port = store.create(&same_port).await.unwrap_err();
    assert!(
        same_port.to_string().starts_with("a port with MAC address 52:54:00:00:00:01 already"),
        "{same_port}"
    );
    assert_eq!(store.by_name("second").await.unwrap(), None);
    assert!(store.owners(&["52:54:00:00:00:03".parse().unwrap()]).await.unwrap().is_empty());
}

#[tokio::test]
async fn k01_a_node_is_not_written_with_two_ports_of_one_uuid() {
    let (_folder, store) = store().await;
    let mut first = node("first", &["52:54:00:00:00:01"]);
    store.create(&first).await.unwrap();
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let before = first.ports[0].clone();
    first.ports.push(Port { address: "52:54:00:00:00:02".parse().unwrap(), ..before.clone() });
    let taken = store.write(&lease, &Change::of(&first)).await.unwrap_err().to_string();
    assert!(taken.starts_with(&format!("a port with UUID {} already exists", before.uuid)), "{taken}");
    let ports = store.get(first.uuid).await.unwrap().unwrap().node.ports;
    assert_eq!(ports.iter().map(|port| &port.address).collect::<Vec<_>>(), [&before.address]);
}

#[tokio::test]
async fn nodes_that_are_not_at_rest_or_ordered_are_found_when_nobody_attends_to_them() {
    let (_folder, store, mut first) = store_with_node().await;
    let at = |seconds| OffsetDateTime::UNIX_EPOCH + SECOND * seconds;
    assert!(store.unattended(at(0)).await.unwrap().is_empty());
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let order = OrderChange::Put(Order::new(Verb::PowerOff, at(0)));
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

#[tokio::test]
async fn an_instance_belongs_to_one_node() {
    let (_folder, store, mut first) = store_with_node().await;
    let mut second = node("second", &["52:54:00:00:00:02"]);
    store.create(&second).await.unwrap();
    let instance = Uuid::new_v4();
    for node in [&mut first, &mut second] {
        node.instance_uuid.set(instance).unwrap();
    }
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    store.write(&lease, &Change::of(&first)).await.unwrap();
    let (lease, _) = store.take(second.uuid, &terms("one", 0)).await.unwrap();
    let taken = store.write(&lease, &Change::of(&second)).await.unwrap_err().to_string();
    assert!(taken.starts_with(&format!("a node with instance {instance} already exists")), "{taken}");
}

#[tokio::test]
async fn leases_that_have_not_ended_are_told_with_their_holders() {
    let (_folder, store, node) = store_with_node().await;
    assert_eq!(store.held().await.unwrap(), []);
    let terms = terms("one", 0);
    let (lease, _) = store.take(node.uuid, &terms).await.unwrap();
    let expected =
        Held { node: node.uuid, holder: "one".into(), epoch: lease.epoch, expires_at: terms.expires_at };
    assert_eq!(store.held().await.unwrap(), [expected]);
    store.release(&lease).await.unwrap();
    assert_eq!(store.held().await.unwrap(), []);
}

#[tokio::test]
async fn a_node_goes_with_everything_that_belongs_to_it() {
    let (_folder, store, first) = store_with_node().await;
    let ports: Vec<_> = first.ports.iter().map(|port| port.address.clone()).collect();
    assert_eq!(store.owners(&ports).await.unwrap(), [first.uuid]);
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let change = Change { config_drive: ConfigDrive::Put("H4sI"), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();
    store.delete(&lease).await.unwrap();
    assert!(store.owners(&ports).await.unwrap().is_empty());
    for what in [
        "SELECT count(*) FROM nodes",
        "SELECT count(*) FROM node_documents",
        "SELECT count(*) FROM agent_sessions",
        "SELECT count(*) FROM config_drives",
        "SELECT count(*) FROM ports",
    ] {
        assert_eq!(count(&store, what).await, 0, "{what}");
    }
    assert!(matches!(store.delete(&lease).await, Err(StoreError::Gone(_))));
    assert!(matches!(store.write(&lease, &Change::of(&first)).await, Err(StoreError::Gone(_))));
    assert!(matches!(store.take(first.uuid, &terms("one", 0)).await, Err(StoreError::Gone(_))));
}

#[tokio::test]
async fn a_lease_has_one_holder_until_it_ends_or_expires() {
    let (_folder, store, first) = store_with_node().await;
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

#[tokio::test]
async fn whoever_was_overtaken_writes_nothing() {
    let (_folder, store, mut first) = store_with_node().await;
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

#[tokio::test]
async fn a_lease_that_expired_and_was_not_taken_goes_on() {
    let (_folder, store, first) = store_with_node().await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    store.renew(&lease, OffsetDateTime::UNIX_EPOCH + SECOND * 500).await.unwrap();
    store.write(&lease, &Change::of(&first)).await.unwrap();
}

#[tokio::test]
async fn a_conductor_that_starts_again_overtakes_itself() {
    let (_folder, store, first) = store_with_node().await;
    let other = node("second", &["52:54:00:00:00:02"]);
    store.create(&other).await.unwrap();
    let (old, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let (others, _) = store.take(other.uuid, &terms("two", 0)).await.unwrap();
    store.expire_all("one").await.unwrap();
    assert!(matches!(store.write(&old, &Change::of(&first)).await, Err(StoreError::Overtaken(_))));
    store.take(first.uuid, &terms("one", 1)).await.unwrap();
    store.write(&others, &Change::of(&other)).await.unwrap();
}

#[tokio::test]
async fn f40_a_heartbeat_is_written_down_whoever_works_on_the_node() {
    let (_folder, store, first) = store_with_node().await;
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

#[tokio::test]
async fn what_is_learned_does_not_undo_what_was_said_meanwhile() {
    let (_folder, store, first) = store_with_node().await;
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

/// Otherwise each heartbeat of a node with a config drive would write 64 MiB.
#[tokio::test]
async fn a_heartbeat_writes_neither_document_nor_config_drive() {
    let (folder, store, mut first) = store_with_node().await;
    first.instance_info.insert("configdrive".into(), "******".into());
    first.driver_info.insert("filler".into(), "x".repeat(1 << 20).into());
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let large = "H4sI".repeat(1 << 20);
    let heard = session("secret");
    let change = Change {
        session: SessionChange::Replace(&heard),
        config_drive: ConfigDrive::Put(&large),
        ..Change::of(&first)
    };
    store.write(&lease, &change).await.unwrap();
    let checkpoint = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)");
    checkpoint.execute(&store.readers).await.unwrap();
    for round in 1..=10 {
        let at = OffsetDateTime::UNIX_EPOCH + SECOND * round;
        let heard = AgentSession { agent_last_heartbeat: Some(at), ..heard.clone() };
        assert!(store.hear(first.uuid, &heard).await.unwrap());
    }
    let journal = |name: &str| std::fs::metadata(folder.path().join("deep").join(name)).unwrap().len();
    let of_heartbeats = journal("nodes.sqlite-wal");
    assert!(of_heartbeats < 100_000, "ten heartbeats wrote {of_heartbeats} bytes");
    // Nor does a write of the node that leaves its document alone.
    assert!(first.apply(Event::Deploy, OffsetDateTime::UNIX_EPOCH));
    store.write(&lease, &Change::of(&first)).await.unwrap();
    let of_state = journal("nodes.sqlite-wal") - of_heartbeats;
    assert!(of_state < 50_000, "a new state wrote {of_state} bytes");
}

#[tokio::test]
async fn a_token_is_issued_once_and_never_while_somebody_works_on_the_node() {
    let (_folder, store, first) = store_with_node().await;
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

#[tokio::test]
async fn a_full_disk_gives_one_clear_error_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    let small = SqliteConnectOptions::new().pragma("max_page_count", "60");
    let store = SqliteStore::open_with(&file, small).await.unwrap();
    let mut first = node("first", &["52:54:00:00:00:01"]);
    store.create(&first).await.unwrap();
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let before = store.get(first.uuid).await.unwrap().unwrap();

    let large = "x".repeat(1 << 20);
    first.set_last_error("this would be half a write");
    let change = Change { config_drive: ConfigDrive::Put(&large), ..Change::of(&first) };
    for _ in 0..3 {
        let error = store.write(&lease, &change).await.unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("no room left") && text.contains(&file.display().to_string()), "{text}");
        assert_eq!(store.get(first.uuid).await.unwrap().unwrap(), before);
    }
    // What fits is still written.
    store.write(&lease, &Change::of(&first)).await.unwrap();
    drop(store);
    let store = SqliteStore::open(&file).await.unwrap();
    store.write(&lease, &change).await.unwrap();
    assert_eq!(store.config_drive(first.uuid).await.unwrap(), Some(large));
}

#[tokio::test]
async fn f42_a_port_and_a_node_that_cannot_be_read_spoil_no_listing() {
    let (_folder, store, first) = store_with_node().await;
    for (name, addresses) in [
        ("second", ["52:54:00:00:00:02", "52:54:00:00:00:03"]),
        ("third", ["52:54:00:00:00:04", "52:54:00:00:00:05"]),
    ] {
        store.create(&node(name, &addresses)).await.unwrap();
    }
    let mut writer = store.writer(Kept::Always).await.unwrap();
    for damage in [
        "UPDATE ports SET document = '{\"pxe_enabled\": \"None\"}' WHERE address = '52:54:00:00:00:02'",
        "UPDATE node_documents SET document = '[' WHERE node = (SELECT uuid FROM nodes WHERE name = 'third')",
    ] {
        sqlx::query(damage).execute(&mut writer.connection).await.unwrap();
    }
    writer.commit().await.unwrap();
    let mut listed = store.records(&Selection::first(9)).await.unwrap();
    listed.sort_by_key(|record| record.node.label());
    let ports: Vec<_> = listed.iter().map(|record| (record.node.label(), record.node.ports.len())).collect();
    assert_eq!(ports, [("first".to_owned(), 1), ("second".to_owned(), 1)]);
    assert_eq!(listed[0].node, first);
    assert!(store.by_name("third").await.is_err());
    let kept = store.documents(&Selection::first(9)).await.unwrap();
    let mut is_read: Vec<_> =
        kept.iter().map(|(outline, kept)| (text(outline, "name"), kept.node().is_ok())).collect();
    is_read.sort_unstable();
    let is_read: Vec<_> = is_read.iter().map(|(name, is_read)| (name.as_deref(), *is_read)).collect();
    assert_eq!(is_read, [(Some("first"), true), (Some("second"), true), (Some("third"), false)]);
}

fn text(outline: &Outline, field: &str) -> Option<String> {
    outline.field(field)?.as_str().map(str::to_owned)
}

#[tokio::test]
async fn readers_wait_for_no_writer() {
    let (_folder, store, first) = store_with_node().await;
    let mut writer = store.writer(Kept::Always).await.unwrap();
    sqlx::query("UPDATE nodes SET fault = 'x'").execute(&mut writer.connection).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(5), store.get(first.uuid)).await;
    assert_eq!(read.expect("a reader waited").unwrap().unwrap().node, first);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    std::fs::write(&file, "not a database, by any measure of the word").unwrap();
    let error = SqliteStore::open(&file).await.unwrap_err().to_string();
    assert!(error.contains(&file.display().to_string()), "{error}");
}

#[tokio::test]
async fn a_file_with_the_tables_of_another_version_is_left_alone_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    for (version, statements) in [(1, "CREATE TABLE nodes (x TEXT)"), (2, "CREATE TABLE later (x TEXT)")] {
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let other =
            Migration::new(version, "other".into(), MigrationType::Simple, statements.into_sql_str(), false);
        Migrator::with_migrations(vec![other]).set_ignore_missing(true).run(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let before = std::fs::read(&file).unwrap();
        let error = SqliteStore::open(&file).await.unwrap_err().to_string();
        assert!(error.contains(&file.display().to_string()) && error.contains("another version"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap().len(), before.len());
    }
}

#[tokio::test]
async fn nodes_without_a_name_are_many_and_their_ports_come_and_go() {
    let (_folder, store, mut first) = store_with_node().await;
    let nameless = || Node { name: None, ..node("x", &[]) };
    let (second, third) = (nameless(), nameless());
    store.create(&second).await.unwrap();
    store.create(&third).await.unwrap();
    assert_eq!(store.get(third.uuid).await.unwrap().unwrap().node, third);

    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let port = |text: &str, name: Option<&str>| Port {
        name: name.map(str::to_owned),
        ..Port::new(text.parse().unwrap())
    };
    first.ports.push(port("52:54:00:00:00:07", Some("left")));
    first.ports.push(port("52:54:00:00:00:08", None));
    store.write(&lease, &Change::of(&first)).await.unwrap();
    let created_at = Some(first.updated_at);
    first.ports.iter_mut().for_each(|port| port.created_at = created_at);
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.ports, first.ports);
    assert_eq!(store.port("left").await.unwrap().unwrap().port, first.ports[1]);

    first.ports.remove(0);
    first.ports[0].address = "52:54:00:00:00:09".parse().unwrap();
    first.ports[0].extra.insert("a".into(), json!(1));
    store.write(&lease, &Change::of(&first)).await.unwrap();
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.ports, first.ports);
    let all = PortSelection { node: None, address: None, after: None, limit: 9 };
    assert_eq!(store.ports(&all).await.unwrap().len(), 2);
    let one = PortSelection { address: Some("52:54:00:00:00:08".parse().unwrap()), ..all.clone() };
    let owned = OwnedPort { node: first.uuid, port: first.ports[1].clone() };
    assert_eq!(store.ports(&one).await.unwrap(), [owned]);
    assert!(store.ports(&PortSelection { node: Some(second.uuid), ..all.clone() }).await.unwrap().is_empty());

    // Names and addresses belong to one port, and what is refused leaves everything as it was.
    let stored = store.get(first.uuid).await.unwrap().unwrap().node.ports;
    for (port, what) in [
        (port("52:54:00:00:00:0a", Some("left")), "a port with the name \"left\""),
        (port("52:54:00:00:00:08", None), "a port with MAC address 52:54:00:00:00:08"),
    ] {
        let mut more = first.clone();
        more.ports.push(port);
        let error = store.write(&lease, &Change::of(&more)).await.unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
        assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.ports, stored);
    }
}

/// What operators are shown is not read as a record first.
#[tokio::test]
async fn what_is_kept_of_a_node_is_all_of_it() {
    let (_folder, store, mut first) = store_with_node().await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    (first.maintenance, first.description) = (true, Some("by the door".into()));
    first.driver_internal_info.others.insert("vendor_note".into(), json!({"deep": [1]}));
    let session = session("secret");
    let change = Change { session: SessionChange::Replace(&session), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();
    let kept = store.documents(&Selection::first(9)).await.unwrap();
    let [(outline, documents)] = &kept[..] else { panic!("{kept:?}") };
    let record = store.get(first.uuid).await.unwrap().unwrap();
    let Value::Object(mut expected) = serde_json::to_value(&record.node).unwrap() else { unreachable!() };
    expected.remove("ports");
    let columns = outline.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let texts = documents.node().unwrap().into_iter();
    let document = texts.map(|(name, text)| (name.to_owned(), serde_json::from_str(text.get()).unwrap()));
    assert_eq!(columns.chain(document).collect::<serde_json::Map<_, _>>(), expected);
    let said = |session: Value| {
        let Value::Object(session) = session else { panic!("{session}") };
        session.into_iter().filter(|(_, value)| !value.is_null()).collect::<Vec<_>>()
    };
    assert_eq!(said(json!(documents.session().unwrap())), said(json!(record.session)));
    assert_eq!((outline.uuid, outline.lease_expires_at), (first.uuid, record.lease_expires_at));
}

#[tokio::test]
async fn lists_are_filtered_sorted_and_gone_through_in_parts() {
    let (_folder, store) = store().await;
    let mut names = Vec::new();
    for number in 0..20 {
        let mut node = node(&format!("n{number:02}"), &[]);
        node.resource_class = (number % 3 > 0).then(|| format!("c{}", number % 3));
        node.maintenance = number % 2 == 1;
        node.created_at += SECOND * f64::from(20 - number);
        names.push(node.label());
        store.create(&node).await.unwrap();
    }
    let column = |name| NodeColumn::named(name).unwrap();
    let walk = async |selection: Selection, field: &str| {
        let (mut found, mut selection) = (Vec::new(), selection);
        loop {
            let part = store.outlines(&selection).await.unwrap();
            let records = store.records(&selection).await.unwrap();
            assert!(records.iter().map(|record| record.node.uuid).eq(part.iter().map(|one| one.uuid)));
            let Some(last) = part.last() else { return found };
            let value = last.field(selection.sort.name()).cloned().unwrap();
            selection.after = Some(Position { value, uuid: last.uuid });
            found.extend(part.iter().map(|one| text(one, field)));
        }
    };
    let by_name = Selection { sort: column("name"), ..Selection::first(3) };
    assert_eq!(walk(by_name.clone(), "name").await, names.iter().cloned().map(Some).collect::<Vec<_>>());
    let mut oldest_first = walk(Selection::first(7), "name").await;
    oldest_first.reverse();
    assert_eq!(oldest_first, names.iter().cloned().map(Some).collect::<Vec<_>>());
    for descending in [false, true] {
        let by_class = Selection { sort: column("resource_class"), descending, ..Selection::first(4) };
        let mut classes = walk(by_class, "resource_class").await;
        assert_eq!(classes.len(), 20);
        if descending {
            classes.reverse();
        }
        assert!(classes.is_sorted(), "{classes:?}");
        let by_flag = Selection { sort: column("maintenance"), descending, ..Selection::first(6) };
        assert_eq!(walk(by_flag, "name").await.len(), 20);
    }
    for (filters, expected) in [
        (vec![Filter::Flag(column("maintenance"), true)], 10),
        (vec![Filter::IsSet(column("resource_class"), false)], 7),
        (vec![Filter::IsOneOf(column("resource_class"), vec!["c1".into(), "c2".into()])], 13),
        (vec![Filter::IsOneOf(column("resource_class"), vec![])], 0),
        (
            vec![
                Filter::Flag(column("maintenance"), false),
                Filter::IsOneOf(column("resource_class"), vec!["c1".into()]),
            ],
            3,
        ),
        (vec![Filter::IsOneOf(column("name"), vec!["' OR 1 = 1 --".into()])], 0),
    ] {
        let found = walk(Selection { filters: filters.clone(), ..by_name.clone() }, "name").await;
        assert_eq!(found.len(), expected, "{filters:?}");
    }
}
