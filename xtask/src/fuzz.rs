//! `cargo xtask fuzz`: hostile input for everything that reads what others wrote.

mod report;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::report::{Report, Run};
use crate::command::{run, run_quietly, shown};
use crate::workspace::{Workspace, cargo};

/// Runs the fuzz targets, each on one processor, until the time is over or one finds something.
#[derive(Debug, Args)]
pub struct FuzzArguments {
    /// One target instead of all of them.
    target: Option<String>,
    /// How long each target runs, in minutes.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Writes the page of the book with the runs of all targets.
    #[arg(long, conflicts_with = "target")]
    page: bool,
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
    let mut report = Report::new(arguments.minutes);
    for target in &targets {
        println!("\n== {target}, {} min", arguments.minutes);
        report.runs.push(run_target(&workspace, &folder, target, arguments.minutes)?);
    }
    if arguments.page {
        report.write_page(&workspace)?;
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
fn run_target(workspace: &Workspace, folder: &Path, target: &str, minutes: u64) -> Result<Run> {
    let corpus = workspace.cache().join("fuzz").join(target);
    fs::create_dir_all(&corpus)?;
    let mut fuzz = cargo();
    fuzz.args(["fuzz", "run", "--target-dir"]).arg(workspace.target.join("fuzz")).arg(target);
    fuzz.arg(&corpus).arg(folder.join("seeds").join(target));
    fuzz.args(["--", &format!("-max_total_time={}", minutes * 60), "-rss_limit_mb=1024", "-timeout=20"]);
    fuzz.args(["-print_final_stats=1", "-verbosity=0"]);
    // Instrumenting needs a feature of nightly compilers; the stable one has it under this name.
    let words = run_heard(fuzz.env("RUSTC_BOOTSTRAP", "1").current_dir(folder))?;
    let subject = subject(&folder.join("fuzz_targets").join(target).with_extension("rs"))?;
    Run::read(target, subject, &words).with_context(|| format!("{target} did not tell what it ran"))
}

/// What a program is about, in the words it begins with.
fn subject(program: &Path) -> Result<String> {
    let text = fs::read_to_string(program).with_context(|| format!("cannot read {}", program.display()))?;
    let line = text.lines().next().and_then(|line| line.strip_prefix("//! "));
    Ok(line.with_context(|| format!("{} does not begin with its subject", program.display()))?.to_owned())
}

/// Runs to the end, shows what it says on standard error, and keeps that.
fn run_heard(command: &mut Command) -> Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let mut words = String::new();
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let line = line?;
        eprintln!("{line}");
        words.push_str(&line);
        words.push('\n');
    }
    let status = child.wait()?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(words)
}
