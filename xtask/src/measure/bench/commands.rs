//! `cargo xtask bench commands`: whether a conductor that reads the list of commands slows the writing of
//! an image.
//!
//! The disk is held at a fixed speed, as a real one has; what the requests cost then shows only if
//! they keep the disk waiting. The same image is written with and without them in turns, in one machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::machine::{Hardware, free_port};
use serde::Serialize;
use serde_json::Value;

use super::dense_image::DenseImage;
use super::{DISK_BYTES, HEARTBEAT, field, write_image};
use crate::book::page::in_milliseconds;
use crate::build::dist;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

/// How often the list is read during a write.
const REQUESTS: usize = 1000;
const MIB: u64 = 1 << 20;
/// Speed of the disk.
const MIB_PER_SECOND: u64 = 16;
/// A write that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);
/// By how much the requests may slow the write.
const BUDGET: f64 = 1.05;

/// Writes an image with and without 1,000 reads of the list of commands during it, in a virtual machine.
#[derive(Debug, Args)]
pub struct CommandsArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Size of the image in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    image_mib: u64,
    /// Pairs of writes.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

#[derive(Debug, Serialize)]
struct CommandsReport {
    /// Seconds of each write without requests.
    quiet_s: Vec<f64>,
    /// Seconds of each write with requests.
    busy_s: Vec<f64>,
    /// Seconds that the requests of each such write took.
    requests_s: Vec<f64>,
    /// Sum of the writes with requests by the sum of those without.
    ratio: f64,
    requests: usize,
    image_mib: u64,
    disk_mib_per_second: u64,
    idle_agent_rss_bytes: u64,
}

/// Runs the benchmark.
pub fn bench(arguments: &CommandsArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = dist::build(&workspace, "x86_64", dist::Firmware::None)?;
    let report = workspace.in_scratch_folder(|folder| measure(&dist.folder, folder, arguments))?;
    println!(
        "the write takes {:.3} of its time without requests; the idle agent takes {} KiB",
        report.ratio,
        report.idle_agent_rss_bytes >> 10
    );
    write_json(arguments.json.as_deref(), &report)?;
    if report.ratio > BUDGET {
        bail!("{REQUESTS} requests slow the write by more than 5 %");
    }
    Ok(())
}

fn measure(dist: &Path, folder: &Path, arguments: &CommandsArguments) -> Result<CommandsReport> {
    let image_info = DenseImage::serve(folder, arguments.image_mib)?.info_for_a_machine();
    let disk = folder.join("disk.raw");
    File::create(&disk)?.set_len(DISK_BYTES)?;
    let hardware = Hardware {
        mac: super::MAC.to_owned(),
        agent_port: free_port()?,
        keyboard_port: free_port()?,
        disks: Vec::new(),
        media: Vec::new(),
        folder: folder.to_owned(),
    };
    let agent = CommandedAgent::boot(&hardware, &slow_disk(&disk), dist, "")?;
    let (mut quiet_s, mut busy_s, mut requests_s) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        quiet_s.push(write(&agent, &image_info, || Ok(()))?);
        let started = Instant::now();
        let mut took = 0.0;
        busy_s.push(write(&agent, &image_info, || {
            agent.read_often(REQUESTS)?;
            took = in_milliseconds(started.elapsed().as_secs_f64());
            Ok(())
        })?);
        requests_s.push(took);
        println!(
            "round {round}: {:.2} s, with requests {:.2} s",
            quiet_s[quiet_s.len() - 1],
            busy_s[busy_s.len() - 1]
        );
    }
    // The agent wrote it on the console after its heartbeat, when nothing had been ordered yet.
    let idle_agent_rss_bytes = field(&hardware.console().text(), HEARTBEAT, "rss_bytes")?;
    let ratio = busy_s.iter().sum::<f64>() / quiet_s.iter().sum::<f64>();
    Ok(CommandsReport {
        quiet_s,
        busy_s,
        requests_s,
        ratio: in_milliseconds(ratio),
        requests: REQUESTS,
        image_mib: arguments.image_mib,
        disk_mib_per_second: MIB_PER_SECOND,
        idle_agent_rss_bytes,
    })
}

/// A disk of fixed speed, and a processor for the machine's own work beside that of the agent.
fn slow_disk(file: &Path) -> Vec<String> {
    let drive = format!(
        "if=none,format=raw,id=root,cache=none,file={},throttling.bps-total={}",
        file.display(),
        MIB_PER_SECOND * MIB
    );
    ["-smp", "2", "-drive", &drive, "-device", "virtio-blk-pci,drive=root,serial=ROOT"]
        .map(str::to_owned)
        .to_vec()
}

/// Seconds that the agent needed to write the image while `meanwhile` runs.
fn write(agent: &CommandedAgent, image_info: &Value, meanwhile: impl FnOnce() -> Result<()>) -> Result<f64> {
    agent.order("deploy.execute_deploy_step", &write_image(image_info))?;
    meanwhile()?;
    if agent.last_command()?["command_status"] != "RUNNING" {
        bail!("the write ended before the requests: take a larger --image-mib");
    }
    let ended = agent.wait_for_end(LIMIT)?;
    let report = &ended["command_result"]["deploy_result"]["report"];
    report["seconds_write"].as_f64().with_context(|| format!("no figures in {ended}"))
}
