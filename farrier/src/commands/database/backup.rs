//! `farrier backup`.

use super::{OfDatabase, begin, place};
use crate::failure::{INVALID_OPTION, coded};
use crate::state::database::Database;
use clap::Args;
use farrier_engine::store::sqlite::SqliteStore;
use std::path::PathBuf;

/// Options of `farrier backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    database: OfDatabase,
    /// File of the backup. It must not exist.
    file: PathBuf,
}

impl Backup {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let database = self.database.database();
        let Database::File(source) = &database else {
            let text = "farrier backup is for SQLite; use pg_dump, or farrier export";
            return Err(coded(INVALID_OPTION, text));
        };
        database.check_exists()?;
        let new = begin(&self.file)?;
        SqliteStore::connect(source)?.backup(new.path()).await?;
        place(new, &self.file)?;
        println!("{}", self.file.display());
        Ok(())
    }
}
