//! The layout before the first migration: a node was one JSON document, with its agent and its config drive inside.
//!
//! A file of that layout is brought over in two transactions, one before and one after the migrations. Whatever ends
//! the conductor between them, the next start goes on, and until the last one is committed the old rows are there.

use super::{Failure, Outcome, writing};
use crate::model::{AgentSession, Node};
use serde_json::{Value, json};
use sqlx::{Row, SqliteConnection};

/// Whether a table has this name; the only statements that look into SQLite itself.
const HAS_TABLE: &str = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1";
const HAS_COLUMN: &str = "SELECT count(*) FROM pragma_table_info('nodes') WHERE name = $1";

const SET_ASIDE: &[&str] = &[
    "DROP INDEX IF EXISTS nodes_by_state",
    "DROP TABLE IF EXISTS ports",
    "ALTER TABLE nodes RENAME TO one_document_nodes",
];
const DOCUMENTS: &str = "SELECT name, document FROM one_document_nodes ORDER BY name";
const FORGET: &str = "DROP TABLE one_document_nodes";

/// Gives the old table another name. Its ports are in its documents too.
pub(super) async fn set_aside(connection: &mut SqliteConnection) -> Outcome<()> {
    if count(connection, HAS_COLUMN, "document").await? == 0 {
        return Ok(());
    }
    for statement in SET_ASIDE {
        sqlx::query(*statement).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Writes the old nodes into the new tables.
pub(super) async fn bring_over(connection: &mut SqliteConnection) -> Outcome<()> {
    if count(connection, HAS_TABLE, "one_document_nodes").await? == 0 {
        return Ok(());
    }
    for row in sqlx::query(DOCUMENTS).fetch_all(&mut *connection).await? {
        let (node, session, config_drive) = take_apart(row.try_get("document")?)?;
        writing::insert(connection, &node, &session).await?;
        if let Some(content) = config_drive {
            writing::insert_config_drive(connection, node.uuid, &content).await?;
        }
    }
    sqlx::query(FORGET).execute(connection).await?;
    Ok(())
}

async fn count(connection: &mut SqliteConnection, statement: &'static str, name: &str) -> Outcome<i64> {
    Ok(sqlx::query_scalar(statement).bind(name.to_owned()).fetch_one(connection).await?)
}

/// What was one document. Notes that belong to the agent are in its session now.
fn take_apart(document: &str) -> Outcome<(Node, AgentSession, Option<String>)> {
    let mut node: Node = serde_json::from_str(document)?;
    let notes = &mut node.driver_internal_info.others;
    let session: AgentSession = serde_json::from_value(Value::Object(notes.clone()))?;
    let known = [json!(AgentSession::default()), json!(session)];
    for key in known.iter().filter_map(Value::as_object).flat_map(|fields| fields.keys()) {
        notes.remove(key);
    }
    let config_drive = node.instance_info.take_config_drive();
    let config_drive = config_drive.map_err(|error| {
        Failure::Record(serde::de::Error::custom(format!("node {}: {error}", node.label())))
    })?;
    Ok((node, session, config_drive))
}

#[cfg(test)]
mod tests {
    use super::super::super::{Record, Store};
    use super::super::SqliteStore;
    use super::*;
    use crate::model::ProvisionState;
    use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
    use std::path::{Path, PathBuf};
    use uuid::Uuid;

    /// What the release before the first migration wrote.
    const OLD_LAYOUT: &[&str] = &[
        "CREATE TABLE nodes (uuid TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE NOT NULL, \
         provision_state TEXT NOT NULL, document TEXT NOT NULL)",
        "CREATE TABLE ports (address TEXT PRIMARY KEY NOT NULL, \
         node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE)",
        "CREATE INDEX nodes_by_state ON nodes (provision_state)",
    ];

    fn old_document(name: &str, mac: &str) -> Value {
        json!({
            "uuid": Uuid::new_v4(), "name": name, "driver": "fake", "driver_info": {"deploy_kernel": "/k"},
            "driver_internal_info": {
                "agent_url": "https://192.0.2.1:9999", "agent_version": "0.1.0",
                "agent_last_heartbeat": "2026-11-23T01:02:03.123456Z", "agent_verify_ca": "PEM",
                "agent_secret_token": "secret", "agent_cached_deploy_steps": null,
                "hardware_manager_version": {"generic": "1"},
                "deploy_steps": [{"interface": "deploy", "step": "write_image", "priority": 80}],
                "deploy_step_index": 0, "root_uuid_or_disk_id": null,
            },
            "instance_info": {"image_source": "http://h/i", "configdrive": "H4sI"},
            "properties": {"root_device": {"serial": "R"}}, "ports": [mac],
            "provision_state": "wait call-back", "target_provision_state": "active",
            "provision_updated_at": "2026-11-23T01:00:00.123456Z", "power_state": "power on", "last_error": null,
            "deploy_step": {"interface": "deploy", "step": "write_image", "priority": 80},
            "created_at": "2026-11-22T00:00:00Z", "updated_at": "2026-11-23T01:00:00.123456Z",
        })
    }

    /// A file of the old layout with these nodes.
    async fn old_file(folder: &Path, nodes: &[Value]) -> PathBuf {
        let file = folder.join("nodes.sqlite");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        for statement in OLD_LAYOUT {
            sqlx::query(*statement).execute(&pool).await.unwrap();
        }
        for node in nodes {
            let insert = sqlx::query("INSERT INTO nodes VALUES ($1, $2, $3, $4)");
            let text = |key: &str| node[key].as_str().map(str::to_owned);
            let insert = insert.bind(text("uuid")).bind(text("name")).bind(text("provision_state"));
            insert.bind(node.to_string()).execute(&pool).await.unwrap();
            let port = sqlx::query("INSERT INTO ports VALUES ($1, $2)").bind(node["ports"][0].as_str());
            port.bind(text("uuid")).execute(&pool).await.unwrap();
        }
        pool.close().await;
        file
    }

    #[tokio::test]
    async fn a_file_of_the_layout_with_one_document_keeps_its_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let nodes = [old_document("a", "52:54:00:00:00:01"), old_document("b", "52:54:00:00:00:02")];
        let file = old_file(folder.path(), &nodes).await;
        for _ in 0..2 {
            let store = SqliteStore::open(&file).await.unwrap();
            let listed = store.list().await.unwrap();
            assert_eq!(listed.len(), 2);
            let Record { node, session, .. } = &listed[0];
            assert_eq!((node.name.as_deref(), node.provision_state), (Some("a"), ProvisionState::DeployWait));
            assert_eq!(node.driver_internal_info.deploy.index, Some(0));
            assert_eq!(node.driver_internal_info.others, serde_json::Map::new());
            assert_eq!(node.instance_info["configdrive"], "******");
            assert_eq!(session.agent_secret_token.as_deref(), Some("secret"));
            assert_eq!(session.hardware_manager_version.as_ref().unwrap()["generic"], "1");
            assert_eq!(store.config_drive(node.uuid).await.unwrap().as_deref(), Some("H4sI"));
            assert_eq!(store.owners(&["52:54:00:00:00:02".parse().unwrap()]).await.unwrap().len(), 1);
            let mut old = nodes[0].clone();
            old["instance_info"]["configdrive"] = json!("******");
            let shown = serde_json::to_value(node).unwrap();
            for key in [
                "uuid",
                "driver_info",
                "instance_info",
                "properties",
                "ports",
                "deploy_step",
                "power_state",
                "provision_updated_at",
                "created_at",
                "updated_at",
                "target_provision_state",
            ] {
                assert_eq!(shown[key], old[key], "{key}");
            }
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_brought_over_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut broken = old_document("b", "52:54:00:00:00:02");
        broken["provision_state"] = json!("flying");
        let nodes = [old_document("a", "52:54:00:00:00:01"), broken.clone()];
        let file = old_file(folder.path(), &nodes).await;
        let error = SqliteStore::open(&file).await.unwrap_err().to_string();
        assert!(error.contains("flying"), "{error}");
        // Once it can be read, opening goes on where it stopped.
        broken["provision_state"] = json!("available");
        let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
        let mend = sqlx::query("UPDATE one_document_nodes SET document = $1 WHERE name = 'b'");
        mend.bind(broken.to_string()).execute(&pool).await.unwrap();
        pool.close().await;
        assert_eq!(SqliteStore::open(&file).await.unwrap().list().await.unwrap().len(), 2);
    }
}
