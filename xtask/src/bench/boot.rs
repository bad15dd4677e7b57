//! `cargo xtask bench boot`: the ramdisk beside one with the Python agent, in the same emulated machine.
//!
//! A clock outside of the machine measures both, from the kernel's first line on the console to the
//! heartbeat's arrival. The smallest memory is searched for by booting.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_tests::machine::{Boot, Hardware, free_port};
use farrier_tests::stub_conductor::StubConductor;
use serde::Serialize;

use super::{DISK_BYTES, HEARTBEAT, MAC, field};
use crate::requirements::{self, Purpose};
use crate::timeline::in_milliseconds;
use crate::workspace::{Workspace, write_json};
use crate::{dist, python_ramdisk};

/// What the agent prints when it starts as the first process.
const USERLAND: &str = "userland started";
/// What the kernel prints first. Without an early console it would be late on the serial line.
const KERNEL: &str = "Linux version";
const EARLY_CONSOLE: &str = "earlycon=uart8250,io,0x3f8,115200 console=ttyS0";
/// A machine that restarts after a panic has failed; QEMU ends then.
const END_AFTER_PANIC: &str = "panic=-1";
/// What every test machine runs on.
const ACCELERATOR: &str = "tcg";
/// A boot that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20 * 60);
const POLL: Duration = Duration::from_millis(100);
/// How much longer than in the large machine a boot in a small one may take.
const PATIENCE: u32 = 3;
/// Steps in which the smallest memory is searched for, in MiB: up to a size, in steps of so many.
const LADDER: [(u32, u32); 3] = [(512, 32), (1024, 64), (u32::MAX, 128)];
/// The smallest machine that is tried, in MiB.
const FLOOR: u32 = 96;

/// How many times faster than the Python agent's the way to the first heartbeat must be.
const FASTER: f64 = 10.0;
/// What part of the Python agent's size and memory may be taken.
const PART: f64 = 0.2;

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
    #[arg(long)]
    alone: bool,
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

/// What was measured of a ramdisk.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    kernel_to_heartbeat_s: f64,
    vmlinuz_bytes: u64,
    initramfs_bytes: u64,
    smallest_memory_mib: u32,
}

/// What only Farrier tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct OwnFigures {
    userland_to_heartbeat_s: f64,
    agent_rss_bytes: u64,
}

/// Farrier's figures as parts of the Python agent's.
#[derive(Debug, Clone, Copy, Serialize)]
struct Comparison {
    times_faster: f64,
    part_of_size: f64,
    part_of_memory: f64,
}

#[derive(Debug, Serialize)]
struct BootReport {
    #[serde(flatten)]
    farrier: Figures,
    #[serde(flatten)]
    own: OwnFigures,
    #[serde(skip_serializing_if = "Option::is_none")]
    python_agent: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    accelerator: &'static str,
    memory_mib: u32,
    runs: u32,
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
        accelerator: ACCELERATOR,
        memory_mib: arguments.memory_mib,
        runs: arguments.runs,
    };
    print!("{}", report.table());
    write_json(arguments.json.as_deref(), &report)?;
    comparison.map_or(Ok(()), Comparison::check)
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
        let mut seconds = Vec::new();
        for run in 1..=self.runs {
            let booted = self.boot(ramdisk, self.memory_mib, LIMIT, console)?;
            let took = booted
                .with_context(|| format!("no heartbeat; end of the serial console:\n{}", tail(console)))?;
            println!("{}, run {run}: {took:.2} s from the kernel's start to the heartbeat", ramdisk.name);
            seconds.push(took);
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let patience = Duration::from_secs_f64(median * f64::from(PATIENCE)) + Duration::from_secs(60);
        let smallest_memory_mib = smallest(&ladder(self.memory_mib), |memory_mib| {
            let works = self.boot(ramdisk, memory_mib, patience, &mut String::new())?.is_some();
            println!("{}, {memory_mib} MiB: {}", ramdisk.name, if works { "enough" } else { "too little" });
            Ok(works)
        })?;
        let bytes = |name| Ok::<_, anyhow::Error>(fs::metadata(ramdisk.folder.join(name))?.len());
        Ok(Figures {
            kernel_to_heartbeat_s: in_milliseconds(median),
            vmlinuz_bytes: bytes("vmlinuz")?,
            initramfs_bytes: bytes("initramfs.img")?,
            smallest_memory_mib,
        })
    }

    /// Seconds from the kernel's first line to the heartbeat; nothing when there is none in `limit`.
    fn boot(
        &self,
        ramdisk: &Ramdisk<'_>,
        memory_mib: u32,
        limit: Duration,
        text: &mut String,
    ) -> Result<Option<f64>> {
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
) -> Result<Option<f64>> {
    let conductor = StubConductor::start()?;
    let url = conductor.guest_url();
    let parameters = format!("{EARLY_CONSOLE} {END_AFTER_PANIC} ipa-api-url={url}");
    let arguments = ["-m", &memory_mib.to_string(), "-no-reboot"].map(str::to_owned);
    let console = hardware.console();
    let switched_on = Instant::now();
    let mut machine = hardware.boot_with(Boot::Ramdisk(ramdisk.folder, &parameters), &arguments)?;
    let mut kernel = None;
    let mut took = None;
    while took.is_none() && switched_on.elapsed() < limit && machine.is_on()? {
        let Some(started) = kernel else {
            kernel = console.wait_for(KERNEL, 0, POLL).ok().map(|()| Instant::now());
            continue;
        };
        took = conductor.wait_for("/v1/heartbeat", POLL).map(|_| started.elapsed().as_secs_f64());
    }
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

/// Reads the agent's own measurements off the console.
fn own_figures(console: &str) -> Result<OwnFigures> {
    let started: f64 = field(console, USERLAND, "uptime")?;
    let heartbeat: f64 = field(console, HEARTBEAT, "uptime")?;
    Ok(OwnFigures {
        userland_to_heartbeat_s: in_milliseconds(heartbeat - started),
        agent_rss_bytes: field(console, HEARTBEAT, "rss_bytes")?,
    })
}

impl Figures {
    fn bytes(&self) -> u64 {
        self.vmlinuz_bytes + self.initramfs_bytes
    }

    fn beside(&self, other: &Self) -> Comparison {
        Comparison {
            times_faster: in_milliseconds(other.kernel_to_heartbeat_s / self.kernel_to_heartbeat_s),
            part_of_size: in_milliseconds(self.bytes() as f64 / other.bytes() as f64),
            part_of_memory: in_milliseconds(
                f64::from(self.smallest_memory_mib) / f64::from(other.smallest_memory_mib),
            ),
        }
    }
}

impl Comparison {
    fn check(self) -> Result<()> {
        if self.times_faster < FASTER || self.part_of_size > PART || self.part_of_memory > PART {
            bail!("the budget is {FASTER} times faster, {PART} of the size and {PART} of the memory");
        }
        Ok(())
    }
}

impl BootReport {
    fn table(&self) -> String {
        let mut table = format!("{:<34} {:>10}", "", "Farrier");
        let columns: Vec<_> =
            [Some(&self.farrier), self.python_agent.as_ref()].into_iter().flatten().collect();
        table += if self.python_agent.is_some() { "  Python agent\n" } else { "\n" };
        let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let mut row = |name: &str, value: &dyn Fn(&Figures) -> String| {
            table += &format!("{name:<34}");
            for (figures, width) in columns.iter().zip([10, 13]) {
                table += &format!(" {:>width$}", value(figures));
            }
            table.push('\n');
        };
        row("kernel + ramdisk", &|figures| mebibytes(figures.bytes()));
        row("smallest machine", &|figures| format!("{} MiB", figures.smallest_memory_mib));
        row("kernel's start to first heartbeat", &|figures| {
            format!("{:.2} s", figures.kernel_to_heartbeat_s)
        });
        let own = &self.own;
        table += &format!(
            "Farrier's user space takes {:.2} s, its agent {} KiB\n",
            own.userland_to_heartbeat_s,
            own.agent_rss_bytes >> 10
        );
        if let Some(Comparison { times_faster, part_of_size, part_of_memory }) = self.comparison {
            table += &format!(
                "{times_faster:.1} times faster, {part_of_size:.3} of the size, {part_of_memory:.3} of the memory\n"
            );
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_measurements_are_read_off_the_console() {
        let console = "[    1.0] Linux version 6.1\r\n\
                       farrier: 0.01s  INFO userland started uptime=1.250\r\n\
                       farrier: 1.26s  INFO first heartbeat accepted uptime=2.500 rss_bytes=8388608\r\n";
        let expected = OwnFigures { userland_to_heartbeat_s: 1.25, agent_rss_bytes: 8_388_608 };
        assert_eq!(own_figures(console).unwrap(), expected);
        let error = own_figures("farrier: userland started uptime=1\n").unwrap_err();
        assert_eq!(error.to_string(), "the console has no line \"first heartbeat accepted\" with uptime");
    }

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

    #[test]
    fn each_budget_counts() {
        let figures = |seconds, bytes, memory| Figures {
            kernel_to_heartbeat_s: seconds,
            vmlinuz_bytes: 0,
            initramfs_bytes: bytes,
            smallest_memory_mib: memory,
        };
        let rival = figures(100.0, 500, 2000);
        for (own, is_met) in [
            (figures(10.0, 100, 400), true),
            (figures(10.1, 100, 400), false),
            (figures(10.0, 101, 400), false),
            (figures(10.0, 100, 448), false),
        ] {
            assert_eq!(own.beside(&rival).check().is_ok(), is_met, "{own:?}");
        }
    }
}
