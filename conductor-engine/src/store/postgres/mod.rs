//! The store for several conductors: a PostgreSQL database, 13 or later.
//!
//! Every conductor has a pool of connections. A read is one statement, a write one transaction, and no session keeps a lock. A
//! pooler may stand between that gives each transaction another connection ([`session`]). Everything that is written is
//! written through a power cut of the server (`synchronous_commit` as the server has it), leases too: others of the same
//! database go on, and must not find an older one.
//!
//! Every wait ends: for a connection and for its opening after ten seconds, for a lock after ten (`lock_timeout`), for a
//! statement after thirty (`statement_timeout`), and for a server that says nothing at all after forty.

mod hints;
mod session;

use crate::store::sql::migration::{self, LAYOUTS, Layout, Migrated};
use crate::store::sql::statement::{Connection, Statement};
use crate::store::sql::statements::Dialect;
use crate::store::sql::{Database, Failure, Kept, Outcome, Trouble, Writer, told};
use crate::store::{ChangeFeed, StoreError, Waits};
use session::{Readers, Route, Session};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
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
    route: Route,
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
        let store = Self::connect(url).await?;
        migration::until_made(&store, LAYOUTS).await.map_err(|failure| store.told(failure))?;
        Ok(store)
    }

    /// Opens the database, and leaves its tables as they are.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the URL cannot be read or the server refuses, [`StoreError::Unreachable`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| StoreError::Failed {
            // The URL may have a password.
            location: "postgres://".to_owned(),
            reason: format!("unreadable URL: {error}"),
        })?;
        let location = location(&options);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECT_PATIENCE)
            .connect_lazy_with(options.clone());
        let route = Route::find(&pool, &options).await;
        let route = route.map_err(|failure| told::<Self>(failure, location.clone()))?;
        let feed = ChangeFeed::default();
        // A pooler has no connection that could listen.
        let listener = (route == Route::Direct).then(|| route.options(&options));
        let hints = hints::Hints::start(pool.clone(), listener, feed.clone());
        Ok(Self { pool, route, location, feed, hints, waits: Waits::default() })
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

impl Database for PostgresStore {
    const DIALECT: Dialect = Dialect::Postgres;
    type Readers = Readers;
    type Writer = Session;
    type Snapshot = Session;

    async fn make_tables(&self, layouts: &'static [Layout]) -> Outcome<Migrated> {
        self.route.migrate(&self.pool, layouts).await
    }

    async fn snapshot(&self) -> Outcome<Session> {
        let kind = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut session = self.route.begin(&self.pool, kind).await?;
        // A table may be read for as long as its reader needs.
        session.run("SET LOCAL statement_timeout = 0").await?;
        Ok(session)
    }

    fn readers(&self) -> Readers {
        Readers { pool: self.pool.clone(), route: self.route }
    }

    async fn writer(&self, kept: Kept) -> Outcome<Session> {
        let start = Instant::now();
        let session = self.route.begin(&self.pool, "BEGIN").await?;
        self.waits.note(kept.into(), start.elapsed());
        Ok(session)
    }

    async fn run(&self, kept: Kept, statement: Statement) -> Outcome<u64> {
        match self.route {
            Route::Direct => {
                let start = Instant::now();
                let mut connection = in_time(self.pool.acquire()).await?;
                self.waits.note(kept.into(), start.elapsed());
                Connection::execute(&mut *connection, statement).await
            }
            Route::Pooler => {
                let mut session = self.writer(kept).await?;
                let rows = session.execute(statement).await?;
                session.commit().await?;
                Ok(rows)
            }
        }
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
