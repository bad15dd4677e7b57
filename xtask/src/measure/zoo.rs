//! `cargo xtask zoo`: whatever may live on a disk, wherever it may live, against each step that destroys or keeps.
//!
//! The cells and what judges them are in `tests/tests/zoo`; here that program is built and run, and its report becomes
//! a page of the book.

mod report;
mod undone;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use self::report::Outcome;
pub use self::report::ZooReport;
use crate::book::page;
use crate::host::command::{as_root, run, run_quietly};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, cargo, commit, read_json, write_json};

/// The program, and its test that runs cells.
const PROGRAM: &str = "zoo";
const TEST: &str = "loop_disk_zoo";

/// Tries each step that destroys or keeps on whatever may live on a disk.
#[derive(Debug, Args)]
pub struct ZooArguments {
    /// Only cells that have these words in their names, divided by commas, as in `btrfs,gpt,header-bit`.
    #[arg(long, value_name = "FILTER", conflicts_with = "page")]
    only: Option<String>,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command. A cell that is red is an error.
pub fn zoo(arguments: &ZooArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Disk], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let program = build(&workspace)?;
    let file = workspace.cache().join("zoo.json");
    std::fs::create_dir_all(workspace.cache())?;
    let filter = arguments.only.as_deref().unwrap_or("all");
    let variables = [format!("FARRIER_ZOO={filter}"), format!("FARRIER_ZOO_REPORT={}", file.display())];
    let mut cells = as_root("env");
    cells.args(variables).arg("RUST_BACKTRACE=0").arg(program).args(["--exact", TEST, "--nocapture"]);
    let outcome = run(&mut cells);
    let cells = read_json::<Outcome>(&file).or_else(|error| outcome.and(Err(error)))?;
    let report = ZooReport::of(cells, commit(&workspace.root)?);
    std::fs::remove_file(&file)?;
    println!("{}", report.line());
    write_json(arguments.json.as_deref(), &report)?;
    ensure!(report.red.is_empty(), "{} cells are red", report.red.len());
    if arguments.page { page::write(&workspace, &report) } else { Ok(()) }
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

/// Builds the program with the cells.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["test", "-p", "farrier-tests", "--test", PROGRAM, "--no-run", "--message-format", "json"]);
    let printed = run_quietly(build.current_dir(&workspace.root))?;
    let messages = printed.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages.filter_map(|message| message.executable).next_back().context("cargo built no program with cells")
}
