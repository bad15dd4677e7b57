//! `cargo xtask strangers`: what clients without credentials, or with those of one agent, and services that are asked, can
//! take from a conductor, an agent and an operator's command.

mod report;
mod undone;

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use farrier_tests::strangers::{Extent, Programs, Row, shares, structures};

pub use self::report::StrangersReport;
use crate::book::page;
use crate::host::command::run;
use crate::host::workspace::{Workspace, cargo, read_json, write_json};

/// Lets strangers take what they can get, and measures the memory of programs and the wait of others.
#[derive(Debug, Args)]
pub struct StrangersArguments {
    /// Runs one shape of JSON and the quick half of the shares only.
    #[arg(long, conflicts_with = "page")]
    quick: bool,
    /// Runs the strangers alone whose JSON is large as values.
    #[arg(long)]
    structures: bool,
    /// Runs those alone that take what clients share.
    #[arg(long, conflicts_with = "structures")]
    shares: bool,
    /// Runs with this farrier in place of one that is built.
    #[arg(long, value_name = "FILE", requires = "agent")]
    conductor: Option<PathBuf>,
    /// Runs with this farrier-agent in place of one that is built.
    #[arg(long, value_name = "FILE", requires = "conductor")]
    agent: Option<PathBuf>,
    /// Writes what was measured as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What --json wrote about a program of before, which the page shows beside it [default: what the page shows now].
    #[arg(long, value_name = "FILE", requires = "page")]
    earlier: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
}

/// Runs the command. A stranger that takes too much is an error.
pub fn strangers(arguments: &StrangersArguments) -> Result<()> {
    let workspace = Workspace::find()?;
    let (farrier, agent) = match (&arguments.conductor, &arguments.agent) {
        (Some(farrier), Some(agent)) => (farrier.clone(), agent.clone()),
        _ => {
            run(cargo().args(["build", "-p", "farrier-agent"]).current_dir(&workspace.root))?;
            (workspace.build_conductor()?, workspace.target.join("debug/farrier-agent"))
        }
    };
    let folder = workspace.cache().join(format!("strangers-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let extent = if arguments.quick { Extent::Quick } else { Extent::Whole };
    let mut rows = Vec::new();
    if !arguments.shares {
        rows.extend(structures(Programs { farrier: &farrier, agent: &agent }, &folder, extent)?);
    }
    if !arguments.structures {
        rows.extend(shares::rows(&farrier, &folder.join("shares"), extent)?);
    }
    fs::remove_dir_all(&folder)?;
    let faults: Vec<_> = rows.iter().filter_map(Row::fault).collect();
    write_json(arguments.json.as_deref(), &rows)?;
    let report = StrangersReport::of(&workspace.root, rows, arguments.earlier.as_deref().map(read_json))?;
    print!("{}", report.tables());
    if arguments.page {
        page::write(&workspace, &report)?;
    }
    match faults[..] {
        [] => Ok(()),
        ref faults => bail!("strangers take too much:\n{}", faults.join("\n")),
    }
}
