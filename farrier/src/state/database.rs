//! The database of a conductor.

use crate::failure::{FILE_FAILED, coded};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use farrier_engine::store::postgres::PostgresStore;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{SqlStore, StoreError};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the URL of a PostgreSQL database begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The SQLite file in the state directory, where `--database` is not set.
const FILE: &str = "nodes.sqlite";

/// The option for the database of a conductor.
#[derive(Debug, Args)]
pub(crate) struct DatabaseOption {
    /// SQLite database file, or the URL of a PostgreSQL database: postgres://USER@HOST/NAME?sslmode=verify-full
    /// [default: STATE_DIR/nodes.sqlite]. Set the password in the environment variable PGPASSWORD or in a password
    /// file (PGPASSFILE).
    #[arg(
        long,
        value_name = "FILE|URL",
        env = "FARRIER_DATABASE",
        hide_env_values = true,
        value_parser = NonEmptyStringValueParser::new()
    )]
    database: Option<String>,
}

/// Where a database is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// In an SQLite file.
    File(PathBuf),
    /// On a PostgreSQL server, with its URL.
    Server(String),
}

impl DatabaseOption {
    /// Where the database is.
    pub(crate) fn database(self, state_dir: &Path) -> Database {
        match self.database {
            Some(url) if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) => Database::Server(url),
            Some(file) => Database::File(file.into()),
            None => Database::File(state_dir.join(FILE)),
        }
    }
}

impl Database {
    /// Opens it, and leaves its tables as they are. A file is created.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when it cannot be opened.
    pub(crate) async fn connect(&self) -> Result<Arc<dyn SqlStore>, StoreError> {
        Ok(match self {
            Self::File(file) => Arc::new(SqliteStore::connect(file)?),
            Self::Server(url) => Arc::new(PostgresStore::connect(url).await?),
        })
    }

    /// Opens it, and brings its tables to the newest layout.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when it cannot be opened, or this version cannot use its tables.
    pub(crate) async fn open(&self) -> Result<Arc<dyn SqlStore>, StoreError> {
        let store = self.connect().await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Refuses a file that does not exist, which would be created.
    pub(crate) fn check_exists(&self) -> anyhow::Result<()> {
        match self {
            Self::File(file) if !file.exists() => {
                Err(coded(FILE_FAILED, format!("database {self} does not exist; set --database")))
            }
            Self::File(_) | Self::Server(_) => Ok(()),
        }
    }
}

/// The file, or the kind of the server, whose URL may have a password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Server(_) => f.write_str("PostgreSQL"),
        }
    }
}
