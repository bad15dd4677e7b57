//! `cargo xtask test`: all tests, by what they need.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;

use crate::dist::{Dist, Firmware};
use crate::instance_image::{Content, InstanceImage, Kernel};
use crate::ironic_environment::IronicEnvironment;
use crate::requirements::{self, Purpose};
use crate::test_programs::{self, Outcome, TestProgram, Tier};
use crate::test_summary::Summary;
use crate::test_timing::{Timing, slowest};
use crate::workspace::{Workspace, write_json};
use crate::{dist, instance_image, ironic_environment, processor_time, python_environment, python_manager};

/// Runs the tests. The last line is `N passed, N failed, N skipped`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Which tests [default: all but ironic].
    #[arg(value_enum)]
    tier: Option<Tier>,
    /// Writes the numbers and times as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

type Environment = Vec<(&'static str, String)>;

#[derive(Debug, Default, Serialize)]
struct TestReport {
    #[serde(flatten)]
    total: Summary,
    tiers: BTreeMap<&'static str, Summary>,
    /// Those that failed.
    failures: Vec<String>,
    /// For how long a processor was busy with all of it. Several are at the same time.
    processor_seconds: f64,
    /// Each test that ran alone, each program of tests that ran together, and what was made for them.
    timings: Vec<Timing>,
}

/// Runs the command.
pub fn test(arguments: &TestArguments) -> Result<()> {
    let tiers = arguments.tier.map_or_else(|| vec![Tier::Unit, Tier::Disk, Tier::Vm], |tier| vec![tier]);
    let mut report = TestReport::default();
    let result = run_tiers(&tiers, !arguments.no_install, &mut report);
    if let Err(error) = &result {
        report.total += Summary::FAILURE;
        report.failures.push(format!("{error:#}"));
    }
    report.processor_seconds = processor_time::of_this()?.as_secs_f64();
    write_json(arguments.json.as_deref(), &report)?;
    let skips_count = std::env::var("CI").is_ok_and(|value| value == "true");
    if skips_count && report.total.skipped > 0 {
        println!("error: nothing may be skipped on a CI machine");
    }
    print!("\nWhat took longest:\n{}", slowest(&report.timings));
    println!("{:.0} s of a processor in all", report.processor_seconds);
    for failure in &report.failures {
        println!("failed: {failure}");
    }
    println!("{}", report.total);
    if report.total.failed > 0 || (skips_count && report.total.skipped > 0) {
        std::process::exit(1);
    }
    Ok(())
}

fn run_tiers(tiers: &[Tier], install: bool, report: &mut TestReport) -> Result<()> {
    let purposes: Vec<_> = tiers.iter().flat_map(|tier| needs(*tier)).copied().collect();
    requirements::ensure(&purposes, install)?;
    let workspace = &Workspace::find()?;
    thread::scope(|scope| {
        // What machines need keeps one processor busy with linking for minutes: the other has what comes before them.
        let needs: Vec<_> =
            tiers.iter().map(|tier| (*tier, scope.spawn(|| prepared(*tier, workspace)))).collect();
        let start = Instant::now();
        let programs = test_programs::build(workspace)?;
        report.timings.push(Timing::new("building the tests", start.elapsed()));
        for (tier, prepared) in needs {
            println!("\n== {} tests", name(tier));
            let (environments, timing) =
                prepared.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))?;
            report.timings.push(timing);
            let Outcome { summary, failures, timings } = run_tier(tier, &environments, workspace, &programs)?;
            report.tiers.insert(name(tier), summary);
            report.total += summary;
            report.failures.extend(failures);
            report.timings.extend(timings);
        }
        Ok(())
    })
}

/// What the tests of a tier are told, once it is made, and how long that took.
fn prepared(tier: Tier, workspace: &Workspace) -> Result<(Vec<Environment>, Timing)> {
    let start = Instant::now();
    let environments = environments(tier, workspace)?;
    Ok((environments, Timing::new(format!("what {} tests need", name(tier)), start.elapsed())))
}

fn run_tier(
    tier: Tier,
    environments: &[Environment],
    workspace: &Workspace,
    programs: &[TestProgram],
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for environment in environments {
        outcome.extend(test_programs::run(programs, tier, environment)?);
    }
    if tier == Tier::Unit {
        outcome.extend(test_programs::run_documentation(workspace)?);
    }
    Ok(outcome)
}

/// The variables that tell tests where things are: the tests of a tier run once with each set.
fn environments(tier: Tier, workspace: &Workspace) -> Result<Vec<Environment>> {
    match tier {
        Tier::Unit | Tier::Disk => Ok(vec![Environment::new()]),
        Tier::Vm => Ok(vec![machine_environment(workspace)?]),
        Tier::Ironic => ironic_environments(workspace),
    }
}

/// Where tests find the ramdisk, a BMC and Ironic, for each version of Ironic.
fn ironic_environments(workspace: &Workspace) -> Result<Vec<Environment>> {
    let built = dist::build(workspace, "x86_64", Firmware::None)?;
    let (dist, modules) = (built.folder.display().to_string(), built.modules.display().to_string());
    let builder = built.builder.display().to_string();
    let with_python = python_manager::ramdisk(workspace, &built)?.display().to_string();
    let image =
        instance_image::cached(workspace, instance_image::TESTED_MEBIBYTES, Kernel::Cloud, Content::USUAL)?;
    let bmc = ironic_environment::cached_bmc(workspace)?.display().to_string();
    let ironics = ironic_environment::cached(workspace)?;
    let environment = |ironic: &IronicEnvironment| {
        vec![
            ("FARRIER_DIST", dist.clone()),
            ("FARRIER_DIST_PYTHON", with_python.clone()),
            ("FARRIER_MODULES", modules.clone()),
            ("FARRIER_IMAGE_BUILDER", builder.clone()),
            ("FARRIER_PROGRAMS", built.programs.display().to_string()),
            ("FARRIER_MODULE_CACHE", dist::module_cache(workspace).display().to_string()),
            ("FARRIER_IMAGE", image.path.display().to_string()),
            ("FARRIER_IMAGE_SHA256", image.sha256.clone()),
            ("FARRIER_REDFISH", bmc.clone()),
            ("FARRIER_IRONIC", ironic.folder.display().to_string()),
        ]
    };
    Ok(ironics.iter().map(environment).collect())
}

/// Where tests with virtual machines find what they boot and deploy.
fn machine_environment(workspace: &Workspace) -> Result<Environment> {
    // What comes from the network is made beside what the compiler makes.
    let (dists, fetched) = thread::scope(|scope| {
        let fetched = scope.spawn(|| fetched(workspace));
        let dists = dists(workspace);
        (dists, fetched.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
    });
    let ((dist, aarch64), ([image, partition], schemathesis)) = (dists?, fetched?);
    let farrier = workspace.build_conductor()?;
    Ok(vec![
        ("FARRIER_DIST", dist.folder.display().to_string()),
        ("FARRIER_MODULES", dist.modules.display().to_string()),
        ("FARRIER_BOOT_LOADERS", dist.boot_loaders.display().to_string()),
        ("FARRIER_PROGRAMS", dist.programs.display().to_string()),
        ("FARRIER_MODULE_CACHE", dist::module_cache(workspace).display().to_string()),
        ("FARRIER_DIST_AARCH64", aarch64.folder.display().to_string()),
        ("FARRIER_BOOT_LOADERS_AARCH64", aarch64.boot_loaders.display().to_string()),
        ("FARRIER_IMAGE_BUILDER", dist.builder.display().to_string()),
        ("FARRIER_IMAGE", image.path.display().to_string()),
        ("FARRIER_IMAGE_SHA256", image.sha256),
        ("FARRIER_PARTITION_IMAGE", partition.path.display().to_string()),
        ("FARRIER_PARTITION_IMAGE_SHA256", partition.sha256),
        ("FARRIER_BIN", farrier.display().to_string()),
        ("FARRIER_SCHEMATHESIS", schemathesis.display().to_string()),
    ])
}

/// The ramdisks of both architectures. Sizes and memory are tested with the one for this architecture, which is what
/// ships; the other one only has to boot. One processor alone links the former, after all that two can do.
fn dists(workspace: &Workspace) -> Result<(Dist, Dist)> {
    let aarch64 = dist::build_quickly(workspace, "aarch64")?;
    Ok((dist::build(workspace, "x86_64", Firmware::Common)?, aarch64))
}

/// The images to deploy, and schemathesis.
fn fetched(workspace: &Workspace) -> Result<([InstanceImage; 2], PathBuf)> {
    let image =
        |content| instance_image::cached(workspace, instance_image::TESTED_MEBIBYTES, Kernel::Cloud, content);
    let images = [image(Content::USUAL)?, image(Content::Partition)?];
    Ok((images, python_environment::schemathesis(workspace)?))
}

fn needs(tier: Tier) -> &'static [Purpose] {
    match tier {
        Tier::Unit => &[Purpose::Unit],
        Tier::Disk => &[Purpose::Disk],
        Tier::Vm => &[
            Purpose::Dist,
            Purpose::InstanceImage,
            Purpose::Machine,
            Purpose::MachineAarch64,
            Purpose::Python,
        ],
        Tier::Ironic => {
            &[Purpose::Dist, Purpose::InstanceImage, Purpose::Machine, Purpose::Python, Purpose::Ironic]
        }
    }
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::Unit => "unit",
        Tier::Disk => "disk",
        Tier::Vm => "vm",
        Tier::Ironic => "ironic",
    }
}
