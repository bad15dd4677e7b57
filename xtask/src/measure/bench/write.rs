//! `cargo xtask bench write`: Farrier's write path beside what others do, on the same disk.
//!
//! A machine that others use is slow at times. So every image is written by everybody once in a round, with a plain
//! direct write of the same size among them, and of the rounds the median counts.

mod class;
mod device;
mod images;
mod page;
mod processes;
mod race;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::host::command::{is_root, run};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, cargo, write_json};
use class::{Class, Digest, Measured};
use race::Race;

const MIB: u64 = 1 << 20;

/// Writes images with Farrier and with common programs: seconds, bytes, memory and processor time.
#[derive(Debug, Args)]
pub struct WriteArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the figures.
    #[arg(long)]
    page: bool,
    /// Size of the disk that the images describe.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(64..))]
    size_mib: u64,
    /// How many rounds there are; of each case the median is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only these classes of disks [default: all].
    #[arg(long, value_enum, value_name = "CLASS", conflicts_with = "page")]
    class: Vec<Class>,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// How an image gets to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Writer {
    Farrier,
    /// `curl | dd oflag=direct`, with an unpacker between where the image is packed.
    CurlDd,
    /// `curl` to memory, then `qemu-img convert` as the Python agent calls it.
    DownloadConvert,
}

/// Images and who writes them. `curl | dd` proves no digest, so it runs once.
const CASES: &[(&str, &[Writer])] = &[
    ("dense.raw", &[Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert]),
    ("sparse.raw", &[Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert]),
    ("dense.qcow2", &[Writer::Farrier, Writer::DownloadConvert]),
    ("sparse.qcow2", &[Writer::Farrier, Writer::DownloadConvert]),
    ("dense.raw.zst", &[Writer::Farrier, Writer::CurlDd]),
    ("dense.raw.gz", &[Writer::Farrier, Writer::CurlDd]),
];
/// Most resident memory that Farrier may take.
const MEMORY_MIB: f64 = 64.0;

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Figures {
    class: Class,
    digest: Digest,
    image: String,
    writer: Writer,
    seconds: f64,
    /// Of the plain direct write in the same round.
    plain_seconds: f64,
    /// Transferred to the disk as data.
    bytes_written: u64,
    /// Sum of the largest resident memory of each process; files in memory are not in it.
    peak_rss_bytes: u64,
    cpu_seconds: f64,
}

/// What was measured, and on what.
#[derive(Debug, Serialize, Deserialize)]
pub struct WriteReport {
    /// Processors and kernel.
    machine: String,
    size_mib: u64,
    runs: u32,
    classes: Vec<Class>,
    /// What is held to a budget.
    measured: Vec<Measured>,
    /// Of Farrier, over all images.
    largest_rss_mib: f64,
    figures: Vec<Figures>,
}

/// Runs the command.
pub fn bench_write(arguments: &WriteArguments) -> Result<()> {
    requirements::ensure(&[Purpose::WriteBench], !arguments.no_install)?;
    ensure!(is_root(), "only root can write to block devices: run this as root");
    let workspace = Workspace::find()?;
    let driver = build_driver(&workspace)?;
    let classes = arguments.classes();
    let is_limited = classes.iter().any(|class| class.mib_per_second().is_some());
    let race = Race::prepare(&workspace, driver, arguments.size_mib, is_limited)?;
    let mut figures = Vec::new();
    for class in &classes {
        for median in medians(&race, arguments.runs, *class)? {
            println!("{}", median.line());
            figures.push(median);
        }
    }
    let report = summary(arguments, classes, figures);
    report.measured.iter().for_each(|measured| println!("{measured}"));
    println!("largest memory {:.0} MiB", report.largest_rss_mib);
    write_json(arguments.json.as_deref(), &report)?;
    report.require_budget()?;
    if arguments.page {
        crate::book::page::write(&workspace, &report)?;
    }
    Ok(())
}

/// Every image with every writer, and with every digest that the writer proves.
fn cases() -> impl Iterator<Item = (Digest, &'static str, Writer)> {
    let writers =
        CASES.iter().flat_map(|(image, writers)| writers.iter().map(move |writer| (*image, *writer)));
    let is_proven = |digest: Digest, writer: Writer| digest == Digest::Sha256 || writer != Writer::CurlDd;
    writers.flat_map(move |(image, writer)| {
        Digest::ALL
            .into_iter()
            .filter(move |digest| is_proven(*digest, writer))
            .map(move |digest| (digest, image, writer))
    })
}

/// What each case takes on the disks of a class.
fn medians(race: &Race, rounds: u32, class: Class) -> Result<Vec<Figures>> {
    let mut measured: Vec<Vec<Figures>> = cases().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        let plain_seconds = race.measure_plain(class)?;
        for (rounds, (digest, image, writer)) in measured.iter_mut().zip(cases()) {
            rounds.push(race.measure((class, digest), image, writer, plain_seconds)?);
        }
    }
    Ok(measured.into_iter().map(median).collect())
}

fn median(mut rounds: Vec<Figures>) -> Figures {
    rounds.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    rounds.swap_remove(rounds.len() / 2)
}

fn summary(arguments: &WriteArguments, classes: Vec<Class>, figures: Vec<Figures>) -> WriteReport {
    let memory = figures.iter().filter(|figures| figures.writer == Writer::Farrier);
    WriteReport {
        machine: crate::book::page::machine(),
        size_mib: arguments.size_mib,
        runs: arguments.runs,
        measured: class::measured(&classes, &figures),
        classes,
        largest_rss_mib: memory.map(|figures| figures.peak_rss_bytes).max().unwrap_or(0) as f64 / MIB as f64,
        figures,
    }
}

impl WriteArguments {
    fn classes(&self) -> Vec<Class> {
        if self.class.is_empty() { Class::ALL.to_vec() } else { self.class.clone() }
    }
}

impl WriteReport {
    /// Fails when anything is over its budget.
    fn require_budget(&self) -> Result<()> {
        let missed = self.measured.iter().filter(|measured| !measured.is_met());
        let mut missed: Vec<_> = missed.map(ToString::to_string).collect();
        if self.largest_rss_mib > MEMORY_MIB {
            missed.push(format!("{:.0} MiB of memory, {MEMORY_MIB} are allowed", self.largest_rss_mib));
        }
        ensure!(missed.is_empty(), "over the budget, and no page is written:\n{}", missed.join("\n"));
        Ok(())
    }
}

impl Writer {
    fn name(self) -> &'static str {
        match self {
            Self::Farrier => "Farrier",
            Self::CurlDd => "curl | dd",
            Self::DownloadConvert => "download, convert",
        }
    }
}

impl Figures {
    /// Seconds, in units of the plain write's.
    fn slowness(&self) -> f64 {
        self.seconds / self.plain_seconds
    }

    fn line(&self) -> String {
        format!(
            "{:12} {:8} {:14} {:18} {:6.2} s ({:4.2} of plain), {:5} MiB written, {:5.1} MiB memory, {:5.2} s processor",
            self.class.name(),
            self.digest.name(),
            self.image,
            self.writer.name(),
            self.seconds,
            self.slowness(),
            self.bytes_written / MIB,
            self.peak_rss_bytes as f64 / MIB as f64,
            self.cpu_seconds
        )
    }
}

fn build_driver(workspace: &Workspace) -> Result<PathBuf> {
    // Linking as a whole takes minutes and changes nothing that is measured here.
    let settings = ["--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"];
    let mut build = cargo();
    build.args(["build", "--release", "-p", "farrier-imaging", "--example", "write_image"]).args(settings);
    run(build.current_dir(&workspace.root))?;
    Ok(workspace.target.join("release/examples/write_image"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x31_both_digests_are_measured_wherever_one_is_proven() {
        let all: Vec<_> = cases().collect();
        for image in ["dense.raw", "sparse.raw", "dense.qcow2", "sparse.qcow2"] {
            for digest in Digest::ALL {
                for writer in [Writer::Farrier, Writer::DownloadConvert] {
                    assert!(all.contains(&(digest, image, writer)), "{image} {}", digest.name());
                }
            }
        }
        assert!(!all.contains(&(Digest::Sha512, "dense.raw", Writer::CurlDd)));
    }

    #[test]
    fn x31_over_the_budget_there_is_no_page() {
        let figures = |image, writer, seconds| Figures {
            class: Class::HardDisk,
            digest: Digest::Sha256,
            image: String::from(image),
            writer,
            seconds,
            plain_seconds: 5.0,
            bytes_written: 0,
            peak_rss_bytes: 20 * MIB,
            cpu_seconds: 1.0,
        };
        for (dense, memory_mib, is_met) in [(5.2, 20.0, true), (6.0, 20.0, false), (5.2, 65.0, false)] {
            let figures = vec![
                figures("dense.raw", Writer::Farrier, dense),
                figures("sparse.raw", Writer::Farrier, 1.0),
                figures("dense.qcow2", Writer::Farrier, 5.1),
                figures("sparse.qcow2", Writer::Farrier, 1.0),
                figures("sparse.qcow2", Writer::DownloadConvert, 5.0),
            ];
            let measured = class::measured(&[Class::HardDisk], &figures);
            let measured = measured.into_iter().filter(|one| one.digest == Digest::Sha256).collect();
            let classes = vec![Class::HardDisk];
            let report = WriteReport {
                machine: String::new(),
                size_mib: 64,
                runs: 1,
                classes,
                measured,
                largest_rss_mib: memory_mib,
                figures,
            };
            assert_eq!(report.require_budget().is_ok(), is_met, "{dense} {memory_mib}");
        }
    }
}
