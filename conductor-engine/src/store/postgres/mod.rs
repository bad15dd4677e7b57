//! The store for several conductors: a PostgreSQL database, 13 or later.
//!
//! Every conductor has a pool of connections. A read is one statement, a write one transaction, and no session keeps a lock.
//! But a session keeps the statements that it prepares and the timeouts below, so no pooler may stand between that gives each
//! transaction another connection (PgBouncer with `pool_mode = transaction`). Everything that is written is
//! written through a power cut of the server (`synchronous_commit` as the server has it), leases too: others of the same
//! database go on, and must not find an older one.
//!
//! Every wait ends: for a connection and for its opening after ten seconds, for a lock after ten (`lock_timeout`), for a
//! statement after thirty (`statement_timeout`), and for a server that says nothing at all after forty.

mod hints;

use crate::store::sql::migration::{self, LAYOUTS, Layout, Migrated};
use crate::store::sql::statement::{Connection, Reader, Statement};
use crate::store::sql::statements::Dialect;
use crate::store::sql::{Database, Failure, Kept, Outcome, Trouble, Writer};
use crate::store::{ChangeFeed, StoreError, Waits};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{Executor, Postgres, Transaction};
use std::str::FromStr;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use uuid::Uuid;

/// Most connections of a conductor, beside the one that listens.
const CONNECTIONS: u32 = 10;

/// How long a connection is waited for, whether it is opened or another task has it.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// How long the server waits for a lock and for a statement, and for the next statement of a transaction.
const SERVER_TIMEOUTS: [(&str, &str); 3] =
    [("lock_timeout", "10s"), ("statement_timeout", "30s"), ("idle_in_transaction_session_timeout", "60s")];

/// How long a statement may take when the server does not end it, since nothing of it arrives.
const SILENCE: Duration = Duration::from_secs(40);

/// Classes and codes of errors for want of room: the disk of the server is full.
const NO_ROOM: &[&str] = &["53100"];

/// Codes of the errors that a table or a column exists. The words are in the language of the server.
const EXISTS: &[&str] = &["42P07", "42701"];

/// Codes of errors after which the same may succeed: a lock was not to be had, two transactions waited for each other or
/// wrote the same, or a statement took too long.
const TRY_AGAIN: &[&str] = &["55P03", "40P01", "40001", "57014"];

/// Codes of errors of a server that is not there now: it starts or stops, has too many connections, or is a replica that nobody
/// has promoted yet.
const AWAY: &[&str] = &["57P01", "57P02", "57P03", "53300", "25006"];

/// The class of errors of a connection.
const CONNECTION: &str = "08";

/// Node records in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    pool: PgPool,
    location: String,
    feed: ChangeFeed,
    hints: hints::Hints,
    waits: Waits,
}

impl PostgresStore {
    /// Opens the database of a URL such as `postgres://farrier@db.example/farrier?sslmode=verify-full`, makes its tables where
    /// there are none, and brings them to the newest layout.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the URL cannot be read, the server cannot be reached or refuses, or the tables are of
    /// another version.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let store = Self::connect(url)?;
        migration::until_made(&store, LAYOUTS).await.map_err(|failure| store.told(failure))?;
        Ok(store)
    }

    /// Opens the database, and leaves its tables as they are. The server is asked when something is read or written. Needs a
    /// runtime.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the URL cannot be read.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| StoreError::Failed {
            // The URL may have a password.
            location: "postgres://".to_owned(),
            reason: format!("unreadable URL: {error}"),
        })?;
        Ok(Self::with(options))
    }

    fn with(options: PgConnectOptions) -> Self {
        let options = options.application_name("farrier").options(SERVER_TIMEOUTS);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECT_PATIENCE)
            .connect_lazy_with(options.clone());
        let feed = ChangeFeed::default();
        let hints = hints::Hints::start(pool.clone(), options.clone(), feed.clone());
        Self { pool, location: location(&options), feed, hints, waits: Waits::default() }
    }
}

/// The server and the database, without user and password.
fn location(options: &PgConnectOptions) -> String {
    let socket = options.get_socket().map(|socket| socket.display().to_string());
    let host = socket.unwrap_or_else(|| options.get_host().to_owned());
    let database = options.get_database().unwrap_or(options.get_username());
    format!("postgres://{host}:{}/{database}", options.get_port())
}

/// What the server answers in time.
async fn in_time<T>(answer: impl Future<Output = Result<T, sqlx::Error>> + Send) -> Outcome<T> {
    match timeout(SILENCE, answer).await {
        Ok(Err(sqlx::Error::PoolTimedOut)) => Err(Failure::NoConnection(CONNECT_PATIENCE.as_secs())),
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::Silent(SILENCE.as_secs())),
    }
}

impl Reader for PgPool {
    type Row = PgRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<PgRow>> {
        in_time((&*self).fetch_all(statement.search().query()?)).await
    }
}

impl Reader for PgConnection {
    type Row = PgRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<PgRow>> {
        in_time(self.fetch_all(statement.query()?)).await
    }
}

impl Connection for PgConnection {
    async fn each<E: From<Failure> + Send>(
        &mut self,
        statement: Statement,
        mut found: impl FnMut(&PgRow) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let mut rows = Executor::fetch(self, statement.query().map_err(Failure::from)?);
        while let Some(row) = in_time(rows.try_next()).await? {
            found(&row)?;
        }
        Ok(())
    }

    async fn execute(&mut self, statement: Statement) -> Outcome<u64> {
        Ok(in_time(Executor::execute(self, statement.query()?)).await?.rows_affected())
    }
}

impl Writer for Transaction<'static, Postgres> {
    type Connection = PgConnection;

    fn connection(&mut self) -> &mut PgConnection {
        self
    }

    async fn commit(self) -> Outcome<()> {
        in_time(Transaction::commit(self)).await
    }

    async fn roll_back(self) -> Outcome<()> {
        in_time(self.rollback()).await
    }
}

impl Database for PostgresStore {
    const DIALECT: Dialect = Dialect::Postgres;
    type Readers = PgPool;
    type Writer = Transaction<'static, Postgres>;
    type Snapshot = Transaction<'static, Postgres>;

    /// All of it is one transaction: two processes that begin at once do not see half of each other's.
    async fn make_tables(&self, layouts: &'static [Layout]) -> Outcome<Migrated> {
        let mut transaction = in_time(self.pool.begin()).await?;
        let migrated = migration::run(Self::DIALECT, &mut *transaction, layouts).await?;
        in_time(transaction.commit()).await?;
        Ok(migrated)
    }

    async fn snapshot(&self) -> Outcome<Transaction<'static, Postgres>> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = in_time(self.pool.begin_with(begin)).await?;
        // A table may be read for as long as its reader needs.
        in_time(Executor::execute(&mut *transaction, "SET LOCAL statement_timeout = 0")).await?;
        Ok(transaction)
    }

    fn readers(&self) -> PgPool {
        self.pool.clone()
    }

    async fn writer(&self, kept: Kept) -> Outcome<Transaction<'static, Postgres>> {
        let start = Instant::now();
        let transaction = in_time(self.pool.begin()).await?;
        self.waits.note(kept.into(), start.elapsed());
        Ok(transaction)
    }

    async fn run(&self, kept: Kept, statement: Statement) -> Outcome<u64> {
        let start = Instant::now();
        let mut connection = in_time(self.pool.acquire()).await?;
        self.waits.note(kept.into(), start.elapsed());
        Connection::execute(&mut *connection, statement).await
    }

    fn feed(&self) -> &ChangeFeed {
        &self.feed
    }

    fn publish(&self, node: Uuid) {
        self.feed.publish(node);
        self.hints.tell(node);
    }

    fn waits(&self) -> &Waits {
        &self.waits
    }

    fn location(&self) -> String {
        self.location.clone()
    }

    fn trouble(error: &sqlx::Error) -> Trouble {
        if let sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed = error
        {
            return Trouble::Away;
        }
        let code = error.as_database_error().and_then(|error| error.code());
        match code.as_deref() {
            Some(code) if AWAY.contains(&code) || code.starts_with(CONNECTION) => Trouble::Away,
            Some(code) if NO_ROOM.contains(&code) => Trouble::NoRoom,
            Some(code) if TRY_AGAIN.contains(&code) => Trouble::Locked,
            Some(code) if EXISTS.contains(&code) => Trouble::Exists,
            _ => Trouble::Other,
        }
    }
}

#[cfg(test)]
mod plans;
#[cfg(test)]
mod tests;
#[cfg(feature = "sqlite")]
#[cfg(test)]
mod transfer;
