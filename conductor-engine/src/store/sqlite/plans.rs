//! How SQLite finds the rows of each statement.

use super::SqliteStore;
use crate::store::sql::statements::{Dialect, Reads, every, fixed};
use sqlx::{AssertSqlSafe, Row};
use std::collections::BTreeSet;

/// Statements that read all rows, and why.
const LISTS: &[(&str, &str)] = &[
    ("PROVISION_STATES", "it counts all nodes"),
    ("SHARDS", "it counts all nodes"),
    ("WITH_BOOT_TRACE", "it lists all traces, each of a machine that boots"),
];

/// Tables whose rows are as many as what is under way or as conductors, and not as many as nodes.
const SMALL: &[&str] = &["orders", "conductors"];

/// Columns that say little about a row. An index that is searched by them alone finds too many.
const COARSE: &[&str] = &["kind=?", "maintenance=?"];

/// Statements that search an index for a range, and why that is small.
const RANGES: &[(&str, &str)] = &[("HELD", "(reservation>?)")];

async fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap();
    (folder, store)
}

async fn plan(store: &SqliteStore, statement: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let rows = sqlx::query(explain).fetch_all(&mut store.readers.connect().await.unwrap()).await;
    let rows = rows.unwrap_or_else(|error| panic!("{statement}: {error}"));
    rows.iter().map(|row| row.get("detail")).collect()
}

async fn tables(store: &SqliteStore) -> BTreeSet<String> {
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%sqlx%'";
    let mut connection = store.readers.connect().await.unwrap();
    sqlx::query_scalar(tables).fetch_all(&mut connection).await.unwrap().into_iter().collect()
}

/// What in a plan reads more rows than an index has for some value.
fn excess(plan: &[String], growing: &BTreeSet<String>) -> Vec<String> {
    let reads_all = |step: &&String| {
        let mut words = step.split_whitespace();
        let (verb, table) = (words.next(), words.next().unwrap_or_default());
        let columns =
            step.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(columns, _)| columns);
        let is_found = columns
            .unwrap_or_default()
            .split(" AND ")
            .any(|column| column.ends_with("=?") && !COARSE.contains(&column));
        growing.contains(table) && (verb == Some("SCAN") || verb == Some("SEARCH") && !is_found)
    };
    plan.iter().filter(reads_all).cloned().collect()
}

#[tokio::test]
async fn l03_every_statement_finds_its_rows_by_an_index() {
    let (_folder, store) = store().await;
    let growing: BTreeSet<_> =
        tables(&store).await.into_iter().filter(|table| !SMALL.contains(&table.as_str())).collect();
    assert!(growing.len() > 12, "{growing:?}");
    let mut faults = Vec::new();
    for (name, text) in fixed() {
        let plan = plan(&store, text).await;
        let excess = excess(&plan, &growing);
        let is_known = LISTS.iter().any(|(list, _)| *list == name)
            || RANGES
                .iter()
                .any(|(of, range)| *of == name && excess.iter().all(|step| step.ends_with(range)));
        if excess.is_empty() == is_known {
            faults.push(format!("{name}: {plan:#?}"));
        }
    }
    for example in every(Dialect::Sqlite) {
        let plan = plan(&store, &example.text).await;
        let has = |word: &str| plan.iter().any(|step| step.contains(word));
        let is_ordered = || !has("TEMP B-TREE FOR ORDER BY") || example.name.starts_with("records");
        let is_as_declared = match example.reads {
            Reads::Found(columns) => {
                let found =
                    columns.iter().map(|column| format!("{column}=?")).collect::<Vec<_>>().join(" AND ");
                has(&format!("({found}")) && !has("SCAN nodes") && !has("SCAN ports")
            }
            Reads::Page => is_ordered(),
            Reads::PageOf(index) => is_ordered() && has(index),
            Reads::All => true,
        };
        if !is_as_declared {
            faults.push(format!("{}\n{}\n{plan:#?}", example.name, example.text));
        }
    }
    assert!(faults.is_empty(), "{} statements:\n{}", faults.len(), faults.join("\n"));
}

/// Otherwise the end of a node reads each of them whole.
#[tokio::test]
async fn l03_every_table_that_ends_with_a_node_has_an_index_of_its_nodes() {
    let (_folder, store) = store().await;
    let mut connection = store.readers.connect().await.unwrap();
    for table in tables(&store).await {
        let keys = "SELECT \"from\" FROM pragma_foreign_key_list($1)";
        let keys: Vec<String> =
            sqlx::query_scalar(keys).bind(table.clone()).fetch_all(&mut connection).await.unwrap();
        let firsts = "SELECT columns.name FROM pragma_index_list($1) AS indices, \
                      pragma_index_info(indices.name) AS columns WHERE columns.seqno = 0";
        let firsts: BTreeSet<String> = sqlx::query_scalar(firsts)
            .bind(table.clone())
            .fetch_all(&mut connection)
            .await
            .unwrap()
            .into_iter()
            .collect();
        assert!(keys.iter().all(|key| firsts.contains(key)), "{table}: {keys:?} {firsts:?}");
    }
}
