//! `cargo xtask bench first-pass`: how many lives of machines reach their goal without a person, under a seeded fault
//! model, and whether the conductor explains the others by their cause.
//!
//! The fleet simulator runs in network and user namespaces of its own, and starts two conductors over one SQLite file. A run
//! that was killed resumes in its folder.

mod report;
mod setup;

pub use self::report::FirstPassReport;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::report::Run;
use self::setup::{FLEET, SITE, Setup};
use crate::book::page;
use crate::host::command::{command, find, run};
use crate::host::workspace::{Workspace, cargo, read_json, write_json};

/// Programs of Debian that the site needs.
const PROGRAMS: [&str; 5] = ["ip", "unshare", "nsenter", "setpriv", "faketime"];

/// Runs lives of simulated machines under a fault model, and counts those that pass at first and those that are explained.
#[derive(Debug, Args)]
pub struct FirstPassArguments {
    /// Lives: inspection, cleaning, deployment, rebuild and undeployment.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    lives: u64,
    /// Share of lives that each class of faults strikes.
    #[arg(long, value_name = "RATE", default_value_t = 0.03)]
    rate: f64,
    /// Machines.
    #[arg(long, value_name = "N", default_value_t = 400)]
    machines: u32,
    /// Lives at a time.
    #[arg(long, value_name = "N", default_value_t = 100)]
    at_once: u32,
    /// Seed of faults and durations.
    #[arg(long, value_name = "N", default_value_t = 2026)]
    seed: u64,
    /// Folder of the run; a run that was killed resumes in the same folder [default: a new one, removed at the end].
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Runs debug builds of conductor and simulator.
    #[arg(long, conflicts_with = "page")]
    debug: bool,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
}

/// Runs the command. A life that should have passed, or is not explained, is an error.
pub fn bench(arguments: &FirstPassArguments) -> Result<()> {
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|program| find(program).is_none()).collect();
    ensure!(missing.is_empty(), "install {} (Debian: iproute2, util-linux, faketime)", missing.join(", "));
    let workspace = Workspace::find()?;
    let (farrier, fleet) = programs(&workspace, arguments.debug)?;
    let own = workspace.cache().join(format!("first-pass-{}", std::process::id()));
    let folder = std::path::absolute(arguments.folder.as_ref().unwrap_or(&own))?;
    fs::create_dir_all(&folder)?;
    let &FirstPassArguments { lives, rate, machines, at_once, seed, .. } = arguments;
    let setup = Setup { lives, rate, machines, at_once, seed, farrier, folder: folder.clone() };
    let result = drive(&fleet, &setup);
    if arguments.folder.is_none() && result.is_ok() {
        fs::remove_dir_all(&own)?;
    }
    let report = FirstPassReport::of(result?, setup.fleet_file(), rate);
    print!("{}", report.summary());
    write_json(arguments.json.as_deref(), &report)?;
    if arguments.page {
        page::write(&workspace, &report)?;
    }
    match report.faults()[..] {
        [] => Ok(()),
        ref faults => bail!("outside of the budget: {}", faults.join("; ")),
    }
}

/// Builds conductor and simulator.
fn programs(workspace: &Workspace, is_debug: bool) -> Result<(PathBuf, PathBuf)> {
    let (options, profile) = if is_debug { (&[][..], "debug") } else { (&["--release"][..], "release") };
    let mut build = cargo();
    build.args(["build", "-p", "farrier", "-p", "farrier-fleet"]).args(options);
    run(build.current_dir(&workspace.root))?;
    let built = workspace.target.join(profile);
    Ok((built.join("farrier"), built.join("farrier-fleet")))
}

fn drive(program: &Path, setup: &Setup) -> Result<Run> {
    let Setup { folder, .. } = setup;
    setup.write()?;
    let report = folder.join("report.json");
    fs::remove_file(&report).ok();
    let mut drive = isolated(program);
    drive.arg("drive").arg(folder.join(FLEET)).arg("--site").arg(folder.join(SITE));
    drive.arg("--results").arg(folder.join("lives.jsonl")).arg("--json").arg(&report);
    drive.arg("--journal").arg(folder.join("journal.jsonl"));
    // A life that is not explained is told by the report.
    let ended = run(&mut drive);
    read_json(&report).with_context(|| match ended {
        Ok(()) => "the simulator wrote no report".to_owned(),
        Err(error) => format!("{error:#}; the run resumes with --folder {}", folder.display()),
    })
}

/// A program in user and network namespaces of its own: what is done to the network is done to no other.
fn isolated(program: &Path) -> Command {
    let mut isolated = command("unshare");
    isolated.args(["--user", "--map-root-user", "--net"]).arg(program).env("RUST_MIN_STACK", "8388608");
    isolated
}
