//! Backups of the file while conductors use it.

use super::SqliteStore;
use crate::store::StoreError;
use crate::store::sql::{Database, Failure, Kept, Outcome};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Row};
use std::path::Path;

/// The answer of SQLite for a file without damage.
const SOUND: &str = "ok";

impl SqliteStore {
    /// Writes a copy of the database as it is at one moment to a file, which must not exist or be empty. Conductors read and write
    /// meanwhile. The copy has passed SQLite's integrity check. Who may read it is up to the caller: it has agent tokens
    /// and passwords.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the database cannot be read, the file cannot be written, or the database is damaged.
    pub async fn backup(&self, file: &Path) -> Result<(), StoreError> {
        let copied = async {
            self.copy(file).await?;
            check(file).await
        };
        copied.await.map_err(|failure| self.told(failure))
    }

    async fn copy(&self, file: &Path) -> Outcome<()> {
        let name = file.to_str().ok_or_else(|| Failure::Backup("its name is not UTF-8".to_owned()))?;
        let mut connection = self.writers.open(Kept::Always).await?;
        sqlx::query("VACUUM INTO $1").bind(name.to_owned()).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }
}

/// Checks every page of a copy, and that each row belongs to a node that there is.
async fn check(file: &Path) -> Outcome<()> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let found = sqlx::query("PRAGMA integrity_check").fetch_all(&mut connection).await?;
    let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
    if found != [SOUND] {
        return Err(Failure::Backup(found.join("; ")));
    }
    let strays = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut connection).await?;
    if let Some(stray) = strays.first() {
        let table: String = stray.get(0);
        return Err(Failure::Backup(format!("{} rows, the first in {table}, have no node", strays.len())));
    }
    Ok(connection.close().await?)
}
