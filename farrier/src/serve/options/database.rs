//! The database of `farrier serve`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use farrier_engine::store::postgres::PostgresStore;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Store, StoreError};
use std::path::Path;
use std::sync::Arc;

/// How the URL of a PostgreSQL database begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The SQLite file in the state directory, where `--database` is not set.
const FILE: &str = "nodes.sqlite";

/// The database of a conductor.
#[derive(Debug, Args)]
pub(crate) struct Database {
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

impl Database {
    /// Opens the database, and brings its tables to the newest layout.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when it cannot be opened, or has tables of another version.
    pub(crate) async fn open(self, state_dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self.database {
            Some(url) if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) => {
                Arc::new(PostgresStore::open(&url).await?)
            }
            Some(file) => Arc::new(SqliteStore::open(Path::new(&file)).await?),
            None => Arc::new(SqliteStore::open(&state_dir.join(FILE)).await?),
        })
    }
}
