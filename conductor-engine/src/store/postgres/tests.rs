use crate::store::conformance::conformance;
use crate::store::postgres::*;
use crate::store::sql::constraints::postgres_names;
use crate::store::{Changed, NodeStore, StoreError, Terms};
use farrier_conductor::model::{NewNode, Node};
use farrier_tests::postgres::Cluster;
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
async fn it_does_what_every_store_must_do() {
    let cluster = Cluster::start();
    let make = async || PostgresStore::open(&cluster.database()).await.unwrap();
    conformance(make).await.unwrap();
}

#[tokio::test]
async fn a_database_is_shared_from_its_first_start_on() {
    let cluster = Cluster::start();
    conductors_that_start_at_once_make_the_tables_once(&cluster).await;
    every_unique_constraint_of_the_tables_that_clients_write_is_known(&cluster).await;
    one_of_many_takes_a_lease(&cluster).await;
    a_change_is_told_to_other_conductors(&cluster).await;
    tables_of_another_version_are_left_alone(&cluster).await;
}

async fn conductors_that_start_at_once_make_the_tables_once(cluster: &Cluster) {
    for _ in 0..3 {
        let url = cluster.database();
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
    let store = PostgresStore::open(&cluster.database()).await.unwrap();
    let names = "SELECT conname::text FROM pg_constraint WHERE contype IN ('u', 'p') \
                 AND conrelid::regclass::text IN ('nodes', 'ports', 'allocations', 'resources')";
    let rows = sqlx::query(names).fetch_all(&store.pool).await.unwrap();
    let found: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, postgres_names().map(str::to_owned).collect());
}

async fn one_of_many_takes_a_lease(cluster: &Cluster) {
    let url = cluster.database();
    let store = Arc::new(PostgresStore::open(&url).await.unwrap());
    let other = Arc::new(PostgresStore::open(&url).await.unwrap());
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

async fn a_change_is_told_to_other_conductors(cluster: &Cluster) {
    let url = cluster.database();
    let store = PostgresStore::open(&url).await.unwrap();
    let other = PostgresStore::open(&url).await.unwrap();
    let mut changes = other.changed();
    let node = node("first");
    // A hint may be missing, as long as the other one does not listen yet.
    let told = async {
        loop {
            store.publish(node.uuid);
            if let Ok(change) = timeout(Duration::from_millis(100), changes.next()).await {
                return change;
            }
        }
    };
    assert_eq!(timeout(PATIENCE, told).await.unwrap(), Some(Changed::Node(node.uuid)));
}

async fn tables_of_another_version_are_left_alone(cluster: &Cluster) {
    let url = cluster.database();
    let store = PostgresStore::open(&url).await.unwrap();
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', true, '', 0)";
    sqlx::query(later).execute(&store.pool).await.unwrap();
    let error = PostgresStore::open(&url).await.unwrap_err().to_string();
    assert!(error.contains("another version"), "{error}");
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
