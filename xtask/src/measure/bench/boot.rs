//! `cargo xtask bench boot`: the ramdisk beside one with the Python agent, in the same emulated machine.
//!
//! A clock outside of the machine measures both, from the kernel's first line on the console to the
//! heartbeat's arrival. The smallest memory is searched for by booting.

mod page;
mod report;

pub use report::BootReport;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::machine::{Boot, Hardware, free_port};

use self::report::{Figures, own_figures};
use super::{DISK_BYTES, HEARTBEAT, MAC};
use crate::book::page::in_milliseconds;
use crate::build::{dist, python_ramdisk};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

/// What the kernel prints first. Without an early console it would be late on the serial line.
const KERNEL: &str = "Linux version";
/// What it prints when it starts the first process.
const INIT: &str = "as init process";
const EARLY_CONSOLE: &str = "earlycon=uart8250,io,0x3f8,115200 console=ttyS0";
/// A machine that restarts after a panic has failed; QEMU ends then.
const END_AFTER_PANIC: &str = "panic=-1";
/// What every test machine runs on.
const ACCELERATOR: &str = "tcg";
/// A boot that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20 * 60);
const POLL: Duration = Duration::from_millis(100);
/// How much longer than in the large machine a boot in a small one may take, counted from power on: other
/// work of this machine must not look like a lack of memory.
const PATIENCE: u32 = 5;
/// Steps in which the smallest memory is searched for, in MiB: up to a size, in steps of so many.
const LADDER: [(u32, u32); 3] = [(512, 32), (1024, 64), (u32::MAX, 128)];
/// The smallest machine that is tried, in MiB.
const FLOOR: u32 = 96;

/// Boots the ramdisk, and one with the Python agent, in a virtual machine: time from the kernel's start to
/// the first heartbeat, size, and the smallest memory that is enough.
#[derive(Debug, Args)]
pub struct BootArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Memory in MiB of the machine in which the time is measured.
    #[arg(long, value_name = "MIB", default_value_t = 3072, value_parser = clap::value_parser!(u32).range(256..))]
    memory_mib: u32,
    /// How often to boot for the time; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Leaves the Python agent out.
    #[arg(long, conflicts_with = "page")]
    alone: bool,
    /// Writes the page of the book with the figures, if all are within their budgets.
    #[arg(long)]
    page: bool,
    /// Measures the ramdisk in this folder instead of building one.
    #[arg(long, value_name = "DIR")]
    dist: Option<PathBuf>,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// A folder with a kernel and a ramdisk.
struct Ramdisk<'a> {
    name: &'a str,
    folder: &'a Path,
}

/// How long a boot took to its heartbeat.
#[derive(Debug, Clone, Copy)]
struct Took {
    since_power_on: Duration,
    since_kernel: Duration,
    since_init: Duration,
}

/// Runs the benchmark.
pub fn bench(arguments: &BootArguments) -> Result<()> {
    let mut purposes = vec![Purpose::Machine];
    if arguments.dist.is_none() {
        purposes.push(Purpose::Dist);
    }
    if !arguments.alone {
        purposes.extend([Purpose::InstanceImage, Purpose::Python, Purpose::Rival]);
    }
    requirements::ensure(&purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => folder.clone(),
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    let rival = if arguments.alone { None } else { Some(python_ramdisk::cached(&workspace)?) };
    let folder = workspace.cache().join(format!("bench-{}", std::process::id()));
    let bench = Bench { folder, memory_mib: arguments.memory_mib, runs: arguments.runs };

    let farrier = Ramdisk { name: "Farrier", folder: &dist };
    let mut console = String::new();
    let figures = bench.measure(&farrier, &mut console)?;
    let own = own_figures(&console)?;
    let python_agent = rival
        .map(|folder| bench.measure(&Ramdisk { name: "Python agent", folder: &folder }, &mut String::new()));
    let python_agent = python_agent.transpose()?;
    let comparison = python_agent.as_ref().map(|python_agent| figures.beside(python_agent));
    let report = BootReport {
        farrier: figures,
        own,
        python_agent,
        comparison,
        accelerator: ACCELERATOR.to_owned(),
        memory_mib: arguments.memory_mib,
        runs: arguments.runs,
    };
    print!("{}", report.table());
    write_json(arguments.json.as_deref(), &report)?;
    report.check()?;
    if arguments.page {
        crate::book::page::write(&workspace, &report)?;
    }
    Ok(())
}

/// The machine that all are measured in.
struct Bench {
    folder: PathBuf,
    memory_mib: u32,
    runs: u32,
}

impl Bench {
    /// Measures a ramdisk; `console` becomes that of the first boot.
    fn measure(&self, ramdisk: &Ramdisk<'_>, console: &mut String) -> Result<Figures> {
        let mut boots = Vec::new();
        for run in 1..=self.runs {
            let booted = self.boot(ramdisk, self.memory_mib, LIMIT, console)?;
            let took = booted
                .with_context(|| format!("no heartbeat; end of the serial console:\n{}", tail(console)))?;
            let seconds = took.since_kernel.as_secs_f64();
            println!("{}, run {run}: {seconds:.2} s from the kernel's start to the heartbeat", ramdisk.name);
            boots.push(took);
        }
        boots.sort_by_key(|took| took.since_kernel);
        let median = boots[boots.len() / 2];
        let patience = median.since_power_on * PATIENCE;
        let smallest_memory_mib = smallest(&ladder(self.memory_mib), |memory_mib| {
            let works = self.boot(ramdisk, memory_mib, patience, &mut String::new())?.is_some();
            println!("{}, {memory_mib} MiB: {}", ramdisk.name, if works { "enough" } else { "too little" });
            Ok(works)
        })?;
        let bytes = |name| Ok::<_, anyhow::Error>(fs::metadata(ramdisk.folder.join(name))?.len());
        Ok(Figures {
            kernel_to_heartbeat_s: in_milliseconds(median.since_kernel.as_secs_f64()),
            init_to_heartbeat_s: in_milliseconds(median.since_init.as_secs_f64()),
            vmlinuz_bytes: bytes("vmlinuz")?,
            initramfs_bytes: bytes("initramfs.img")?,
            smallest_memory_mib,
        })
    }

    /// The time to the heartbeat; nothing when there is none in `limit`.
    fn boot(
        &self,
        ramdisk: &Ramdisk<'_>,
        memory_mib: u32,
        limit: Duration,
        text: &mut String,
    ) -> Result<Option<Took>> {
        fs::create_dir_all(&self.folder)?;
        let disk = self.folder.join("disk.raw");
        File::create(&disk)?.set_len(DISK_BYTES)?;
        let hardware = Hardware {
            mac: MAC.to_owned(),
            agent_port: free_port()?,
            keyboard_port: free_port()?,
            disks: vec![(disk, "FARRIER-BENCH")],
            media: Vec::new(),
            folder: self.folder.clone(),
        };
        let took = time_to_heartbeat(&hardware, ramdisk, memory_mib, limit, text);
        fs::remove_dir_all(&self.folder)?;
        took
    }
}

fn time_to_heartbeat(
    hardware: &Hardware,
    ramdisk: &Ramdisk<'_>,
    memory_mib: u32,
    limit: Duration,
    text: &mut String,
) -> Result<Option<Took>> {
    let conductor = StubConductor::start()?;
    let url = conductor.guest_url();
    let parameters = format!("{EARLY_CONSOLE} {END_AFTER_PANIC} ipa-api-url={url}");
    let arguments = ["-m", &memory_mib.to_string(), "-no-reboot"].map(str::to_owned);
    let console = hardware.console();
    let switched_on = Instant::now();
    let mut machine = hardware.boot_with(Boot::Ramdisk(ramdisk.folder, &parameters), &arguments)?;
    let mut moment = |seen: &dyn Fn() -> bool| -> Result<Option<Instant>> {
        while switched_on.elapsed() < limit && machine.is_on()? {
            if seen() {
                return Ok(Some(Instant::now()));
            }
        }
        Ok(None)
    };
    let kernel = moment(&|| console.wait_for(KERNEL, 0, POLL).is_ok())?;
    let init = moment(&|| console.wait_for(INIT, 0, POLL).is_ok())?;
    let heartbeat = moment(&|| conductor.wait_for("/v1/heartbeat", POLL).is_some())?;
    let took = kernel.zip(init).zip(heartbeat).map(|((kernel, init), heartbeat)| Took {
        since_power_on: heartbeat - switched_on,
        since_kernel: heartbeat - kernel,
        since_init: heartbeat - init,
    });
    if took.is_some() {
        // Farrier tells of its memory once the heartbeat was answered; others never do.
        console.wait_for(HEARTBEAT, 0, Duration::from_secs(2)).ok();
    }
    *text = console.text();
    Ok(took)
}

/// The sizes of memory below `top` that are tried, in MiB, and `top`.
fn ladder(top: u32) -> Vec<u32> {
    let step = |size: &u32| LADDER.iter().find(|(end, _)| size < end).map_or(0, |(_, step)| *step);
    let sizes = std::iter::successors(Some(FLOOR), |size| Some(size + step(size)));
    sizes.take_while(|size| *size < top).chain([top]).collect()
}

/// The first size that works, of which the last one is known to do so.
fn smallest(sizes: &[u32], mut works: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    let (mut low, mut high) = (0, sizes.len() - 1);
    while low < high {
        let middle = usize::midpoint(low, high);
        if works(sizes[middle])? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(sizes[high])
}

fn tail(console: &str) -> String {
    let lines: Vec<_> = console.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_memory_is_found_in_few_boots() {
        let sizes = ladder(3072);
        assert_eq!((sizes[0], sizes[1], sizes.last()), (96, 128, Some(&3072)));
        assert!(sizes.is_sorted() && sizes.contains(&256) && sizes.contains(&1024) && sizes.contains(&2048));
        for least in [1, 256, 300, 3000, 3072] {
            let mut tries = 0;
            let found = smallest(&sizes, |size| {
                tries += 1;
                Ok(size >= least)
            });
            assert_eq!(found.unwrap(), *sizes.iter().find(|size| **size >= least).unwrap());
            assert!(tries <= 6, "{tries}");
        }
    }
}
