//! The default store: one SQLite file.

use super::{Store, StoreError};
use crate::model::{MacAddress, Node};
use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{Row, SqliteConnection};
use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The record itself is a JSON document; columns hold only what is searched for.
const SCHEMA: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS nodes (
        uuid TEXT PRIMARY KEY NOT NULL,
        name TEXT UNIQUE NOT NULL,
        provision_state TEXT NOT NULL,
        document TEXT NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS ports (
        address TEXT PRIMARY KEY NOT NULL,
        node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE
    )",
    "CREATE INDEX IF NOT EXISTS nodes_by_state ON nodes (provision_state)",
];

/// Node records in an SQLite file that only its owner may read, since agent tokens live there.
#[derive(Debug)]
pub struct SqliteStore {
    pool: SqlitePool,
    file: PathBuf,
}

impl SqliteStore {
    /// Opens `file`, which is made with its tables when it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the file cannot be made or is not a database.
    pub async fn open(file: &Path) -> Result<Self, StoreError> {
        let failed = |reason: String| StoreError::Failed { location: file.display().to_string(), reason };
        make_private(file).map_err(|error| failed(error.to_string()))?;
        let options = SqliteConnectOptions::new().filename(file).foreign_keys(true);
        // One connection: SQLite has one writer anyway, and every query here is a short one.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await
            .map_err(|error| failed(error.to_string()))?;
        for statement in SCHEMA {
            sqlx::query(*statement).execute(&pool).await.map_err(|error| failed(error.to_string()))?;
        }
        Ok(Self { pool, file: file.to_owned() })
    }

    fn failed(&self, reason: impl ToString) -> StoreError {
        StoreError::Failed { location: self.file.display().to_string(), reason: reason.to_string() }
    }

    fn parse(&self, document: &str) -> Result<Node, StoreError> {
        serde_json::from_str(document).map_err(|error| self.failed(format!("unreadable record: {error}")))
    }

    async fn one(&self, statement: &'static str, key: &str) -> Result<Option<Node>, StoreError> {
        let row = sqlx::query(statement).bind(key).fetch_optional(&self.pool).await;
        let row = row.map_err(|error| self.failed(error))?;
        row.map(|row| self.parse(row.get("document"))).transpose()
    }

    async fn insert(&self, connection: &mut SqliteConnection, node: &Node) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO nodes (uuid, name, provision_state, document) VALUES (?, ?, ?, ?)")
            .bind(node.uuid.to_string())
            .bind(&node.name)
            .bind(node.provision_state.as_str())
            .bind(document(node))
            .execute(&mut *connection)
            .await
            .map_err(|error| self.taken_or_failed(error, &format!("the name {:?}", node.name)))?;
        for port in &node.ports {
            sqlx::query("INSERT INTO ports (address, node) VALUES (?, ?)")
                .bind(port.as_str())
                .bind(node.uuid.to_string())
                .execute(&mut *connection)
                .await
                .map_err(|error| self.taken_or_failed(error, &format!("MAC address {port}")))?;
        }
        Ok(())
    }

    fn taken_or_failed(&self, error: sqlx::Error, what: &str) -> StoreError {
        match error.as_database_error().is_some_and(|error| error.is_unique_violation()) {
            true => StoreError::Taken { what: what.to_owned() },
            false => self.failed(error),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, node: &Node) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await.map_err(|error| self.failed(error))?;
        self.insert(&mut transaction, node).await?;
        transaction.commit().await.map_err(|error| self.failed(error))
    }

    async fn get(&self, uuid: Uuid) -> Result<Option<Node>, StoreError> {
        self.one("SELECT document FROM nodes WHERE uuid = ?", &uuid.to_string()).await
    }

    async fn by_name(&self, name: &str) -> Result<Option<Node>, StoreError> {
        self.one("SELECT document FROM nodes WHERE name = ?", name).await
    }

    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError> {
        let mut owners = Vec::new();
        for address in addresses {
            let row = sqlx::query("SELECT node FROM ports WHERE address = ?").bind(address.as_str());
            let row = row.fetch_optional(&self.pool).await.map_err(|error| self.failed(error))?;
            let owner = row.map(|row| row.get::<String, _>("node").parse::<Uuid>());
            owners.extend(owner.transpose().map_err(|error| self.failed(error))?);
        }
        owners.sort_unstable();
        owners.dedup();
        Ok(owners)
    }

    async fn list(&self) -> Result<Vec<Node>, StoreError> {
        let rows = sqlx::query("SELECT document FROM nodes ORDER BY name").fetch_all(&self.pool).await;
        let rows = rows.map_err(|error| self.failed(error))?;
        rows.iter().map(|row| self.parse(row.get("document"))).collect()
    }

    async fn save(&self, node: &Node) -> Result<(), StoreError> {
        let done = sqlx::query("UPDATE nodes SET provision_state = ?, document = ? WHERE uuid = ?")
            .bind(node.provision_state.as_str())
            .bind(document(node))
            .bind(node.uuid.to_string())
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        if done.rows_affected() == 0 { Err(StoreError::Gone(node.uuid)) } else { Ok(()) }
    }

    async fn delete(&self, uuid: Uuid) -> Result<(), StoreError> {
        let done = sqlx::query("DELETE FROM nodes WHERE uuid = ?").bind(uuid.to_string());
        let done = done.execute(&self.pool).await.map_err(|error| self.failed(error))?;
        if done.rows_affected() == 0 { Err(StoreError::Gone(uuid)) } else { Ok(()) }
    }
}

fn document(node: &Node) -> String {
    serde_json::to_string(node).expect("a record has only text keys")
}

/// SQLite gives its journal files the mode of the database, so setting it once is enough.
fn make_private(file: &Path) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(file)?;
    opened.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Event, NewNode};
    use serde_json::Map;

    fn node(name: &str, ports: &[&str]) -> Node {
        Node::enrol(NewNode {
            name: name.into(),
            driver: "fake".into(),
            driver_info: Map::new(),
            properties: Map::new(),
            ports: ports.iter().map(|text| text.parse().unwrap()).collect(),
        })
    }

    async fn store() -> (tempfile::TempDir, SqliteStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("deep/nodes.sqlite")).await.unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn records_are_found_again_after_the_file_was_closed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.sqlite");
        let mut first = node("first", &["52:54:00:00:00:01", "52:54:00:00:00:02"]);
        {
            let store = SqliteStore::open(&file).await.unwrap();
            store.create(&first).await.unwrap();
            assert!(first.apply(Event::Deploy));
            store.save(&first).await.unwrap();
        }
        let store = SqliteStore::open(&file).await.unwrap();
        assert_eq!(store.get(first.uuid).await.unwrap().unwrap(), first);
        assert_eq!(store.by_name("first").await.unwrap().unwrap(), first);
        assert_eq!(store.by_name("other").await.unwrap(), None);
        assert_eq!(store.list().await.unwrap(), [first]);
    }

    #[tokio::test]
    async fn s48_only_the_owner_may_read_the_file() {
        let (folder, _store) = store().await;
        let mode = std::fs::metadata(folder.path().join("deep/nodes.sqlite")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn names_and_addresses_are_unique_and_a_refused_node_leaves_nothing() {
        let (_folder, store) = store().await;
        store.create(&node("first", &["52:54:00:00:00:01"])).await.unwrap();
        let same_name = store.create(&node("first", &["52:54:00:00:00:02"])).await.unwrap_err();
        assert!(same_name.to_string().starts_with("the name \"first\" already belongs"), "{same_name}");
        let same_port = node("second", &["52:54:00:00:00:03", "52:54:00:00:00:01"]);
        let same_port = store.create(&same_port).await.unwrap_err();
        assert!(same_port.to_string().starts_with("MAC address 52:54:00:00:00:01 already"), "{same_port}");
        assert_eq!(store.by_name("second").await.unwrap(), None);
        assert!(store.owners(&["52:54:00:00:00:03".parse().unwrap()]).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn owners_are_each_named_once_and_vanish_with_their_node() {
        let (_folder, store) = store().await;
        let owner = node("first", &["52:54:00:00:00:01", "52:54:00:00:00:02"]);
        store.create(&owner).await.unwrap();
        assert_eq!(store.owners(&owner.ports).await.unwrap(), [owner.uuid]);
        store.delete(owner.uuid).await.unwrap();
        assert!(store.owners(&owner.ports).await.unwrap().is_empty());
        assert!(matches!(store.delete(owner.uuid).await, Err(StoreError::Gone(_))));
        assert!(matches!(store.save(&owner).await, Err(StoreError::Gone(_))));
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.sqlite");
        std::fs::write(&file, "not a database, by any measure of the word").unwrap();
        let error = SqliteStore::open(&file).await.unwrap_err().to_string();
        assert!(error.contains(&file.display().to_string()), "{error}");
    }
}
