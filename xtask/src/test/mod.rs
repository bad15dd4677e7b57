//! `cargo xtask test`: all tests, by what they need.

#[cfg(test)]
mod docs_tests;
mod failure;
mod needs;
mod order;
mod programs;
pub mod record;
mod summary;
mod timing;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;

use self::failure::Failure;
use self::needs::Environment;
use self::programs::{Outcome, TestProgram, Tier};
use self::summary::Summary;
use self::timing::{Timing, slowest};
use crate::host::disk_room::{Room, Watch};
use crate::host::workspace::{Workspace, write_json};
use crate::host::{processor_time, requirements};

/// Runs the tests. The last line is `N passed, N failed, N skipped`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Which tests [default: unit, disk, process, fault, vm and aarch64].
    #[arg(value_enum)]
    tier: Option<Tier>,
    /// Only tests whose names contain one of these texts.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Writes the numbers and times as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

#[derive(Debug, Default, Serialize)]
struct TestReport {
    #[serde(flatten)]
    total: Summary,
    tiers: BTreeMap<&'static str, Summary>,
    /// Those that failed.
    failures: Vec<Failure>,
    /// How long all of it took.
    seconds: f64,
    /// For how long a processor was busy with all of it. Several are at the same time.
    processor_seconds: f64,
    /// Room on the disks that tests write to.
    rooms: Vec<Room>,
    /// Each test that ran alone, each program of tests that ran together, and what was made for them.
    timings: Vec<Timing>,
}

impl TestReport {
    fn add(&mut self, tier: Tier, Outcome { summary, failures, timings }: Outcome) {
        self.tiers.insert(name(tier), summary);
        self.total += summary;
        self.failures.extend(failures);
        self.timings.extend(timings);
    }
}

/// What runs when no tier is named, in this order.
const USUAL: [Tier; 6] = [Tier::Unit, Tier::Disk, Tier::Process, Tier::Fault, Tier::Vm, Tier::Aarch64];

/// For how many tiers what they need is finished at a time, before them.
const AHEAD: usize = 2;

/// Runs the command.
pub fn test(arguments: &TestArguments) -> Result<()> {
    let tiers = arguments.tier.map_or_else(|| USUAL.to_vec(), |tier| vec![tier]);
    let mut report = TestReport::default();
    let start = Instant::now();
    let result = run_watched(&tiers, arguments, &mut report);
    if let Err(error) = &result {
        report.total += Summary::FAILURE;
        report.failures.push(Failure::new(format!("{error:#}")));
    }
    report.seconds = start.elapsed().as_secs_f64();
    report.processor_seconds = processor_time::of_this()?.as_secs_f64();
    write_json(arguments.json.as_deref(), &report)?;
    let skips_count = std::env::var("CI").is_ok_and(|value| value == "true");
    if skips_count && report.total.skipped > 0 {
        println!("error: nothing may be skipped on a CI machine");
    }
    print!("\nWhat took longest:\n{}", slowest(&report.timings));
    println!("{:.0} s in all, {:.0} s of a processor", report.seconds, report.processor_seconds);
    for room in &report.rooms {
        println!("{room}");
    }
    for failure in &report.failures {
        println!("{failure}");
    }
    println!("{}", report.total);
    if report.total.failed > 0 || (skips_count && report.total.skipped > 0) {
        std::process::exit(1);
    }
    Ok(())
}

fn run_watched(tiers: &[Tier], arguments: &TestArguments, report: &mut TestReport) -> Result<()> {
    let workspace = Workspace::find()?;
    let watch = Watch::start(&[&std::env::temp_dir(), &workspace.target])?;
    let result = run_tiers(tiers, arguments, &workspace, report);
    report.rooms = watch.end()?;
    result
}

fn run_tiers(
    tiers: &[Tier],
    arguments: &TestArguments,
    workspace: &Workspace,
    report: &mut TestReport,
) -> Result<()> {
    let purposes: Vec<_> = tiers.iter().flat_map(|tier| needs::purposes(*tier)).copied().collect();
    requirements::ensure(&purposes, !arguments.no_install)?;
    let start = Instant::now();
    thread::scope(|scope| {
        // What machines need keeps one processor busy with linking for minutes: the other has what comes before them.
        let begun: Vec<_> =
            tiers.iter().map(|tier| (*tier, scope.spawn(|| needs::begin(*tier, workspace)))).collect();
        let mut built = programs::build(workspace)?;
        let is_part = !arguments.only.is_empty();
        if is_part {
            built.keep(&arguments.only)?;
        }
        let built = Arc::new(built);
        report.timings.push(Timing::new("building the tests", start.elapsed()));
        let programs = Arc::clone(&built);
        let mut unfinished = begun.into_iter().map(|(tier, begun)| {
            let built = Arc::clone(&built);
            let environments = move || {
                let environments = needs::finish(tier, joined(begun)?, workspace, &built)?;
                Ok((environments, Timing::new(format!("what {} tests need", name(tier)), start.elapsed())))
            };
            (tier, scope.spawn(environments))
        });
        let mut needs: VecDeque<_> = unfinished.by_ref().take(AHEAD).collect();
        let mut beside = Vec::new();
        while let Some((tier, needed)) = needs.pop_front() {
            needs.extend(unfinished.next());
            let programs = Arc::clone(&programs);
            let run = move || -> Result<_> {
                let (environments, timing) = joined(needed)?;
                println!("\n== {} tests", name(tier));
                let mut outcome = run_tier(tier, &environments, workspace, &programs.programs, is_part)?;
                outcome.timings.push(timing);
                Ok(outcome)
            };
            match tier.leaves_room() {
                true => beside.push((tier, scope.spawn(run))),
                false => report.add(tier, run()?),
            }
        }
        for (tier, run) in beside {
            report.add(tier, joined(run)?);
        }
        Ok(())
    })
}

/// What a thread came to.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
}

fn run_tier(
    tier: Tier,
    environments: &[Environment],
    workspace: &Workspace,
    programs: &[TestProgram],
    is_part: bool,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let has_documentation = tier == Tier::Unit && !is_part;
    thread::scope(|scope| {
        let documentation = has_documentation.then(|| scope.spawn(|| programs::run_documentation(workspace)));
        for environment in environments {
            outcome.extend(programs::run(programs, tier, environment)?);
        }
        if let Some(documentation) = documentation {
            outcome.extend(joined(documentation)?);
        }
        Ok(outcome)
    })
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::Unit => "unit",
        Tier::Process => "process",
        Tier::Fault => "fault",
        Tier::Disk => "disk",
        Tier::Vm => "vm",
        Tier::Aarch64 => "aarch64",
        Tier::Lifecycle => "lifecycle",
        Tier::Ironic => "ironic",
        Tier::IronicIscsi => "ironic-iscsi",
        Tier::Browser => "browser",
        Tier::Client => "client",
        Tier::Openstack => "openstack",
        Tier::Docs => "docs",
    }
}
