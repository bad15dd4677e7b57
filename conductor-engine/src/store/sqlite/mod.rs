//! The default store: one SQLite file.
//!
//! The file is in WAL mode, so that readers wait for nobody. What the conductor has answered for (records, orders, tokens) is
//! written with `synchronous=FULL` and outlives a power cut. Heartbeats and leases are written with `synchronous=NORMAL`: a
//! power cut may take the last ones back, but never break the file. Agents beat again, and whoever held a lease lost power
//! too. That saves a flush of the disk for each. Writers take [turns](turn), and wait ten seconds for other processes.

mod allocations;
mod boot_traces;
mod catalogue;
mod certificates;
mod conductors;
mod diagnosis;
mod evidence;
mod history;
mod reading;
mod resources;
mod turn;
mod writing;

use crate::store::columns::Column;
use crate::store::{
    Change, ChangeFeed, Changes, Documents, Held, Lease, NodeStore, OrderChange, Outline, Record, Revision,
    Selection, StoreError, Terms, Waited, WriteKind,
};
use async_trait::async_trait;
use farrier_conductor::model::{AgentSession, MacAddress, Node, ProvisionState};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};
use sqlx::{Connection, SqlSafeStr, Sqlite};
use std::fs::OpenOptions;
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::time::sleep;
use turn::{BUSY, Kept, Writer, Writers, is_locked};
use uuid::Uuid;

/// The layout of the tables, from the first to the newest. One that was released is never changed.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "initial", include_str!("../migrations/0001_initial.sql")),
    (2, "lists", include_str!("../migrations/0002_lists.sql")),
];

/// Pause before a migration is tried again that another process carries out.
const MIGRATION_PAUSE: Duration = Duration::from_millis(20);

/// Connections for readers.
const READERS: u32 = 4;

/// Result codes of SQLite for want of room: the file cannot grow, or the index of its journal cannot.
const NO_ROOM: &[&str] = &["13", "4874"];

/// Node records in an SQLite file that only its owner may read, since agent tokens live there.
#[derive(Debug)]
pub struct SqliteStore {
    readers: SqlitePool,
    writers: Writers,
    file: PathBuf,
    feed: ChangeFeed,
}

type Statement = Query<'static, Sqlite, SqliteArguments>;

/// Gives a statement the values of its next parameters.
fn bind(statement: Statement, columns: Vec<Column>) -> Statement {
    columns.into_iter().fold(statement, |statement, column| match column {
        Column::Text(text) => statement.bind(text),
        Column::Time(micros) => statement.bind(micros),
        Column::Flag(flag) => statement.bind(flag),
    })
}

/// What happened to a statement, before it is told to which store.
type Outcome<T> = Result<T, Failure>;

/// Why a statement came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Told(#[from] StoreError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("its tables are those of another version of farrier; use that version, or begin with a new file")]
    Layout,
    #[error("unreadable record: {0}")]
    Record(#[from] serde_json::Error),
    #[error("unreadable identity: {0}")]
    Identity(#[from] uuid::Error),
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

    async fn open_with(
        file: &Path,
        options: SqliteConnectOptions,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let failed = |reason: String| StoreError::Failed { location: file.display().to_string(), reason };
        make_private(file).map_err(|error| failed(error.to_string()))?;
        let options = options.filename(file).foreign_keys(true).journal_mode(SqliteJournalMode::Wal);
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone());
        let store = Self {
            readers,
            writers: Writers::new(options, patience),
            file: file.to_owned(),
            feed: ChangeFeed::default(),
        };
        store.migrate().await.map_err(|failure| store.told(failure))?;
        Ok(store)
    }

    /// The columns of each unique index of a table.
    #[cfg(test)]
    pub(in crate::store) async fn unique_columns(
        &self,
        table: &str,
    ) -> Result<Vec<Vec<String>>, sqlx::Error> {
        let indices = "SELECT name FROM pragma_index_list($1) WHERE \"unique\" ORDER BY seq";
        let names: Vec<String> =
            sqlx::query_scalar(indices).bind(table.to_owned()).fetch_all(&self.readers).await?;
        let mut columns = Vec::new();
        for name in names {
            let of_index = "SELECT name FROM pragma_index_info($1) ORDER BY seqno";
            columns.push(sqlx::query_scalar(of_index).bind(name).fetch_all(&self.readers).await?);
        }
        Ok(columns)
    }

    async fn migrate(&self) -> Outcome<()> {
        let migrations = MIGRATIONS.iter().map(|(version, name, statements)| {
            let statements = (*statements).into_sql_str();
            Migration::new(*version, (*name).into(), MigrationType::Simple, statements, false)
        });
        let migrator = Migrator::with_migrations(migrations.collect());
        let start = Instant::now();
        loop {
            match self.make_tables(&migrator).await {
                // Another conductor makes the tables at the same time. What it has made is found the next time.
                Err(failure) if is_of_another(&failure) && start.elapsed() < BUSY => {
                    sleep(MIGRATION_PAUSE).await;
                }
                made => return made,
            }
        }
    }

    /// Opening is a part of it: a new file is switched to a log, for which SQLite does not wait while another process does so.
    async fn make_tables(&self, migrator: &Migrator) -> Outcome<()> {
        let mut connection = self.writers.open(Kept::Always).await?;
        // `run` does the same, and its future cannot be spawned.
        match migrator.run_direct(None, &mut connection, false).await {
            Ok(()) => Ok(connection.close().await?),
            Err(MigrateError::VersionMismatch(_) | MigrateError::VersionMissing(_)) => Err(Failure::Layout),
            Err(error) => Err(Failure::Database(error.into())),
        }
    }

    /// A failure, told with the name of this store.
    fn told(&self, failure: Failure) -> StoreError {
        let location = self.file.display().to_string();
        match failure {
            Failure::Told(error) => error,
            Failure::Database(error) if has_no_room(&error) => StoreError::Full { location },
            Failure::Database(error) if is_locked(&error) => StoreError::Busy { location },
            failure => StoreError::Failed { location, reason: failure.to_string() },
        }
    }

    /// A turn to write, of which nothing stays that is not committed.
    async fn writer(&self, kept: Kept) -> Outcome<Writer<'_>> {
        self.writers.turn(kept).await
    }
}

/// Whether a migration failed since another process carries it out.
fn is_of_another(failure: &Failure) -> bool {
    let Failure::Database(error) = failure else { return false };
    let error = match error {
        sqlx::Error::Migrate(error) => match &**error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error,
            _ => return false,
        },
        error => error,
    };
    is_locked(error)
        || error.as_database_error().is_some_and(|error| error.message().contains("already exists"))
}

fn has_no_room(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| NO_ROOM.contains(&&*code))
}

#[async_trait]
impl NodeStore for SqliteStore {
    fn changed(&self) -> Changes {
        self.feed.changes()
    }

    fn waited(&self, kind: WriteKind) -> Waited {
        self.writers.waits.of(kind)
    }

    async fn create(&self, node: &Node) -> Result<(), StoreError> {
        let created = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::insert(&mut writer.connection, node, &AgentSession::default()).await?;
            writer.commit().await
        };
        created.await.map_err(|failure| self.told(failure))
    }

    async fn get(&self, uuid: Uuid) -> Result<Option<Record>, StoreError> {
        reading::record(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn by_name(&self, name: &str) -> Result<Option<Record>, StoreError> {
        reading::record_by_name(&self.readers, name).await.map_err(|failure| self.told(failure))
    }

    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError> {
        reading::owners(&self.readers, addresses).await.map_err(|failure| self.told(failure))
    }

    async fn outlines(&self, selection: &Selection) -> Result<Vec<Outline>, StoreError> {
        reading::outlines(&self.readers, selection).await.map_err(|failure| self.told(failure))
    }

    async fn documents(&self, selection: &Selection) -> Result<Vec<(Outline, Documents)>, StoreError> {
        reading::documents(&self.readers, selection).await.map_err(|failure| self.told(failure))
    }

    async fn records(&self, selection: &Selection) -> Result<Vec<Record>, StoreError> {
        reading::records(&self.readers, selection).await.map_err(|failure| self.told(failure))
    }

    async fn identities(&self, selection: &Selection) -> Result<Vec<Uuid>, StoreError> {
        reading::identities(&self.readers, selection).await.map_err(|failure| self.told(failure))
    }

    async fn revision(&self, uuid: Uuid) -> Result<Option<Revision>, StoreError> {
        reading::revision(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn at_bmc(&self, addresses: &[IpAddr]) -> Result<Vec<Uuid>, StoreError> {
        reading::at_bmc(&self.readers, addresses).await.map_err(|failure| self.told(failure))
    }

    async fn shards(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        reading::shards(&self.readers).await.map_err(|failure| self.told(failure))
    }

    async fn provision_states(&self) -> Result<Vec<(ProvisionState, u64)>, StoreError> {
        reading::provision_states(&self.readers).await.map_err(|failure| self.told(failure))
    }

    async fn held(&self) -> Result<Vec<Held>, StoreError> {
        reading::held(&self.readers).await.map_err(|failure| self.told(failure))
    }

    async fn unattended(&self, now: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        reading::unattended(&self.readers, now).await.map_err(|failure| self.told(failure))
    }

    async fn config_drive(&self, uuid: Uuid) -> Result<Option<String>, StoreError> {
        reading::config_drive(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn take(&self, uuid: Uuid, terms: &Terms<'_>) -> Result<(Lease, Record), StoreError> {
        let taken = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            let lease = writing::take(&mut writer.connection, uuid, terms).await?;
            let record = reading::record(&mut writer.connection, uuid).await?;
            writer.commit().await?;
            Ok((lease, record.ok_or(StoreError::Gone(uuid))?))
        };
        taken.await.map_err(|failure| self.told(failure))
    }

    async fn renew(&self, lease: &Lease, expires_at: OffsetDateTime) -> Result<(), StoreError> {
        let renewed = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            writing::renew(&mut writer.connection, lease, expires_at).await?;
            writer.commit().await
        };
        renewed.await.map_err(|failure| self.told(failure))
    }

    async fn renew_all(&self, leases: &[Lease], expires_at: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        let renewed = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            let renewed = writing::renew_all(&mut writer.connection, leases, expires_at).await?;
            writer.commit().await?;
            Ok(renewed)
        };
        renewed.await.map_err(|failure| self.told(failure))
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let released = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            writing::release(&mut writer.connection, lease).await?;
            writer.commit().await
        };
        released.await.map_err(|failure| self.told(failure))
    }

    async fn expire(&self, held: &Held) -> Result<bool, StoreError> {
        let expired = async {
            let mut writer = self.writer(Kept::Always).await?;
            let is_expired = writing::expire(&mut writer.connection, held).await?;
            writer.commit().await?;
            Ok(is_expired)
        };
        expired.await.map_err(|failure| self.told(failure))
    }

    async fn expire_all(&self, holder: &str) -> Result<(), StoreError> {
        let released = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::expire_all(&mut writer.connection, holder).await?;
            writer.commit().await
        };
        released.await.map_err(|failure| self.told(failure))
    }

    async fn write(&self, lease: &Lease, change: &Change<'_>) -> Result<(), StoreError> {
        let written = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::write(&mut writer.connection, lease, change).await?;
            writer.commit().await
        };
        written.await.map_err(|failure| self.told(failure))?;
        if let OrderChange::Put(_) = change.order {
            self.feed.publish(lease.node);
        }
        Ok(())
    }

    async fn delete(&self, lease: &Lease) -> Result<(), StoreError> {
        let deleted = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::delete(&mut writer.connection, lease).await?;
            writer.commit().await
        };
        deleted.await.map_err(|failure| self.told(failure))
    }

    async fn issue_token(&self, seen: &Record, token: &str, now: OffsetDateTime) -> Result<bool, StoreError> {
        let issued = async {
            let mut writer = self.writer(Kept::Always).await?;
            let issued = writing::issue_token(&mut writer.connection, seen, token, now).await?;
            match issued {
                true => writer.commit().await?,
                false => writer.roll_back().await?,
            }
            Ok(issued)
        };
        issued.await.map_err(|failure| self.told(failure))
    }

    async fn hear(&self, uuid: Uuid, heard: &AgentSession) -> Result<bool, StoreError> {
        let heard = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            let is_heard = writing::hear(&mut writer.connection, uuid, heard).await?;
            writer.commit().await?;
            Ok(is_heard)
        };
        let is_heard = heard.await.map_err(|failure| self.told(failure))?;
        if is_heard {
            self.feed.publish(uuid);
        }
        Ok(is_heard)
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
