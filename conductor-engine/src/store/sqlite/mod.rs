//! The default store: one SQLite file.
//!
//! The file is in WAL mode, so that readers wait for nobody. What the conductor has answered for (records, orders, tokens) is
//! written with `synchronous=FULL` and outlives a power cut. Heartbeats and leases are written with `synchronous=NORMAL`: a
//! power cut may take the last ones back, but never break the file. Agents beat again, and whoever held a lease lost power
//! too. That saves a flush of the disk for each. Writers take [turns](turn), and wait ten seconds for other processes.

mod backup;
mod checkpoints;
mod readers;
mod turn;

use crate::store::sql::migration::{self, LAYOUTS, Layout, Migrated};
use crate::store::sql::statement::{Connection, Reader, Statement};
use crate::store::sql::statements::Dialect;
use crate::store::sql::{Database, Failure, Kept, Outcome, Trouble};
use crate::store::{ChangeFeed, StoreError, Waits};
use futures_util::TryStreamExt;
use readers::Readers;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow};
use sqlx::{Connection as _, Executor, SqliteConnection};
use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use turn::{BUSY, Turn, Writers, is_locked};
use uuid::Uuid;

/// Result codes of SQLite for want of room: the file cannot grow, or the index of its journal cannot.
const NO_ROOM: &[&str] = &["13", "4874"];

/// What SQLite says of a table and of a column that exist.
const EXISTS: [&str; 2] = ["already exists", "duplicate column name"];

/// The low bytes of SQLite's result codes for a file or disk that cannot be read.
const AWAY: [u32; 2] = [10, 14];

/// Node records in an SQLite file that only its owner may read, since agent tokens live there.
#[derive(Debug)]
pub struct SqliteStore {
    readers: Readers,
    writers: Writers,
    file: PathBuf,
    feed: ChangeFeed,
}

impl SqliteStore {
    /// Opens `file`, which is made with its tables when it does not exist, and brought to the newest layout when it
    /// is older.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the file cannot be made, is not a database, or has tables of another version.
    pub async fn open(file: &Path) -> Result<Self, StoreError> {
        Self::open_with(file, SqliteConnectOptions::new().busy_timeout(BUSY), BUSY).await
    }

    /// Opens `file`, which is made when it does not exist, and leaves its tables as they are.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the file cannot be made.
    pub fn connect(file: &Path) -> Result<Self, StoreError> {
        Self::connect_with(file, SqliteConnectOptions::new().busy_timeout(BUSY), BUSY)
    }

    async fn open_with(
        file: &Path,
        options: SqliteConnectOptions,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let store = Self::connect_with(file, options, patience)?;
        migration::until_made(&store, LAYOUTS).await.map_err(|failure| store.told(failure))?;
        Ok(store)
    }

    fn connect_with(
        file: &Path,
        options: SqliteConnectOptions,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let failed = |reason: String| StoreError::Failed { location: file.display().to_string(), reason };
        make_private(file).map_err(|error| failed(error.to_string()))?;
        let options = options.filename(file).foreign_keys(true).journal_mode(SqliteJournalMode::Wal);
        let options = options.pragma("wal_autocheckpoint", checkpoints::MOST_PAGES);
        let readers = Readers::new(options.clone(), patience);
        let (writers, feed) = (Writers::new(options, patience), ChangeFeed::default());
        Ok(Self { readers, writers, file: file.to_owned(), feed })
    }

    /// The columns of each unique index of a table.
    #[cfg(test)]
    pub(in crate::store) async fn unique_columns(
        &self,
        table: &str,
    ) -> Result<Vec<Vec<String>>, sqlx::Error> {
        let mut connection = self.readers.connect().await?;
        let indices = "SELECT name FROM pragma_index_list($1) WHERE \"unique\" ORDER BY seq";
        let names: Vec<String> =
            sqlx::query_scalar(indices).bind(table.to_owned()).fetch_all(&mut connection).await?;
        let mut columns = Vec::new();
        for name in names {
            let of_index = "SELECT name FROM pragma_index_info($1) ORDER BY seqno";
            columns.push(sqlx::query_scalar(of_index).bind(name).fetch_all(&mut connection).await?);
        }
        Ok(columns)
    }
}

impl Reader for SqliteConnection {
    type Row = SqliteRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<SqliteRow>> {
        Ok(self.fetch_all(statement.query()?).await?)
    }
}

impl Connection for SqliteConnection {
    async fn each<E: From<Failure> + Send>(
        &mut self,
        statement: Statement,
        mut found: impl FnMut(&SqliteRow) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let mut rows = Executor::fetch(self, statement.query().map_err(Failure::from)?);
        while let Some(row) = rows.try_next().await.map_err(Failure::from)? {
            found(&row)?;
        }
        Ok(())
    }

    async fn execute(&mut self, statement: Statement) -> Outcome<u64> {
        Ok(Executor::execute(self, statement.query()?).await?.rows_affected())
    }
}

impl Database for SqliteStore {
    const DIALECT: Dialect = Dialect::Sqlite;
    type Readers = Readers;
    type Writer = Turn;
    type Snapshot = SqliteConnection;

    /// Opening is a part of it: a new file is switched to a log, for which SQLite does not wait while another process does so.
    async fn make_tables(&self, layouts: &'static [Layout]) -> Outcome<Migrated> {
        let mut connection = self.writers.open(Kept::Always).await?;
        let migrated = migration::run(Self::DIALECT, &mut connection, layouts).await?;
        connection.close().await?;
        Ok(migrated)
    }

    /// The first statement that reads begins the moment, for as long as the connection has its transaction.
    async fn snapshot(&self) -> Outcome<SqliteConnection> {
        let mut connection = self.writers.open(Kept::Always).await?;
        sqlx::query("BEGIN").execute(&mut connection).await?;
        Ok(connection)
    }

    fn readers(&self) -> Readers {
        self.readers.clone()
    }

    async fn writer(&self, kept: Kept) -> Outcome<Turn> {
        self.writers.turn(kept).await
    }

    async fn run(&self, kept: Kept, statement: Statement) -> Outcome<u64> {
        self.writers.run(kept, statement).await
    }

    fn feed(&self) -> &ChangeFeed {
        &self.feed
    }

    fn publish(&self, node: Uuid) {
        self.feed.publish(node);
    }

    fn waits(&self) -> &Waits {
        &self.writers.waits
    }

    fn location(&self) -> String {
        self.file.display().to_string()
    }

    fn trouble(error: &sqlx::Error) -> Trouble {
        let Some(told) = error.as_database_error() else { return Trouble::Other };
        match told.code() {
            Some(code) if NO_ROOM.contains(&&*code) => Trouble::NoRoom,
            Some(_) if is_locked(error) => Trouble::Locked,
            Some(code) if code.parse::<u32>().is_ok_and(|code| AWAY.contains(&(code & 0xff))) => {
                Trouble::Away
            }
            // SQLite has no code for it, and English words alone.
            _ if EXISTS.iter().any(|words| told.message().contains(words)) => Trouble::Exists,
            _ => Trouble::Other,
        }
    }
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
mod plans;
#[cfg(test)]
mod tests;
