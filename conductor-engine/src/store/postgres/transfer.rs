//! Exports and imports between both kinds of databases.

use crate::store::SqlStore;
use crate::store::postgres::PostgresStore;
use crate::store::sql::transfer::tests::{exported, full};
use crate::store::sqlite::SqliteStore;
use farrier_tests::postgres::Cluster;
use std::io::{BufReader, Cursor};

/// So many nodes, and entries of the history of each.
const NODES: u32 = 10_000;
const HISTORY: u32 = 5;

#[tokio::test]
async fn process_ten_thousand_nodes_are_equal_in_both_databases() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Cluster::start().unwrap());
    let source = full(&folder.path().join("a.sqlite"), NODES, HISTORY).await;
    let file = exported(&source).await;
    let expected = u64::from(NODES * (13 + HISTORY));

    let postgres = PostgresStore::connect(&cluster.database().unwrap()).await.unwrap();
    let rows = postgres.import(&mut BufReader::new(Cursor::new(&file))).await.unwrap();
    assert_eq!(rows, expected);
    let of_postgres = exported(&postgres).await;
    assert!(of_postgres == file, "PostgreSQL has other records");

    let back = SqliteStore::connect(&folder.path().join("b.sqlite")).unwrap();
    back.import(&mut BufReader::new(Cursor::new(&of_postgres))).await.unwrap();
    assert!(exported(&back).await == file, "SQLite has other records");
}
