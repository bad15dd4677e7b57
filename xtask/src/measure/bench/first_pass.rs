//! `cargo xtask bench first-pass`: how many lives of machines reach their goal without a person, under a seeded fault
//! model, and whether the conductor explains the others by their cause.
//!
//! The fleet simulator runs in network and user namespaces of its own, and starts two conductors over one SQLite file. A run
//! that was killed resumes in its folder.

mod report;

pub use self::report::FirstPassReport;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use farrier_tests::conductor::first_pass::FirstPass;

use self::report::Run;
use crate::book::page;
use crate::host::command::{find, run};
use crate::host::workspace::{Workspace, cargo, read_json, write_json};

/// Programs of Debian that the site needs.
const PROGRAMS: [&str; 5] = ["ip", "unshare", "nsenter", "setpriv", "faketime"];

/// Longest silence of an agent, in seconds; durations of machines are shortened a hundred times.
const CALLBACK_TIMEOUT: u64 = 90;

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
    /// Runs debug builds of conductor and simulator; the page says so.
    #[arg(long)]
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
    let callback_timeout = CALLBACK_TIMEOUT;
    let lived =
        FirstPass { lives, rate, machines, at_once, seed, callback_timeout, farrier, folder: folder.clone() };
    let report =
        lived.run(&fleet).with_context(|| format!("the run resumes with --folder {}", folder.display()))?;
    let run: Run = read_json(&report)?;
    if arguments.folder.is_none() {
        fs::remove_dir_all(&own)?;
    }
    let report = FirstPassReport::of(run, lived.fleet_file(), rate, arguments.debug);
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
