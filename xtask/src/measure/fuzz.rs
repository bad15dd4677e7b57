//! `cargo xtask fuzz`: hostile input for everything that reads what others wrote.

mod report;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::report::{Report, Run};
use crate::host::command::{run, run_quietly, shown};
use crate::host::processor_time;
use crate::host::workspace::{Workspace, cargo};

/// Runs the fuzz targets, each on one processor, until the time is over or one finds something.
#[derive(Debug, Args)]
pub struct FuzzArguments {
    /// One target instead of all of them.
    target: Option<String>,
    /// How long each target runs, in seconds.
    #[arg(long, value_name = "N", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Writes the page of the book with the runs of all targets, if all are fast enough.
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
    let mut report = Report::new(arguments.seconds);
    for target in &targets {
        println!("\n== {target}, {} s", arguments.seconds);
        let run = run_target(&workspace, &folder, target, arguments.seconds)?;
        println!("{run}");
        report.runs.push(run);
    }
    println!("{} targets, no finding", targets.len());
    if arguments.page {
        report.require_speed()?;
        report.write_page(&workspace)?;
    }
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
fn run_target(workspace: &Workspace, folder: &Path, target: &str, seconds: u64) -> Result<Run> {
    let corpus = workspace.cache().join("fuzz").join(target);
    fs::create_dir_all(&corpus)?;
    let cargo_fuzz = |action: &str| {
        let mut command = cargo();
        // The manifest says where comparisons are traced.
        command.args(["fuzz", action, "--no-trace-compares", "--target-dir"]);
        command.arg(workspace.target.join("fuzz")).arg(target);
        // Instrumenting needs a feature of nightly compilers; the stable one has it under this name.
        command.env("RUSTC_BOOTSTRAP", "1").current_dir(folder);
        command
    };
    run(&mut cargo_fuzz("build"))?;
    let mut fuzz = cargo_fuzz("run");
    fuzz.arg(&corpus).arg(folder.join("seeds").join(target));
    fuzz.args(["--", &format!("-max_total_time={seconds}"), "-rss_limit_mb=1024", "-timeout=20"]);
    fuzz.args(["-print_final_stats=1", "-verbosity=0"]);
    let before = processor_time::of_this()?;
    let words = run_heard(&mut fuzz)?;
    let used = (processor_time::of_this()? - before).as_secs_f64();
    let subject = subject(&folder.join("fuzz_targets").join(target).with_extension("rs"))?;
    Run::read(target, subject, &words, used).with_context(|| format!("{target} did not tell what it ran"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x32_every_target_is_declared_and_starts_from_something() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let declared = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let targets = targets(&folder).unwrap();
        assert!(targets.len() >= 10, "{targets:?}");
        for target in targets {
            assert!(
                declared.contains(&format!("path = \"fuzz_targets/{target}.rs\"")),
                "{target} is not declared"
            );
            let seeds = fs::read_dir(folder.join("seeds").join(&target));
            assert!(seeds.is_ok_and(|mut seeds| seeds.next().is_some()), "{target} starts from nothing");
        }
    }

    #[test]
    fn x32_the_processor_is_what_programs_used_of_it() {
        let before = processor_time::of_this().unwrap();
        run_heard(Command::new("dd").args(["if=/dev/zero", "of=/dev/null", "bs=1M", "count=8000"])).unwrap();
        assert!(processor_time::of_this().unwrap() > before);
    }
}
