//! `cargo xtask iscsi-conformance`: libiscsi's tests of targets, against the disk that an agent exports.

mod report;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use farrier_tests::iscsi::exporter::Exporter;
use serde_json::{Value, json};

use self::report::{Outcome, Report, Test};
use crate::build::dist;
use crate::host::command::{command, run_quietly};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, read_json, write_json};

/// libiscsi's program.
const PROGRAM: &str = "iscsi-test-cu";
const DISK_BYTES: u64 = 5 << 30;
/// Time for one test on an emulated machine; none takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(20);

/// Runs libiscsi's tests of iSCSI targets against the disk that an agent exports.
#[derive(Debug, Args)]
pub struct IscsiConformanceArguments {
    /// Only tests whose names begin with this, such as ALL.Write10 [default: all].
    #[arg(long, value_name = "NAME", conflicts_with = "page")]
    only: Option<String>,
    /// Folder of a ramdisk that was built already.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
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

/// Runs the command. A test that fails and is not known to is an error.
pub fn iscsi_conformance(arguments: &IscsiConformanceArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => folder.clone(),
        None => dist::build_quickly(&workspace, "x86_64", &workspace.build_image_builder()?)?.folder,
    };
    let names = names(arguments.only.as_deref())?;
    let folder = workspace.cache().join(format!("iscsi-conformance-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let exporter = Exporter::boot(&dist, &folder, DISK_BYTES)?;
    exporter.start(&json!({}))?;
    let url = exporter.unit.url();
    let run = |name: String| {
        let outcome = run_test(&name, &url, &folder.join("words"))?;
        println!("{name}: {outcome}");
        Ok(Test { name, outcome })
    };
    let tests = names.into_iter().map(run).collect::<Result<Vec<_>>>()?;
    exporter.stop().context("the export does not end after the tests")?;
    drop(exporter);
    fs::remove_dir_all(&folder)?;
    let report = Report { kernel: kernel_release(&dist)?, tests };
    println!("{}", report.line());
    report.require_known_failures()?;
    if arguments.page {
        report.write_page(&workspace)?;
    }
    write_json(arguments.json.as_deref(), &report)
}

/// The kernel of a ramdisk.
fn kernel_release(dist: &Path) -> Result<String> {
    let manifest: Value = read_json(&dist.join("manifest.json"))?;
    Ok(manifest["kernel_release"].as_str().context("the manifest names no kernel")?.to_owned())
}

/// The names of all tests, or of those that begin so.
fn names(only: Option<&str>) -> Result<Vec<String>> {
    let listing = run_quietly(command(PROGRAM).arg("--list"))?;
    // A family and a suite have names with fewer dots.
    let tests = listing
        .lines()
        .map(str::trim)
        .filter(|name| name.starts_with("ALL.") && name.matches('.').count() == 2);
    let names: Vec<_> =
        tests.filter(|name| only.is_none_or(|only| name.starts_with(only))).map(str::to_owned).collect();
    ensure!(!names.is_empty(), "{PROGRAM} has no such test: {PROGRAM} --list names them");
    Ok(names)
}

/// One test, which may destroy what is on the disk. What it writes, much in some, is kept in a file.
fn run_test(name: &str, url: &str, words: &Path) -> Result<Outcome> {
    let mut child = Command::new(PROGRAM)
        .args(["--dataloss", "--test", name, url])
        .stdin(Stdio::null())
        .stdout(File::create(words)?)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {PROGRAM}"))?;
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::Failed(format!("it did not end within {} s", LIMIT.as_secs())));
        }
        thread::sleep(POLL);
    }
    Ok(Outcome::read(&String::from_utf8_lossy(&fs::read(words)?)))
}
