use super::*;
use crate::store::sql::{Kept, Writer};
use crate::store::sqlite::SqliteStore;
use crate::store::{ConductorRecord, ConductorStore, NodeStore, ProcessId};
use farrier_conductor::model::{NewNode, Node};
use sqlx::AssertSqlSafe;
use std::io::{BufReader, Cursor};
use std::path::Path;
use time::OffsetDateTime;
use uuid::Uuid;

/// Fills every table, in SQL of both databases: so many nodes, each with so many entries of its history.
pub(in crate::store) fn site(nodes: u32, history: u32) -> String {
    let each = |table: &str, columns: &str, values: &str| {
        format!(
            "INSERT INTO {table} ({columns}) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers \
             WHERE n < {nodes}), \
             named (n, uuid) AS (SELECT n, '00000000-0000-0000-0000-' || (100000000000 + n) FROM numbers) \
             SELECT {values} FROM named;"
        )
    };
    let entries = format!(
        "INSERT INTO node_history (uuid, node, place, created_at, severity, event_type, event, conductor, by_user) \
         WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {history} - 1) \
         SELECT 'h' || n || nodes.uuid, nodes.uuid, n, n, 'INFO', 'provisioning', 'entry ' || n, 'one', \
         CASE WHEN n % 2 = 0 THEN 'me' END FROM numbers CROSS JOIN nodes;"
    );
    [
        each(
            "nodes",
            "uuid, name, driver, conductor_group, resource_class, instance_uuid, allocation_uuid, provision_state, \
             provision_updated_at, maintenance, console_enabled, retired, protected, created_at, updated_at, reservation, \
             lease_epoch, lease_expires_at, version",
            "uuid, CASE WHEN n % 3 > 0 THEN 'ä''\"' || n END, 'redfish', '', 'large', NULL, NULL, 'available', n, \
             n % 2 = 0, FALSE, FALSE, n % 5 = 0, n, n * 1000000, CASE WHEN n % 4 = 0 THEN 'one' END, n, NULL, 3",
        ),
        each("node_keys", "node, kind, value", "uuid, 'trait', 'CUSTOM_' || n"),
        each("node_documents", "node, document", r#"uuid, '{"extra": {"note": "a \u0000 line\\n' || n || '"}}'"#),
        each("config_drives", "node, content", "uuid, 'H4sI' || n"),
        each("agent_sessions", "node, agent_url, document, version", "uuid, 'https://a/' || n, '{}', n"),
        each("orders", "node, verb, ordered_at, attempts", "uuid, 'deploy', n, 0"),
        each("ports", "uuid, node, place, address, document", "'p' || uuid, uuid, 0, 'address ' || n, '{}'"),
        each("allocations", "uuid, name, state, node_uuid, document", "'a' || uuid, NULL, 'active', uuid, '{}'"),
        each("inspections", "node, received, document", "uuid, NULL, '[1]'"),
        each("erase_certificates", "node, disk, step, document", "uuid, 'sda', 'erase', '{}'"),
        each(
            "resources",
            "uuid, kind, name, node, document",
            "'r' || uuid, 'deploy template', 'CUSTOM_' || n, NULL, '{}'",
        ),
        each("boot_traces", "node, document", "uuid, '{}'"),
        each("diagnoses", "node, document", "uuid, '{}'"),
        entries,
    ]
    .join("\n")
}

/// An SQLite store whose tables are full.
pub(in crate::store) async fn full(file: &Path, nodes: u32, history: u32) -> SqliteStore {
    let store = SqliteStore::open(file).await.unwrap();
    change(&store, site(nodes, history)).await;
    store
}

async fn change(store: &SqliteStore, statements: String) {
    let mut writer = store.writer(Kept::Always).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(writer.connection()).await.unwrap();
    writer.commit().await.unwrap();
}

pub(in crate::store) async fn exported(store: &impl SqlStore) -> Vec<u8> {
    let mut file = Vec::new();
    store.export(&mut file).await.unwrap();
    file
}

async fn imported(store: &impl SqlStore, file: &[u8]) -> Result<u64, TransferError> {
    store.import(&mut BufReader::new(Cursor::new(file))).await
}

fn node(name: &str) -> Node {
    let ports = vec!["52:54:00:00:00:01".parse().unwrap()];
    let new = NewNode { name: Some(name.into()), driver: "fake".into(), ports, ..NewNode::default() };
    Node::enrol(new, OffsetDateTime::UNIX_EPOCH)
}

#[tokio::test]
async fn an_import_has_every_record_of_its_export() {
    let folder = tempfile::tempdir().unwrap();
    let store = full(&folder.path().join("a.sqlite"), 7, 3).await;
    let node = node("real");
    store.create(&node).await.unwrap();
    let file = exported(&store).await;
    let lines: Vec<_> = str::from_utf8(&file).unwrap().lines().collect();
    let tables: Vec<_> =
        lines.iter().enumerate().filter(|(_, line)| line.starts_with("{\"table\"")).collect();
    assert_eq!(tables.len(), 14, "{tables:?}");
    for (place, header) in tables {
        assert!(lines[place + 1].starts_with('['), "no row of {header} is tested");
    }
    let other = SqliteStore::connect(&folder.path().join("b.sqlite")).unwrap();
    let rows = imported(&other, &file).await.unwrap();
    assert_eq!(rows, lines.iter().filter(|line| line.starts_with('[')).count() as u64);
    assert_eq!(exported(&other).await, file);
    assert_eq!(other.get(node.uuid).await.unwrap(), store.get(node.uuid).await.unwrap());
    assert_eq!(other.migrate().await.unwrap().applied, []);
}

/// Each damage, and a part of the error that names it.
fn damages(file: &str) -> Vec<(String, &'static str)> {
    let lines: Vec<_> = file.lines().collect();
    let (header, row) = (lines[0], lines.iter().position(|line| line.starts_with('[')).unwrap());
    let without = |from: usize, to: usize| [&lines[..from], &lines[to..]].concat().join("\n") + "\n";
    let last = lines.len() - 1;
    let one = lines[row];
    let own = format!("\"layout\":{}", LAYOUTS.last().unwrap().version);
    vec![
        (String::new(), "ends before its last line"),
        (without(last, last + 1), "ends before its last line"),
        (without(row, last + 1), "ends before its last line"),
        (file[..file.floor_char_boundary(file.len() / 2)].to_owned(), "of the export"),
        (without(last - 1, last), "not those that were exported"),
        (without(0, 1), "line 1 of the export: missing field"),
        (file.replacen("provisioning", "provisionint", 1), "not those that were exported"),
        (file.replacen("\"nodes\"", "\"hosts\"", 1), "no table \"hosts\""),
        (file.replacen("\"driver\"", "\"rider\"", 1), "no column \"rider\""),
        (file.replacen(one, &one.replacen("\"redfish\"", "7", 1), 1), "driver has a value of another type"),
        (file.replacen(one, "[1]", 1), "a row of table nodes has"),
        (without(1, row), "a row comes before its table"),
        (file.to_owned() + "{}\n", "lines follow the last one"),
        (header.replacen("farrier-export", "cattle", 1) + "\n", "of the format \"cattle\""),
        (header.replacen("\"version\":1", "\"version\":2", 1) + "\n", "version 2 of the format"),
        (header.replacen(&own, "\"layout\":99", 1) + "\n", "has layout 99 of the tables"),
    ]
}

#[tokio::test]
async fn of_a_damaged_export_nothing_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = exported(&full(&folder.path().join("a.sqlite"), 3, 2).await).await;
    let other = SqliteStore::connect(&folder.path().join("b.sqlite")).unwrap();
    for (damaged, part) in damages(str::from_utf8(&file).unwrap()) {
        let error = imported(&other, damaged.as_bytes()).await.unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    imported(&other, &file).await.unwrap();
    assert_eq!(exported(&other).await, file);
}

#[tokio::test]
async fn a_database_with_records_or_conductors_takes_no_import() {
    let folder = tempfile::tempdir().unwrap();
    let file = exported(&full(&folder.path().join("a.sqlite"), 1, 1).await).await;
    let other = SqliteStore::open(&folder.path().join("b.sqlite")).await.unwrap();
    let conductor = ConductorRecord {
        name: "one".into(),
        process: ProcessId { start: Uuid::nil(), host_process: String::new() },
        conductor_group: String::new(),
        hardware: Default::default(),
        counter: 0,
        registered_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
    };
    assert!(other.renew_conductor(&conductor, None).await.unwrap());
    let error = imported(&other, &file).await.unwrap_err();
    assert!(matches!(&error, TransferError::InUse { conductor, .. } if conductor == "one"), "{error}");
    other.remove_conductor(&conductor, true).await.unwrap();
    other.create(&node("first")).await.unwrap();
    let before = exported(&other).await;
    let error = imported(&other, &file).await.unwrap_err();
    assert!(matches!(&error, TransferError::NotEmpty { table, .. } if table == "nodes"), "{error}");
    assert_eq!(exported(&other).await, before);
}

/// A file to which a conductor writes a node as soon as the first line is written.
struct Disturbed<'a> {
    file: Vec<u8>,
    database: Option<&'a Path>,
}

impl Write for Disturbed<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(database) = self.database.take() {
            let create = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let store = SqliteStore::open(database).await.unwrap();
                    store.create(&node("late")).await.unwrap();
                });
            };
            std::thread::scope(|scope| scope.spawn(create).join().unwrap());
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_export_has_the_records_of_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sqlite");
    let store = full(&file, 3, 2).await;
    let before = exported(&store).await;
    let mut disturbed = Disturbed { file: Vec::new(), database: Some(&file) };
    store.export(&mut disturbed).await.unwrap();
    assert_eq!(disturbed.file, before);
    assert_ne!(exported(&store).await, before, "nobody has written meanwhile");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_fails_the_export_and_is_not_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = full(&folder.path().join("a.sqlite"), 3, 2).await;
    for (damage, table) in [
        ("UPDATE node_history SET created_at = 'yesterday' WHERE place = 1;", "node_history"),
        ("UPDATE diagnoses SET document = x'ff';", "diagnoses"),
    ] {
        change(&store, damage.to_owned()).await;
        let error = store.export(&mut Vec::new()).await.unwrap_err();
        assert!(matches!(&error, TransferError::Table { table: of, .. } if of == table), "{error}");
        assert!(error.to_string().starts_with(&format!("table {table}: ")), "{error}");
    }
}
