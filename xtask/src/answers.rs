//! `cargo xtask answers`: one answer of a BMC after the other is a wrong one, in everything that a machine is asked for.
//!
//! The cells and what judges them are in `drivers/tests/redfish/answers`; here that program is run with all recorded BMCs, and
//! its report becomes a page of the book.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::command::run;
use crate::page::machine;
use crate::workspace::{Workspace, cargo, read_json, write_json};

/// The page of the book.
const PAGE: &str = "docs/src/wrong-answers.md";

/// The test that runs the cells, and how it is told to run all of them.
const TEST: &str = "answers::cells::one_answer_is_wrong";
const REPORT: &str = "FARRIER_ANSWERS_REPORT";

/// Has one answer of each recorded BMC be wrong after the other.
#[derive(Debug, Args)]
pub struct AnswersArguments {
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
}

/// What came of it: the name of each cell, and those that are red with the reason.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    seconds: u64,
    cells: Vec<String>,
    red: Vec<(String, String)>,
}

/// Runs the command. A cell that is red is an error.
pub fn answers(arguments: &AnswersArguments) -> Result<()> {
    let workspace = Workspace::find()?;
    std::fs::create_dir_all(workspace.cache())?;
    let file = workspace.cache().join("answers.json");
    let test = ["test", "-p", "farrier-drivers", "--test", "redfish", "--", "--exact", TEST];
    let outcome = run(cargo().args(test).env(REPORT, &file).current_dir(&workspace.root));
    let report: Report = read_json(&file).or_else(|error| outcome.and(Err(error)))?;
    std::fs::remove_file(&file)?;
    for (cell, why) in &report.red {
        println!("{cell}: {why}");
    }
    println!("{}", report.line());
    write_json(arguments.json.as_deref(), &report)?;
    ensure!(report.red.is_empty(), "{} cells are red", report.red.len());
    if arguments.page { workspace.write_page(PAGE, &report.page()?) } else { Ok(()) }
}

impl Report {
    fn line(&self) -> String {
        let (cells, red) = (self.cells.len(), self.red.len());
        format!("{cells} cells in {} s, {red} of them red", self.seconds)
    }

    fn page(&self) -> Result<String> {
        let mut counts = BTreeMap::<(String, String), usize>::new();
        for cell in &self.cells {
            let [bmc, sequence, _, _]: [String; 4] = serde_json::from_str(cell)?;
            *counts.entry((bmc, sequence)).or_default() += 1;
        }
        let mut page = format!(
            "# One wrong answer

This page is written by `cargo xtask answers --page`.

A cell is a machine by Redfish, something that is done to it, one of the requests that this takes, and a wrong answer to that
request: 401, 403, 404, 409, 412, 429, 500 or 503, silence, the end of the connection, HTML, one half of the right answer, the right one
without its body, packed by gzip, or too late. What is done succeeds, or its error names the answer; done again, it succeeds without
help; then neither a session nor a medium is left. The BMCs are our own stand-in and those whose [replies were
recorded](bmcs.md#recorded-replies).

{}, on {}.

| cells | BMC | what is done |
|---|---|---|
",
            self.line(),
            machine(),
        );
        for ((bmc, sequence), count) in counts {
            writeln!(page, "| {count} | {bmc} | {sequence} |")?;
        }
        page.push_str(
            "
## Left out

| what | why |
|---|---|
| what a recorded BMC cannot do (drives that it has not, boot devices that it refuses) | it fails with right answers too |
| the session whose beginning is answered too late | nobody knows its token or its path; the BMC ends it after its own time |
",
        );
        Ok(page)
    }
}
