use crate::records::{PendingOrder, Verb};
use crate::store::conformance::conformance;
use crate::store::sql::Writer;
use crate::store::sqlite::*;
use crate::store::*;
use farrier_conductor::model::{AgentSession, Event, InterfaceKind, NewNode, Node};
use serde_json::json;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Row, SqlSafeStr};
use time::{Duration as Span, OffsetDateTime};

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
    let mut connection = store.readers.connect().await.unwrap();
    sqlx::query(what).fetch_one(&mut connection).await.unwrap().get(0)
}

#[tokio::test]
async fn it_does_what_every_store_must_do() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::sync::atomic::AtomicU32::new(0);
    let make = async || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        SqliteStore::open(&folder.path().join(format!("{number}.sqlite"))).await.unwrap()
    };
    conformance(make).await.unwrap();
}

#[tokio::test]
async fn records_are_found_again_after_the_file_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    let mut first = node("first", &["52:54:00:00:00:02", "52:54:00:00:00:01"]);
    let session = session("secret");
    let order = PendingOrder::new(Verb::Deploy, OffsetDateTime::UNIX_EPOCH + SECOND);
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
    assert_eq!(store.identities(&Selection::all(Vec::new())).await.unwrap(), [first.uuid]);
    assert_eq!(store.records(&Selection::first(9)).await.unwrap(), [expected]);
    assert_eq!(store.config_drive(first.uuid).await.unwrap().as_deref(), Some("H4sI"));
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
    checkpoint.execute(&mut store.readers.connect().await.unwrap()).await.unwrap();
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
    assert!(of_state < 60_000, "a new state wrote {of_state} bytes");
}

#[tokio::test]
async fn a_full_disk_gives_one_clear_error_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    let small = SqliteConnectOptions::new().pragma("max_page_count", "64");
    let store = SqliteStore::open_with(&file, small, BUSY).await.unwrap();
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

#[test]
fn f36_conductors_that_start_at_once_make_the_tables_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.sqlite");
        let open = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(SqliteStore::open(&file)).map(drop)
        };
        std::thread::scope(|scope| {
            let opened = [(); 4].map(|()| scope.spawn(open));
            opened.into_iter().for_each(|opened| opened.join().unwrap().unwrap());
        });
    }
}

#[tokio::test]
async fn f36_a_lock_of_a_conductor_that_stands_still_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.sqlite");
    let still = SqliteStore::open(&file).await.unwrap();
    let hasty = Duration::from_millis(20);
    let store = SqliteStore::open_with(&file, SqliteConnectOptions::new(), hasty).await.unwrap();
    let lock = still.writer(Kept::Always).await.unwrap();
    let error = store.create(&node("first", &[])).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(error.to_string().contains("is locked by another process"), "{error}");
    lock.roll_back().await.unwrap();
    store.create(&node("first", &[])).await.unwrap();
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
        sqlx::query(damage).execute(writer.connection()).await.unwrap();
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

/// A backup is a database of its own, with all that was written before it began.
#[tokio::test]
async fn a_backup_is_sound_and_whole_while_conductors_write() {
    let (folder, store, first) = store_with_node().await;
    let store = std::sync::Arc::new(store);
    let writers: Vec<_> = (0..4)
        .map(|at| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                for round in 0..20 {
                    store.create(&node(&format!("n{at}-{round}"), &[])).await.unwrap();
                }
            })
        })
        .collect();
    let (copy, taken) = (folder.path().join("copy.sqlite"), folder.path().join("taken"));
    store.backup(&copy).await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    let kept = SqliteStore::open(&copy).await.unwrap();
    assert_eq!(kept.get(first.uuid).await.unwrap(), store.get(first.uuid).await.unwrap());
    std::fs::write(&taken, "another file").unwrap();
    for (file, part) in [(taken, "not a database"), (folder.path().join("none/copy"), "open")] {
        let error = store.backup(&file).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let mut writer = store.writer(Kept::Always).await.unwrap();
    let stray = "INSERT INTO config_drives (node, content) VALUES ('x', '')";
    sqlx::raw_sql("COMMIT; PRAGMA foreign_keys = off; BEGIN IMMEDIATE")
        .execute(writer.connection())
        .await
        .unwrap();
    sqlx::raw_sql(stray).execute(writer.connection()).await.unwrap();
    writer.commit().await.unwrap();
    let error = store.backup(&folder.path().join("stray")).await.unwrap_err().to_string();
    assert!(error.contains("the first in config_drives, have no node"), "{error}");
}

#[tokio::test]
async fn readers_wait_for_no_writer() {
    let (_folder, store, first) = store_with_node().await;
    let mut writer = store.writer(Kept::Always).await.unwrap();
    sqlx::query("UPDATE nodes SET fault = 'x'").execute(writer.connection()).await.unwrap();
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
