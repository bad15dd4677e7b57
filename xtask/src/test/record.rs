//! `cargo xtask record`: writes down what each version of Ironic and the agent say to each other, and what operators'
//! clients print under the newest one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::build::dist;
use crate::build::ironic_environment::{self, IronicEnvironment};
use crate::host::command::run;
use crate::host::python_environment;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, cargo};

/// Each operation once, most of them in a boot of their own, and two that fail.
const LIFE: &str = "under_ironic::ironic_with_fast_track_and_a_machine_that_is_switched_on_by_hand";
/// Python loads what lies there into Ironic.
const RECORDER: &str = "tests/ironic/recorder";
/// Where unit tests read the recordings.
const RECORDINGS: &str = "tests/golden";
/// Where tests of clients read theirs.
const OF_CLIENTS: &str = "tests/client";

/// Records the life of a node under each version of Ironic, for unit tests to replay; or what clients print through one.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// Folder of a ramdisk that was built already.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Records what clients print, under the newest version, and nothing else.
    #[arg(long, conflicts_with = "dist")]
    clients: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command.
pub fn record(arguments: &RecordArguments) -> Result<()> {
    if arguments.clients {
        requirements::ensure(&[Purpose::Python], !arguments.no_install)?;
        return record_clients(&Workspace::find()?);
    }
    let purposes = [Purpose::Dist, Purpose::Machine, Purpose::Python, Purpose::Ironic];
    requirements::ensure(&purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => folder.clone(),
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    for ironic in ironic_environment::cached(&workspace)? {
        let recording = record_life(&workspace, &dist, &ironic)
            .with_context(|| format!("under Ironic {}", ironic.version))?;
        println!("{}", recording.display());
    }
    Ok(())
}

/// A recording takes the place of the last one when the life has ended well.
fn record_life(workspace: &Workspace, dist: &Path, ironic: &IronicEnvironment) -> Result<PathBuf> {
    let recording = workspace.root.join(RECORDINGS).join(format!("ironic-{}.jsonl", ironic.version));
    let lines = workspace.cache().join(format!("recording-{}", std::process::id()));
    let mut life = cargo();
    life.args(["test", "--package", "farrier-tests", "--test", "lifecycle"]);
    life.args(["--", "--exact", LIFE, "--nocapture"]).current_dir(&workspace.root);
    life.env("FARRIER_DIST", dist).env("FARRIER_IRONIC", &ironic.folder);
    life.env("PYTHONPATH", workspace.root.join(RECORDER)).env("FARRIER_GOLDEN", &lines);
    run(&mut life)?;
    fs::copy(&lines, &recording).with_context(|| format!("nothing was recorded in {}", lines.display()))?;
    fs::remove_file(&lines)?;
    Ok(recording)
}

fn record_clients(workspace: &Workspace) -> Result<()> {
    let ironics = ironic_environment::cached(workspace)?;
    let ironic = ironics.last().context("tests/ironic names no version")?;
    let recording = workspace.root.join(OF_CLIENTS).join(format!("life-under-ironic-{}.txt", ironic.version));
    let mut life = cargo();
    life.args(["run", "--package", "farrier-tests", "--example", "record_baremetal_life"]).arg(&recording);
    life.env("FARRIER_IRONIC", &ironic.folder);
    life.env("FARRIER_CLIENTS", python_environment::clients(workspace)?);
    run(life.current_dir(&workspace.root))?;
    println!("{}", recording.display());
    Ok(())
}
