//! `farrier export` and `farrier import`.

use super::{OfDatabase, begin, place};
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

/// What stands for standard output or input.
const STANDARD: &str = "-";

/// Options of `farrier export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    database: OfDatabase,
    /// File of the export, which must not exist; - is the standard output.
    file: PathBuf,
}

/// Options of `farrier import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    database: OfDatabase,
    /// File that `farrier export` wrote; - is the standard input.
    file: PathBuf,
}

impl Export {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let database = self.database.database();
        database.check_exists()?;
        let store = database.connect().await?;
        if self.file == Path::new(STANDARD) {
            store.export(&mut BufWriter::new(io::stdout())).await?;
            return Ok(());
        }
        let mut new = begin(&self.file)?;
        let rows = store.export(&mut BufWriter::new(new.file())).await?;
        place(new, &self.file)?;
        println!("{}: {rows} rows", self.file.display());
        Ok(())
    }
}

impl Import {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut from: Box<dyn BufRead + Send> = match self.file == Path::new(STANDARD) {
            true => Box::new(BufReader::new(io::stdin())),
            false => {
                let file = File::open(&self.file);
                let unread = || format!("the export {} cannot be read", self.file.display());
                Box::new(BufReader::new(file.with_context(unread)?))
            }
        };
        let store = self.database.database().connect().await?;
        let rows = store.import(&mut from).await?;
        println!("{rows} rows imported");
        Ok(())
    }
}
