//! `cargo xtask answers`: one answer after the other of BMCs, Keystone and Neutron is a wrong one, in everything that a machine is
//! asked for.
//!
//! The cells are judged in `drivers/tests/wrong_answers`; here the programs that have them are run with all of them, and their
//! reports become a page of the book.

mod report;
mod undone;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

pub use self::report::AnswersReport;
use self::report::Outcome;
use crate::book::page;
use crate::host::command::run;
use crate::host::workspace::{Workspace, cargo, read_json, write_json};

/// The programs, and the test of each that has cells.
const PROGRAMS: [(&str, &str); 4] = [
    ("redfish", "answers::cells::one_answer_is_wrong"),
    ("neutron", "answers::one_answer_is_wrong"),
    ("ipmitool", "answers::process_one_answer_is_wrong"),
    ("ipmitool", "datagrams::process_one_answer_is_wrong"),
];

/// Has one answer of each BMC, and of Keystone and Neutron, be wrong after the other.
#[derive(Debug, Args)]
pub struct AnswersArguments {
    /// Only answers of these, such as `own`, `dell-idrac9`, `IPMI` or `Keystone and Neutron`, divided by commas.
    #[arg(long, value_name = "NAMES", conflicts_with = "page")]
    only: Option<String>,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
}

/// Runs the command. A cell that is red is an error.
pub fn answers(arguments: &AnswersArguments) -> Result<()> {
    let workspace = Workspace::find()?;
    let outcomes = PROGRAMS.iter().map(|(program, test)| outcome(&workspace, arguments, program, test));
    let report = AnswersReport::of(outcomes.collect::<Result<Vec<_>>>()?);
    for red in &report.red {
        println!("{red}");
    }
    println!("{}", report.line());
    write_json(arguments.json.as_deref(), &report)?;
    ensure!(report.red.is_empty(), "{} cells are red", report.red.len());
    if arguments.page { page::write(&workspace, &report) } else { Ok(()) }
}

/// Runs the cells of a program. A program that fails has written its report too, unless the program could not begin.
fn outcome(
    workspace: &Workspace,
    arguments: &AnswersArguments,
    program: &str,
    test: &str,
) -> Result<Outcome> {
    std::fs::create_dir_all(workspace.cache())?;
    let name = format!("answers-{program}-{}.json", std::process::id());
    let file = workspace.cache().join(name);
    let mut cells = cargo();
    cells.args(["test", "-p", "farrier-drivers", "--test", program, "--", "--exact", test]);
    cells
        .env("FARRIER_ANSWERS_REPORT", &file)
        .envs(arguments.only.as_ref().map(|only| ("FARRIER_ANSWERS_ONLY", only)));
    let ended = run(cells.current_dir(&workspace.root));
    let outcome = read_json(&file).or_else(|error| ended.and(Err(error)))?;
    std::fs::remove_file(&file)?;
    Ok(outcome)
}
