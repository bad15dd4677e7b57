//! Moves all records from one database to another: an export is read from either kind of database and imported into either.
//!
//! # The file
//!
//! Lines of JSON in UTF-8, in this order:
//!
//! 1. `{"format": "farrier-export", "version": 1, "layout": 3, "farrier": "0.1.0"}`: the version of the format, and the layout
//!    of the tables.
//! 2. For each table `{"table": "nodes", "columns": ["uuid", …]}`, and then one line for each row: the values of these columns, as
//!    a list of texts, numbers, flags and `null`. Times are microseconds since 1970, and documents are texts, byte for byte
//!    as the database keeps them. Rows come in the order of their keys, so databases with equal records have equal exports.
//! 3. `{"rows": 12345, "sha256": "…"}`: the number of rows, and the SHA-256 of all lines before.
//!
//! Tables and columns are those that the database has. Only the records of running conductors are left out, which are
//! of one site. Both directions hold one row, or one batch of rows, in memory.

mod catalogue;
mod export;
mod import;

use crate::store::sql::migration::{LAYOUTS, Migrated, until_made};
use crate::store::sql::{Database, Failure};
use crate::store::{Store, StoreError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};

/// The name of the format.
const FORMAT: &str = "farrier-export";

/// Its version.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    layout: i64,
    farrier: String,
}

/// The line before the rows of a table.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TableHeader {
    table: String,
    columns: Vec<String>,
}

/// The last line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Footer {
    rows: u64,
    sha256: String,
}

/// Records could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rows of a table could not be read or written.
    #[error("table {table}: {reason}")]
    Table {
        /// The table.
        table: String,
        /// What the database said.
        reason: String,
    },
    /// The file could not be read or written.
    #[error("the export cannot be read or written: {0}")]
    File(#[from] std::io::Error),
    /// The file is no export, is damaged, or its end is missing.
    #[error("line {line} of the export: {reason}; nothing was imported, export the database again")]
    Damaged {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The file comes from a later version of farrier.
    #[error(
        "the export has layout {found} of the tables, and this farrier has layout {own}; import it with the version \
         that exported it, or a later one"
    )]
    LaterLayout {
        /// The layout of the file.
        found: i64,
        /// The newest layout of this program.
        own: i64,
    },
    /// The database has records already.
    #[error("database {location} is not empty: table {table} has records; import into a new database")]
    NotEmpty {
        /// The file or server.
        location: String,
        /// A table that has any.
        table: String,
    },
    /// A conductor uses the database.
    #[error("conductor {conductor} uses database {location}; stop it first, and import into a new database")]
    InUse {
        /// The file or server.
        location: String,
        /// Its name.
        conductor: String,
    },
}

/// A store in a database, whose layout is brought to the newest and whose records are moved to another database.
#[async_trait]
pub trait SqlStore: Store {
    /// Carries out the migrations that the database has not.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the tables are of another program, or of a version with which this one cannot share them.
    async fn migrate(&self) -> Result<Migrated, StoreError>;

    /// Writes all records as they are at one moment, also while conductors run, and returns the number of rows. Writing
    /// blocks the task.
    ///
    /// # Errors
    ///
    /// [`TransferError`]: nothing is left out.
    async fn export(&self, to: &mut (dyn Write + Send)) -> Result<u64, TransferError>;

    /// Writes the records of an export into a database without records, all or none, and returns the number of rows. Makes
    /// the tables where there are none, and brings them to the newest layout. Reading blocks the task.
    ///
    /// # Errors
    ///
    /// [`TransferError`].
    async fn import(&self, from: &mut (dyn BufRead + Send)) -> Result<u64, TransferError>;
}

#[async_trait]
impl<D: Database> SqlStore for D {
    async fn migrate(&self) -> Result<Migrated, StoreError> {
        until_made(self, LAYOUTS).await.map_err(|failure| self.told(failure))
    }

    async fn export(&self, to: &mut (dyn Write + Send)) -> Result<u64, TransferError> {
        let mut snapshot = self.snapshot().await.map_err(|failure| self.told(failure))?;
        export::export(self, &mut snapshot, to).await
    }

    async fn import(&self, from: &mut (dyn BufRead + Send)) -> Result<u64, TransferError> {
        let rows = import::import(self, from).await?;
        self.migrate().await?;
        Ok(rows)
    }
}

/// A failed statement about a table.
fn of_table(database: &impl Database, table: &str, failure: Failure) -> TransferError {
    match database.told(failure) {
        StoreError::Failed { reason, .. } => TransferError::Table { table: table.to_owned(), reason },
        error => error.into(),
    }
}

#[cfg(feature = "sqlite")]
#[cfg(test)]
pub(in crate::store) mod tests;
