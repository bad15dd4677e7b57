//! `cargo xtask bench`: measures instead of believing.

mod commands;
mod write;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use farrier_tests::image_server::{ImageServer, Reply};
use farrier_tests::lab::{Instance, Lab, Machine};
use serde::Serialize;

use crate::command::{command, run_quietly};
use crate::dist::{self, Dist};
use crate::requirements::{self, Purpose};
use crate::timeline::in_milliseconds;
use crate::workspace::{Workspace, write_json};

const NODE: &str = "bench";
const MAC: &str = "52:54:00:fa:00:03";
/// A disk that the default rule for the root disk accepts.
const DISK_BYTES: u64 = 8 << 30;
/// What the agent prints when it starts as the first process, and when the conductor knows it.
const USERLAND: &str = "userland started";
const HEARTBEAT: &str = "first heartbeat accepted";

/// Measures Farrier.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    Boot(BootArguments),
    Commands(commands::CommandsArguments),
    Write(write::WriteArguments),
}

/// Boots the ramdisk in a virtual machine: time to the first heartbeat, sizes and memory.
#[derive(Debug, Args)]
struct BootArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Memory of the machine in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory_mib: u32,
    /// How often to boot; the run with the median time is reported.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Boot {
    kernel_to_heartbeat_s: f64,
    userland_to_heartbeat_s: f64,
    agent_rss_bytes: u64,
    accelerator: &'static str,
}

#[derive(Debug, Serialize)]
struct BootReport {
    #[serde(flatten)]
    boot: Boot,
    vmlinuz_bytes: u64,
    initramfs_bytes: u64,
    memory_mib: u32,
    runs: u32,
}

/// Runs the command.
pub fn bench(arguments: &BenchArguments) -> Result<()> {
    match &arguments.bench {
        Bench::Boot(arguments) => bench_boot(arguments),
        Bench::Commands(arguments) => commands::bench(arguments),
        Bench::Write(arguments) => write::bench_write(arguments),
    }
}

fn bench_boot(arguments: &BootArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = dist::build(&workspace, "x86_64")?;
    let farrier = workspace.build_conductor()?;
    let folder = workspace.cache().join(format!("bench-{}", std::process::id()));
    let mut boots = Vec::new();
    for run in 1..=arguments.runs {
        let boot = boot(&dist, &farrier, &folder, arguments.memory_mib)?;
        println!(
            "run {run}: {:.2} s from the kernel's start, {:.2} s from the agent's; the agent takes {} KiB ({})",
            boot.kernel_to_heartbeat_s,
            boot.userland_to_heartbeat_s,
            boot.agent_rss_bytes >> 10,
            boot.accelerator
        );
        boots.push(boot);
        fs::remove_dir_all(&folder)?;
    }
    boots.sort_by(|one, other| one.kernel_to_heartbeat_s.total_cmp(&other.kernel_to_heartbeat_s));
    let report = BootReport {
        boot: boots[boots.len() / 2],
        vmlinuz_bytes: dist.sizes.vmlinuz_bytes,
        initramfs_bytes: dist.sizes.initramfs_bytes,
        memory_mib: arguments.memory_mib,
        runs: arguments.runs,
    };
    write_json(arguments.json.as_deref(), &report)
}

/// Deploys a tiny image, of which only the way to the first heartbeat matters.
fn boot(dist: &Dist, farrier: &Path, folder: &Path, memory_mib: u32) -> Result<Boot> {
    let lab = Lab::start(farrier, folder, &[])?;
    let disk = folder.join("disk.raw");
    File::create(&disk)?.set_len(DISK_BYTES)?;
    lab.enrol(&Machine {
        name: NODE.to_owned(),
        mac: MAC.to_owned(),
        dist: dist.folder.clone(),
        memory_mib,
        disks: vec![(disk, "FARRIER-BENCH".to_owned())],
        driver_info: Vec::new(),
        properties: Vec::new(),
    })?;
    let image = folder.join("tiny.raw");
    fs::write(&image, [0; 1 << 20])?;
    let digest = run_quietly(command("sha256sum").arg(&image))?;
    let sha256 = digest.split_whitespace().next().context("sha256sum printed nothing")?;
    let server = ImageServer::start(vec![Reply::File(image)])?;

    let console = lab.console(NODE);
    let mut seen = None;
    let instance = Instance { url: server.guest_url(), sha256, config_drive: None };
    let deployed = lab.deploy(NODE, &instance, |event| {
        // The agent has told of its heartbeat by then, and the console still is the ramdisk's.
        if event.event == "write_started" {
            seen = Some((console.text(), console.accelerator()));
        }
    });
    match (seen, deployed) {
        // Nothing boots from an image of zeros: what comes after the writing proves nothing.
        (Some((text, accelerator)), _) => measured(&text, accelerator),
        (None, Err(error)) => bail!("end of the serial console:\n{}\n{error}", console.tail()),
        (None, Ok(())) => bail!("farrier deploy told nothing of the writing; see {}", folder.display()),
    }
}

/// Reads the agent's own measurements off the console.
fn measured(console: &str, accelerator: &'static str) -> Result<Boot> {
    let started: f64 = field(console, USERLAND, "uptime")?;
    let heartbeat: f64 = field(console, HEARTBEAT, "uptime")?;
    Ok(Boot {
        kernel_to_heartbeat_s: heartbeat,
        userland_to_heartbeat_s: in_milliseconds(heartbeat - started),
        agent_rss_bytes: field(console, HEARTBEAT, "rss_bytes")?,
        accelerator,
    })
}

/// The value of `name=VALUE` in the line with `message`.
fn field<T: std::str::FromStr>(console: &str, message: &str, name: &str) -> Result<T> {
    let value = console.lines().find_map(|line| {
        let (_, fields) = line.split_once(message)?;
        fields.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    });
    value.with_context(|| format!("the console has no line \"{message}\" with {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_measurements_are_read_off_the_console() {
        let console = "[    1.0] Linux version 6.1\r\n\
                       farrier: 0.01s  INFO userland started uptime=1.250\r\n\
                       farrier: 1.26s  INFO first heartbeat accepted uptime=2.500 rss_bytes=8388608\r\n";
        let expected = Boot {
            kernel_to_heartbeat_s: 2.5,
            userland_to_heartbeat_s: 1.25,
            agent_rss_bytes: 8_388_608,
            accelerator: "tcg",
        };
        assert_eq!(measured(console, "tcg").unwrap(), expected);
        let error = measured("farrier: userland started uptime=1\n", "tcg").unwrap_err();
        assert_eq!(error.to_string(), "the console has no line \"first heartbeat accepted\" with uptime");
    }
}
