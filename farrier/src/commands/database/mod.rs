//! Commands for the database of a conductor, on the host of the conductor.

mod backup;
mod migrate;
mod transfer;

pub(crate) use backup::Backup;
pub(crate) use migrate::Migrate;
pub(crate) use transfer::{Export, Import};

use crate::failure::{FILE_FAILED, coded};
use crate::state::StateDir;
use crate::state::database::{Database, DatabaseOption};
use crate::state::private_file::NewFile;
use anyhow::Context;
use clap::Args;
use std::path::Path;

/// The database that a command is for.
#[derive(Debug, Args)]
pub(crate) struct OfDatabase {
    #[command(flatten)]
    database: DatabaseOption,
    #[command(flatten)]
    state_dir: StateDir,
}

impl OfDatabase {
    fn database(self) -> Database {
        self.database.database(self.state_dir.path())
    }
}

/// Begins a file that only its owner reads, and that must not exist.
fn begin(file: &Path) -> anyhow::Result<NewFile<'_>> {
    match file.exists() {
        true => Err(exists(file)),
        false => NewFile::begin(file).with_context(|| format!("file {} cannot be written", file.display())),
    }
}

/// Gives a file its name once it is whole.
fn place(new: NewFile<'_>, file: &Path) -> anyhow::Result<()> {
    match new.create().with_context(|| format!("file {} cannot be written", file.display()))? {
        true => Ok(()),
        false => Err(exists(file)),
    }
}

fn exists(file: &Path) -> anyhow::Error {
    coded(FILE_FAILED, format!("file {} exists; choose another name", file.display()))
}
