//! How PostgreSQL finds the rows of each statement.

use crate::store::postgres::PostgresStore;
use crate::store::sql::statements::{Dialect, Reads, every, fixed};
use farrier_tests::postgres::Cluster;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor, Row};

/// Statements that read all rows, and why.
const LISTS: &[(&str, &str)] =
    &[("PROVISION_STATES", "it counts all nodes"), ("SHARDS", "it counts all nodes")];

/// Tables whose rows are as many as what is under way or as conductors, and not as many as nodes.
const SMALL: &[&str] = &["orders", "conductors", "boot_traces"];

/// As many nodes as a site may have that needs PostgreSQL. Most are at rest.
const SITE: &str = "
INSERT INTO nodes (uuid, name, driver, conductor_group, resource_class, shard, chassis_uuid, instance_uuid,
    allocation_uuid, provision_state, provision_updated_at, maintenance, fault, console_enabled, retired, protected,
    created_at, updated_at, reservation, lease_epoch, lease_expires_at, version)
SELECT gen_random_uuid(), 'n' || n, 'redfish', '', 'c' || n % 40, 's' || n % 10, 'h' || n % 500,
    CASE WHEN n % 2 = 0 THEN gen_random_uuid() END, CASE WHEN n % 2 = 0 THEN gen_random_uuid() END,
    CASE n % 100 WHEN 0 THEN 'wait call-back' WHEN 1 THEN 'deploying' WHEN 2 THEN 'inspect wait'
        ELSE CASE WHEN n % 2 = 0 THEN 'active' ELSE 'available' END END,
    0, n % 50 = 0, CASE WHEN n % 200 = 0 THEN 'power failure' END, n % 1000 = 0, false, false, n * 7919 % 20000, n,
    CASE WHEN n % 100 = 1 THEN 'one' END, 1, CASE WHEN n % 100 = 1 THEN 5 END, 0 FROM generate_series(1, 20000) AS n;
INSERT INTO node_documents (node, document) SELECT uuid, '{}' FROM nodes;
INSERT INTO agent_sessions (node, document, version) SELECT uuid, '{}', 0 FROM nodes;
INSERT INTO node_keys (node, kind, value) SELECT uuid, 'trait', 'CUSTOM_' || created_at % 20 FROM nodes;
INSERT INTO node_keys (node, kind, value) SELECT uuid, 'bmc_address', '10.' || created_at FROM nodes;
INSERT INTO config_drives (node, content) SELECT uuid, '' FROM nodes WHERE instance_uuid IS NOT NULL;
INSERT INTO ports (uuid, node, place, address, document)
    SELECT gen_random_uuid(), uuid, place, name || ' ' || place, '{}' FROM nodes, generate_series(0, 1) AS place;
INSERT INTO allocations (uuid, state, node_uuid, document)
    SELECT allocation_uuid, 'active', uuid, '{}' FROM nodes WHERE allocation_uuid IS NOT NULL;
INSERT INTO inspections (node, document) SELECT uuid, '{}' FROM nodes;
INSERT INTO node_history (uuid, node, place, created_at, severity, event_type, event, conductor)
    SELECT gen_random_uuid(), uuid, place, 0, 'INFO', 'provisioning', '', 'one'
    FROM nodes, generate_series(0, 4) AS place;
INSERT INTO erase_certificates (node, disk, step, document) SELECT uuid, 'd', 's', '{}' FROM nodes;
INSERT INTO resources (uuid, kind, node, natural_key, document)
    SELECT gen_random_uuid(), kind, uuid, name, '{}' FROM nodes, unnest(ARRAY['chassis', 'portgroup']) AS kind;
INSERT INTO boot_traces (node, document) SELECT uuid, '{}' FROM nodes WHERE provision_state = 'wait call-back';
INSERT INTO diagnoses (node, document) SELECT uuid, '{}' FROM nodes;
INSERT INTO orders (node, verb, ordered_at, attempts)
    SELECT uuid, 'deploy', 0, 0 FROM nodes WHERE created_at < 40;
ANALYZE;
";

/// Settings of the planner for a kind of statement: values that few rows have are the rule. A page of a list may read
/// all rows where no index has what is asked for; whether it can follow the order of an index shows without the other ways.
fn settings(reads: Reads) -> &'static str {
    match reads {
        Reads::Found(_) => "RESET enable_seqscan; RESET enable_sort",
        Reads::Page | Reads::PageOf(_) | Reads::All => "SET enable_seqscan = off; SET enable_sort = off",
    }
}

/// A value that few rows have, of a type.
fn rare(of_type: &str) -> &'static str {
    match of_type {
        "boolean" => "true",
        "bigint" => "5",
        _ => "'x'",
    }
}

/// The plan of a statement.
async fn plan(connection: &mut PgConnection, statement: &str) -> Vec<String> {
    let prepare = AssertSqlSafe(format!("PREPARE looked_at AS {statement}"));
    let prepared = connection.execute(sqlx::raw_sql(prepare)).await;
    prepared.unwrap_or_else(|error| panic!("{statement}: {error}"));
    let types = "SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = 'looked_at'";
    let types: Vec<String> = sqlx::query_scalar(types).fetch_all(&mut *connection).await.unwrap();
    let values = types.iter().map(|of_type| rare(of_type)).collect::<Vec<_>>().join(", ");
    let values = if types.is_empty() { values } else { format!("({values})") };
    let explain = AssertSqlSafe(format!("EXPLAIN (COSTS OFF) EXECUTE looked_at{values}"));
    let rows = connection.fetch_all(sqlx::raw_sql(explain)).await.unwrap();
    connection.execute("DEALLOCATE looked_at").await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Steps of a plan that read all rows of a table that grows, or of one of its indices.
fn excess(plan: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, step) in plan.iter().enumerate() {
        let words: Vec<_> = step.trim_start_matches([' ', '-', '>']).split_whitespace().collect();
        let table = words.iter().skip_while(|word| **word != "on").nth(1).copied().unwrap_or_default();
        let has_condition = plan[at + 1..].first().is_some_and(|next| next.contains("Index Cond"));
        let is_excess = match words[..] {
            ["Seq", ..] => true,
            ["Index", "Scan" | "Only", ..] | ["Bitmap", "Index", ..] => !has_condition,
            _ => false,
        };
        if is_excess && !SMALL.iter().any(|small| table.starts_with(small)) {
            found.push(step.as_str());
        }
    }
    found
}

#[tokio::test]
async fn process_l03_every_statement_finds_its_rows_by_an_index() {
    let cluster = Cluster::start().unwrap();
    let store = PostgresStore::open(&cluster.database().unwrap()).await.unwrap();
    let mut connection = store.pool.acquire().await.unwrap();
    connection.execute(sqlx::raw_sql(SITE)).await.unwrap();
    let mut faults = Vec::new();
    connection.execute(settings(Reads::Found(&[]))).await.unwrap();
    for (name, text) in fixed() {
        let plan = plan(&mut connection, text).await;
        if excess(&plan).is_empty() == LISTS.iter().any(|(list, _)| *list == name) {
            faults.push(format!("{name}: {plan:#?}"));
        }
    }
    for example in every(Dialect::Postgres) {
        connection.execute(settings(example.reads)).await.unwrap();
        let plan = plan(&mut connection, &example.text).await;
        let excess = excess(&plan);
        let has = |word: &str| plan.iter().any(|step| step.contains(word));
        let is_ordered = || {
            let by_index = excess.iter().all(|step| !step.contains("Seq Scan"));
            by_index && (!has("Sort") || example.name.starts_with("records"))
        };
        let is_as_declared = match example.reads {
            Reads::Found(_) => excess.is_empty(),
            Reads::Page => is_ordered(),
            Reads::PageOf(index) => is_ordered() && has(index),
            Reads::All => true,
        };
        if !is_as_declared {
            faults.push(format!("{}\n{plan:#?}", example.text));
        }
    }
    assert!(faults.is_empty(), "{} statements:\n{}", faults.len(), faults.join("\n"));
}
