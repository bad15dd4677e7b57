//! `cargo xtask fuzz`: hostile input for everything that reads what others wrote.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::command::{run, run_quietly};
use crate::workspace::{Workspace, cargo};

/// Runs the fuzz targets, each on one processor, until the time is over or one finds something.
#[derive(Debug, Args)]
pub struct FuzzArguments {
    /// One target instead of all of them.
    target: Option<String>,
    /// How long each target runs, in minutes.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Only says that cargo-fuzz is missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command.
pub fn fuzz(arguments: &FuzzArguments) -> Result<()> {
    let workspace = Workspace::find()?;
    install(!arguments.no_install)?;
    let folder = workspace.root.join("fuzz");
    let mut targets = targets(&folder)?;
    if let Some(wanted) = &arguments.target {
        targets.retain(|target| target == wanted);
        ensure!(!targets.is_empty(), "there is no target {wanted} in {}", folder.display());
    }
    for target in &targets {
        println!("\n== {target}, {} min", arguments.minutes);
        run_target(&workspace, &folder, target, arguments.minutes)?;
    }
    println!("{} targets, no finding", targets.len());
    Ok(())
}

fn install(allowed: bool) -> Result<()> {
    if run_quietly(cargo().args(["fuzz", "--version"])).is_ok() {
        return Ok(());
    }
    ensure!(allowed, "cargo-fuzz is missing: cargo install --locked cargo-fuzz");
    run(cargo().args(["install", "--locked", "cargo-fuzz"]))
}

/// The names of the programs in the folder.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let programs = folder.join("fuzz_targets");
    let entries = fs::read_dir(&programs).with_context(|| format!("cannot read {}", programs.display()))?;
    let mut names: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// What a run finds out about the program is kept for the next one; the seeds stay as they are.
fn run_target(workspace: &Workspace, folder: &Path, target: &str, minutes: u64) -> Result<()> {
    let corpus = workspace.cache().join("fuzz").join(target);
    fs::create_dir_all(&corpus)?;
    let mut fuzz = cargo();
    fuzz.args(["fuzz", "run", "--target-dir"]).arg(workspace.target.join("fuzz")).arg(target);
    fuzz.arg(&corpus).arg(folder.join("seeds").join(target));
    fuzz.args(["--", &format!("-max_total_time={}", minutes * 60), "-rss_limit_mb=1024", "-timeout=20"]);
    fuzz.args(["-print_final_stats=1", "-verbosity=0"]);
    // Instrumenting needs a feature of nightly compilers; the stable one has it under this name.
    run(fuzz.env("RUSTC_BOOTSTRAP", "1").current_dir(folder))
}
