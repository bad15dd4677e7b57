//! What the stores in SQLite and PostgreSQL have in common, which is nearly all of both.
//!
//! A database ([`Database`]) gives readers, turns to write ([`Writer`]) and its words for what went wrong. All else is
//! written once, for any database:
//!
//! - [`statements`]: the text of each statement, in SQL that both databases read. The one difference is in
//!   [`Dialect`](statements::Dialect).
//! - [`statement`]: a statement with its values, and the rows that it finds. The types of the drivers end there: a column
//!   holds a text, a number or a flag.
//! - [`tables`]: what is written to tables and read from them, each function within a transaction of its caller.
//! - `nodes`, `evidence`, `catalogue`, `conductors`: the traits of a store, for every database.
//! - [`migration`]: the layout of the tables.
//! - [`transfer`]: exports and imports of all records.
//! - [`constraints`]: what a record has that another one has already.
//!
//! Nothing relies on one writer at a time: PostgreSQL has many. A statement that writes what was read before says in its
//! conditions what it was, or follows the row of the node, which [`NodeStore::write`](super::NodeStore::write) locks first.

mod catalogue;
mod conductors;
pub(super) mod constraints;
mod evidence;
pub(super) mod migration;
mod nodes;
pub(super) mod statement;
pub(super) mod statements;
mod tables;
pub(super) mod transfer;

use crate::store::{ChangeFeed, StoreError, Waits, WriteKind};
use migration::{Layout, Migrated};
use statement::{Connection, Reader, Statement};
use statements::Dialect;
use uuid::Uuid;

/// How well a write is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Through a power cut.
    Always,
    /// Until a power cut, where the database keeps it less well for less work.
    WhilePowered,
}

impl From<Kept> for WriteKind {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Always => Self::Record,
            Kept::WhilePowered => Self::Mailbox,
        }
    }
}

/// What a database has of its own.
pub trait Database: Send + Sync + 'static {
    /// Its SQL.
    const DIALECT: Dialect;
    /// Finds rows without a turn.
    type Readers: Reader;
    /// A turn to write.
    type Writer: Writer;
    /// A connection whose statements see all tables as they are at one moment.
    type Snapshot: Connection;

    /// Carries out the migrations that the database has not ([`migration::run`]), in a transaction or connection of its own.
    fn make_tables(&self, layouts: &'static [Layout]) -> impl Future<Output = Outcome<Migrated>> + Send;

    /// Finds rows without a turn.
    fn readers(&self) -> Self::Readers;

    /// Sees all tables as they are now, and writes nothing. No writer waits for it.
    fn snapshot(&self) -> impl Future<Output = Outcome<Self::Snapshot>> + Send;

    /// Waits for a turn to write.
    fn writer(&self, kept: Kept) -> impl Future<Output = Outcome<Self::Writer>> + Send;

    /// Waits for a turn to write one statement, which is a transaction of its own: nothing begins or commits it. Returns the
    /// number of rows that it wrote.
    fn run(&self, kept: Kept, statement: Statement) -> impl Future<Output = Outcome<u64>> + Send;

    /// Where changes are published.
    fn feed(&self) -> &ChangeFeed;

    /// Publishes that a node has something for its worker.
    fn publish(&self, node: Uuid);

    /// How long writers waited for their turns.
    fn waits(&self) -> &Waits;

    /// The file or server, without secrets.
    fn location(&self) -> String;

    /// What kind of failure an error of the driver is.
    fn trouble(error: &sqlx::Error) -> Trouble;

    /// A failure, with the name of this store.
    fn told(&self, failure: Failure) -> StoreError {
        told::<Self>(failure, self.location())
    }
}

/// A failure, with the name of a store.
pub fn told<D: Database + ?Sized>(failure: Failure, location: String) -> StoreError {
    match failure {
        Failure::Told(error) => error,
        Failure::Database(error) if D::trouble(&error) == Trouble::NoRoom => StoreError::Full { location },
        Failure::Database(error) if D::trouble(&error) == Trouble::Locked => StoreError::Busy { location },
        failure if is_unreachable::<D>(&failure) => {
            StoreError::Unreachable { location, reason: failure.to_string() }
        }
        failure => StoreError::Failed { location, reason: failure.to_string() },
    }
}

/// Whether a statement failed because the database is away.
fn is_unreachable<D: Database + ?Sized>(failure: &Failure) -> bool {
    match failure {
        Failure::Database(error) => D::trouble(error) == Trouble::Away,
        Failure::Silent(_) | Failure::NoConnection(_) | Failure::NoReader(_) => true,
        _ => false,
    }
}

/// What kind of failure an error of a driver is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room.
    NoRoom,
    /// Another process has the rows, or the file, for too long. The same may succeed later.
    Locked,
    /// The table or column exists already.
    Exists,
    /// The database cannot be reached, or lost the connection.
    Away,
    /// Any other.
    Other,
}

/// A turn to write several statements. What is not committed when it ends was never written.
pub trait Writer: Send {
    /// Where its statements run.
    type Connection: Connection;

    /// Where its statements run.
    fn connection(&mut self) -> &mut Self::Connection;

    /// Keeps what was written.
    fn commit(self) -> impl Future<Output = Outcome<()>> + Send;

    /// Forgets what was written.
    fn roll_back(self) -> impl Future<Output = Outcome<()>> + Send;
}

/// The result of a statement.
pub type Outcome<T> = Result<T, Failure>;

/// A failed statement, before the store adds its name.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An error of the store.
    #[error(transparent)]
    Told(#[from] StoreError),
    /// The database or its driver failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The tables are of another program, or of a version before the first release.
    #[error(
        "its tables are those of another version of farrier; use that version, or begin with a new database"
    )]
    Layout,
    /// The tables are of a later version, with which this one cannot share them.
    #[error(
        "its tables have layout {found} of a later version of farrier, and only versions with layout {needed} or later can \
         use them; this one has layout {own}: install a later version"
    )]
    LaterLayout {
        /// The layout of the tables.
        found: i64,
        /// The oldest layout whose programs may use them.
        needed: i64,
        /// The newest layout of this program.
        own: i64,
    },
    /// A column is of a type that no table of farrier has.
    #[error("column {column} has the type {of_type}, which farrier does not use; remove the column")]
    ColumnType {
        /// The table and the column.
        column: String,
        /// The type.
        of_type: String,
    },
    /// A document is damaged.
    #[error("unreadable record: {0}")]
    Record(#[from] serde_json::Error),
    /// An identity is damaged.
    #[error("unreadable identity: {0}")]
    Identity(#[from] uuid::Error),
    /// A copy of the database is not sound, or cannot be written.
    #[error("the backup is not usable: {0}")]
    Backup(String),
    /// The database did not answer in time.
    #[error("no answer within {0} seconds")]
    Silent(u64),
    /// Other tasks had each connection that reads the file.
    #[error("no connection was free to read it within {0} seconds; see whether the disk of the file answers")]
    NoReader(u64),
    /// Another task had each connection, or the server took none.
    #[error(
        "no connection within {0} seconds; see whether the server runs, and whether it takes as many connections as \
         its conductors have"
    )]
    NoConnection(u64),
}
