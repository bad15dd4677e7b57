//! `farrier logs`: what ramdisks have logged in which an operation failed.

use crate::client::NodeApi;
use crate::failure::{NOT_AVAILABLE, coded};
use crate::state::private_file;
use crate::view::table::table;
use crate::view::times_of_day::text;
use anyhow::Context;
use clap::Args;
use farrier_engine::KeptLog;
use std::path::{Path, PathBuf};

/// Options of `farrier logs`.
#[derive(Debug, Args)]
#[group(id = "logged")]
pub(crate) struct Logs {
    /// Name or UUID of the node.
    node: String,
    /// Fetch one archive: its name, or latest.
    #[arg(long, value_name = "NAME|latest")]
    fetch: Option<String>,
    /// Output file, readable by its owner [default: the name of the archive, in the current folder].
    #[arg(long, value_name = "FILE", requires = "fetch")]
    output: Option<PathBuf>,
    /// List the archives as JSON.
    #[arg(long, conflicts_with = "fetch")]
    json: bool,
}

impl Logs {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let kept = api.logs(&self.node).await?;
        let Some(wanted) = &self.fetch else {
            match self.json {
                true => println!("{}", serde_json::to_string_pretty(&kept)?),
                false => {
                    let row =
                        |log: &KeptLog| [text(log.kept_at), log.size_bytes.to_string(), log.name.clone()];
                    print!("{}", table(["Kept At", "Bytes", "Name"], kept.iter().map(row)));
                }
            }
            return Ok(());
        };
        let found = match wanted.as_str() {
            "latest" => kept.last(),
            name => kept.iter().find(|log| log.name == name),
        };
        let Some(log) = found else {
            let text = format!("node {} has no logs with the name {wanted:?}", self.node);
            return Err(coded(NOT_AVAILABLE, text));
        };
        let name = Path::new(&log.name).file_name().unwrap_or_default();
        let file = self.output.clone().unwrap_or_else(|| PathBuf::from(name));
        let archive = api.log(&self.node, &log.name).await?;
        private_file::write(&file, &archive)
            .with_context(|| format!("{} cannot be written", file.display()))?;
        println!("{}", file.display());
        Ok(())
    }
}
