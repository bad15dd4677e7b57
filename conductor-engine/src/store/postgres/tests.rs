use crate::records::{Resource, ResourceKind};
use crate::store::conformance::conformance;
use crate::store::postgres::*;
use crate::store::sql::Database;
use crate::store::sql::constraints::postgres_names;
use crate::store::sql::migration::{later, until_made};
use crate::store::sql::statement::{Reader, Row as _};
use crate::store::{CatalogueStore, Changed, Changes, NodeStore, StoreError, Terms};
use farrier_conductor::model::{NewNode, Node};
use farrier_tests::postgres::{Cluster, Pooler};
use sqlx::Row;
use std::collections::BTreeSet;
use std::sync::Arc;
use time::OffsetDateTime;

/// Longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn node(name: &str) -> Node {
    let new = NewNode { name: Some(name.into()), driver: "fake".into(), ..NewNode::default() };
    Node::enrol(new, OffsetDateTime::UNIX_EPOCH)
}

#[tokio::test]
async fn process_it_does_what_every_store_must_do() {
    let cluster = Cluster::start().unwrap();
    let make = async || PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    conformance(make).await.unwrap();
}

/// PgBouncer gives each transaction any of two connections.
#[tokio::test]
async fn process_it_does_what_every_store_must_do_behind_a_pooler_in_transaction_mode() {
    let cluster = Cluster::start().unwrap();
    let pooler = Pooler::start(&cluster, "").unwrap();
    let make = async || {
        let store = PostgresStore::open(&pooler.database().unwrap()).await.unwrap();
        assert_eq!(store.route, Route::Pooler);
        store
    };
    conformance(make).await.unwrap();
    conductors_that_start_at_once_make_the_tables_once(|| pooler.database().unwrap()).await;
    one_of_many_takes_a_lease(&pooler.database().unwrap()).await;
    a_change_behind_a_pooler_is_told_to_conductors_that_listen(&cluster, &pooler).await;
    the_timeouts_are_those_of_each_transaction(&pooler.database().unwrap()).await;
}

async fn a_change_behind_a_pooler_is_told_to_conductors_that_listen(cluster: &Cluster, pooler: &Pooler<'_>) {
    let url = cluster.database().unwrap();
    let direct = PostgresStore::open(&url).await.unwrap();
    assert_eq!(direct.route, Route::Direct);
    let store = PostgresStore::open(&pooler.before(&url)).await.unwrap();
    let (mut changes, node) = (direct.changed(), Uuid::new_v4());
    let told = async {
        store.publish(node);
        while timeout(Duration::from_millis(100), heard(&mut changes, node)).await.is_err() {
            store.publish(node);
        }
    };
    timeout(PATIENCE, told).await.unwrap();
}

async fn the_timeouts_are_those_of_each_transaction(url: &str) {
    let store = PostgresStore::open(url).await.unwrap();
    let mut session = store.writer(Kept::Always).await.unwrap();
    for (name, value) in SERVER_TIMEOUTS {
        let setting = Statement::new("SELECT current_setting($1)").bind(name);
        let row = session.fetch_one(setting).await.unwrap().unwrap();
        let expected = if value == "60s" { "1min" } else { value };
        assert_eq!(row.text(0).unwrap(), expected, "{name}");
    }
}

/// A site may let PgBouncer ignore the settings that it does not know.
#[tokio::test]
async fn process_a_pooler_that_forgets_settings_is_found_too() {
    let cluster = Cluster::start().unwrap();
    let pooler = Pooler::start(&cluster, "ignore_startup_parameters = extra_float_digits,options").unwrap();
    let store = PostgresStore::open(&pooler.database().unwrap()).await.unwrap();
    assert_eq!(store.route, Route::Pooler);
    let node = node("first");
    store.create(&node).await.unwrap();
    assert_eq!(store.get(node.uuid).await.unwrap().unwrap().node, node);
}

#[tokio::test]
async fn process_a_database_is_shared_from_its_first_start_on() {
    let cluster = Cluster::start().unwrap();
    conductors_that_start_at_once_make_the_tables_once(|| cluster.database().unwrap()).await;
    every_unique_constraint_of_the_tables_that_clients_write_is_known(&cluster).await;
    one_of_many_takes_a_lease(&cluster.database().unwrap()).await;
    a_change_is_told_to_other_conductors_and_once_to_its_own(&cluster).await;
    a_table_of_another_conductor_is_known_in_any_language(&cluster).await;
    tables_of_another_version_are_left_alone(&cluster).await;
    a_program_and_a_later_one_share_a_database(&cluster).await;
    connections_that_the_server_ends_are_opened_again(&cluster).await;
    what_a_waiting_transaction_has_locked_is_told_as_such(&cluster).await;
    documents_are_written_only_as_they_were_read(&cluster).await;
    a_certificate_is_verified_where_the_url_says_so(&cluster).await;
}

async fn connections_that_the_server_ends_are_opened_again(cluster: &Cluster) {
    let store = PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    let node = node("first");
    store.create(&node).await.unwrap();
    let other = PgPool::connect_with((*store.pool.connect_options()).clone()).await.unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(end).execute(&other).await.unwrap();
    assert_eq!(store.get(node.uuid).await.unwrap().unwrap().node, node);
}

async fn what_a_waiting_transaction_has_locked_is_told_as_such(cluster: &Cluster) {
    let store = PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    let node = node("first");
    store.create(&node).await.unwrap();
    let hasty = (*store.pool.connect_options()).clone().options([("lock_timeout", "50ms")]);
    let hasty = PostgresStore { pool: PgPool::connect_lazy_with(hasty), ..store };
    let mut waiting = hasty.pool.begin().await.unwrap();
    sqlx::query("UPDATE nodes SET fault = 'x'").execute(&mut *waiting).await.unwrap();
    let now = OffsetDateTime::UNIX_EPOCH;
    let error = hasty.take(node.uuid, &Terms { holder: "one", now, expires_at: now }).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert_eq!(hasty.get(node.uuid).await.unwrap().unwrap().node, node, "a reader waited");
}

async fn a_certificate_is_verified_where_the_url_says_so(cluster: &Cluster) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let url = cluster.tls_database().unwrap();
    let strange = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let strange_file = folder.path().join("ca.pem");
    std::fs::write(&strange_file, strange.cert.pem()).unwrap();
    for (file, is_trusted) in [(cluster.certificate(), true), (strange_file, false)] {
        let url = format!("{url}?sslmode=verify-full&sslrootcert={}", file.display());
        match PostgresStore::open(&url).await {
            Ok(store) => {
                let is_used = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
                let is_used: bool = sqlx::query_scalar(is_used).fetch_one(&store.pool).await.unwrap();
                assert!(is_used && is_trusted);
            }
            Err(error) => assert!(!is_trusted && error.to_string().contains("certificate"), "{error}"),
        }
    }
}

/// SQLite has one writer at a time, PostgreSQL many.
async fn documents_are_written_only_as_they_were_read(cluster: &Cluster) {
    let url = cluster.database().unwrap();
    let stores = [PostgresStore::open(&url).await.unwrap(), PostgresStore::open(&url).await.unwrap()];
    let stores = stores.map(Arc::new);
    let before = Resource {
        uuid: Uuid::from_u128(1),
        kind: ResourceKind::Chassis,
        name: None,
        node_uuid: None,
        created_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: None,
        fields: serde_json::Map::new(),
    };
    stores[0].create_resource(&before).await.unwrap();
    let writers: Vec<_> = (0..8)
        .map(|at| {
            let (store, before) = (Arc::clone(&stores[at % 2]), before.clone());
            let after = Resource { name: Some(format!("c{at}")), ..before.clone() };
            tokio::spawn(async move { store.write_resource(&before, &after).await.unwrap() })
        })
        .collect();
    let mut written = 0;
    for writer in writers {
        written += usize::from(writer.await.unwrap());
    }
    assert_eq!(written, 1);
}

async fn conductors_that_start_at_once_make_the_tables_once(database: impl Fn() -> String) {
    for _ in 0..3 {
        let url = database();
        let opened: Vec<_> = (0..6)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { PostgresStore::open(&url).await })
            })
            .collect();
        for opened in opened {
            opened.await.unwrap().unwrap();
        }
    }
}

async fn every_unique_constraint_of_the_tables_that_clients_write_is_known(cluster: &Cluster) {
    let store = PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    let names = "SELECT conname::text FROM pg_constraint WHERE contype IN ('u', 'p') \
                 AND conrelid::regclass::text IN ('nodes', 'ports', 'allocations', 'resources')";
    let rows = sqlx::query(names).fetch_all(&store.pool).await.unwrap();
    let found: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, postgres_names().map(str::to_owned).collect());
}

async fn one_of_many_takes_a_lease(url: &str) {
    let store = Arc::new(PostgresStore::open(url).await.unwrap());
    let other = Arc::new(PostgresStore::open(url).await.unwrap());
    let node = node("first");
    store.create(&node).await.unwrap();
    for round in 1..=20 {
        let tries: Vec<_> = (0..8)
            .map(|at| {
                let store = Arc::clone(if at % 2 == 0 { &store } else { &other });
                tokio::spawn(async move {
                    let now = OffsetDateTime::UNIX_EPOCH;
                    let holder = format!("c{at}");
                    let expires_at = now + time::Duration::MINUTE;
                    store.take(node.uuid, &Terms { holder: &holder, now, expires_at }).await
                })
            })
            .collect();
        let mut taken = Vec::new();
        for attempt in tries {
            match attempt.await.unwrap() {
                Ok((lease, _)) => taken.push(lease),
                Err(StoreError::Held { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let [lease] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!((lease.epoch, lease.follows_crash), (round, false));
        store.release(lease).await.unwrap();
    }
}

async fn a_change_is_told_to_other_conductors_and_once_to_its_own(cluster: &Cluster) {
    let url = cluster.database().unwrap();
    let store = PostgresStore::open(&url).await.unwrap();
    let other = PostgresStore::open(&url).await.unwrap();
    let (mut own, mut others) = (store.changed(), other.changed());
    let [first, second, third, fourth] = [(); 4].map(|()| Uuid::new_v4());
    // A hint may be missing, as long as the other one does not listen yet.
    for (from, to, node) in [(&store, &mut others, first), (&other, &mut own, second)] {
        let told = async {
            from.publish(node);
            while timeout(Duration::from_millis(100), heard(to, node)).await.is_err() {
                from.publish(node);
            }
        };
        timeout(PATIENCE, told).await.unwrap();
    }
    store.publish(third);
    timeout(PATIENCE, heard(&mut others, third)).await.unwrap();
    // The server tells the changes in their order, so the third one has come back, if it does, before the fourth.
    other.publish(fourth);
    let before = timeout(PATIENCE, heard(&mut own, fourth)).await.unwrap();
    assert_eq!(before.iter().filter(|node| **node == third).count(), 1, "{before:?}");
}

/// The nodes whose changes the stream has before the first change of the awaited node.
async fn heard(changes: &mut Changes, awaited: Uuid) -> Vec<Uuid> {
    let mut before = Vec::new();
    loop {
        match changes.next().await {
            Some(Changed::Node(node)) if node == awaited => return before,
            Some(Changed::Node(node)) => before.push(node),
            change => panic!("{change:?}"),
        }
    }
}

async fn a_table_of_another_conductor_is_known_in_any_language(cluster: &Cluster) {
    let store = PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    let refused =
        "DO $$ BEGIN RAISE duplicate_table USING MESSAGE = 'Relation »nodes« existiert bereits'; END $$";
    let error = sqlx::query(refused).execute(&store.pool).await.unwrap_err();
    assert_eq!(PostgresStore::trouble(&error), Trouble::Exists);
}

async fn tables_of_another_version_are_left_alone(cluster: &Cluster) {
    let url = cluster.database().unwrap();
    let store = PostgresStore::open(&url).await.unwrap();
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', true, '', 0)";
    sqlx::query(later).execute(&store.pool).await.unwrap();
    let error = PostgresStore::open(&url).await.unwrap_err().to_string();
    assert!(error.contains("layout 9999 of a later version"), "{error}");
}

async fn a_program_and_a_later_one_share_a_database(cluster: &Cluster) {
    let url = cluster.database().unwrap();
    let after = PostgresStore::connect(&url).await.unwrap();
    until_made(&after, later(true)).await.unwrap();
    let before = PostgresStore::open(&url).await.unwrap();
    let node = node("first");
    before.create(&node).await.unwrap();
    let now = OffsetDateTime::UNIX_EPOCH;
    let (lease, record) =
        after.take(node.uuid, &Terms { holder: "after", now, expires_at: now }).await.unwrap();
    assert_eq!(Node { reservation: None, ..record.node }, node);
    after.release(&lease).await.unwrap();
    assert_eq!(before.get(node.uuid).await.unwrap().unwrap().epoch, lease.epoch);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("postgres://u:secret@localhost:5/site?host={}", folder.path().display());
    for (url, part) in [(url.as_str(), ":5/site"), ("postgres://u:secret@db:x/site", "URL")] {
        let error = PostgresStore::open(url).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn process_a_server_without_a_free_connection_is_told_as_such() {
    let cluster = Cluster::start().unwrap();
    let store = PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    let failure = in_time::<()>(async { Err(sqlx::Error::PoolTimedOut) }).await.unwrap_err();
    let error = store.told(failure).to_string();
    assert!(error.contains("no connection within 10 seconds"), "{error}");
}
