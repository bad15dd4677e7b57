//! `cargo xtask bench write`: Farrier's write path beside what others do, on the same disk.
//!
//! Each write has a plain direct write of the same size beside it, so that the speed of that moment is
//! known. A machine that others use is slow at times; ratios are taken between neighbours, and the
//! median counts.

mod device;
mod images;
mod page;
mod processes;
mod race;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

use crate::command::{is_root, run};
use crate::requirements::{self, Purpose};
use crate::workspace::{Workspace, cargo, write_json};
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
    /// How often each case is run; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Speed in MiB per second at which the disk is held in a second part, that of a hard disk; 0 leaves that
    /// part out.
    #[arg(long, value_name = "MIB", default_value_t = 200)]
    disk_speed: u64,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// How an image gets to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Writer {
    Farrier,
    /// `curl | dd oflag=direct`, with an unpacker between where the image is packed.
    CurlDd,
    /// `curl` to memory, then `qemu-img convert` as the Python agent calls it.
    DownloadConvert,
}

/// The disk: as fast as it is, or held at a speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Disk {
    mib_per_second: Option<u64>,
}

/// Images and who writes them.
const CASES: &[(&str, &[Writer])] = &[
    ("dense.raw", &[Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert]),
    ("sparse.raw", &[Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert]),
    ("dense.qcow2", &[Writer::Farrier, Writer::DownloadConvert]),
    ("sparse.qcow2", &[Writer::Farrier, Writer::DownloadConvert]),
    ("dense.raw.zst", &[Writer::Farrier, Writer::CurlDd]),
    ("dense.raw.gz", &[Writer::Farrier, Writer::CurlDd]),
];

/// One run.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    disk: Disk,
    image: &'static str,
    writer: Writer,
    seconds: f64,
    /// Of the plain direct write beside it.
    plain_seconds: f64,
    /// Transferred to the disk as data.
    bytes_written: u64,
    /// Sum of the largest resident memory of each process; files in memory are not in it.
    peak_rss_bytes: u64,
    cpu_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    size_mib: u64,
    runs: u32,
    ratios: Vec<Ratios>,
    /// Of Farrier, over all images.
    largest_rss_mib: f64,
    figures: Vec<Figures>,
}

/// What Farrier achieved on one disk, in units of others.
#[derive(Debug, Serialize)]
struct Ratios {
    disk: Disk,
    /// Speed in units of the plain write's.
    dense_to_plain: f64,
    /// Time in units of the dense image's.
    sparse_to_dense: f64,
    /// Speed in units of download and convert's.
    dense_qcow2_to_convert: f64,
    sparse_qcow2_to_convert: f64,
}

/// Runs the command.
pub fn bench_write(arguments: &WriteArguments) -> Result<()> {
    requirements::ensure(&[Purpose::WriteBench], !arguments.no_install)?;
    ensure!(is_root(), "only root can write to block devices: run this as root");
    let workspace = Workspace::find()?;
    let driver = build_driver(&workspace)?;
    let limited = Some(arguments.disk_speed).filter(|speed| *speed > 0);
    let race = Race::prepare(&workspace, driver, arguments.size_mib, limited.is_some())?;
    let disks: Vec<_> =
        [None].into_iter().chain(limited.map(Some)).map(|mib_per_second| Disk { mib_per_second }).collect();
    let mut figures = Vec::new();
    for disk in &disks {
        for (image, writers) in CASES {
            for writer in *writers {
                let median = median(&race, arguments.runs, *disk, image, *writer)?;
                println!("{}", median.line());
                figures.push(median);
            }
        }
    }
    let report = summary(arguments, &disks, figures);
    report.ratios.iter().for_each(|ratios| println!("{}", ratios.line()));
    println!("largest memory {:.0} MiB", report.largest_rss_mib);
    if arguments.page {
        page::write(&workspace, &report)?;
    }
    write_json(arguments.json.as_deref(), &report)
}

fn median(race: &Race, runs: u32, disk: Disk, image: &'static str, writer: Writer) -> Result<Figures> {
    let mut figures = Vec::new();
    for number in 0..runs {
        figures.push(race.measure(disk, image, writer, number.is_multiple_of(2))?);
    }
    figures.sort_by(|one, other| one.slowness().total_cmp(&other.slowness()));
    Ok(figures.swap_remove(figures.len() / 2))
}

fn summary(arguments: &WriteArguments, disks: &[Disk], figures: Vec<Figures>) -> Report {
    let memory = figures.iter().filter(|figures| figures.writer == Writer::Farrier);
    Report {
        size_mib: arguments.size_mib,
        runs: arguments.runs,
        ratios: disks.iter().map(|disk| ratios(*disk, &figures)).collect(),
        largest_rss_mib: memory.map(|figures| figures.peak_rss_bytes).max().unwrap_or(0) as f64 / MIB as f64,
        figures,
    }
}

/// Ratios of neighbours: each run is related to the plain write beside it.
fn ratios(disk: Disk, figures: &[Figures]) -> Ratios {
    let slowness = |image: &str, writer: Writer| {
        let is_wanted = |one: &&Figures| one.disk == disk && one.image == image && one.writer == writer;
        figures.iter().find(is_wanted).map_or(f64::NAN, Figures::slowness)
    };
    let farrier = |image: &str| slowness(image, Writer::Farrier);
    let convert = |image: &str| slowness(image, Writer::DownloadConvert);
    Ratios {
        disk,
        dense_to_plain: 1.0 / farrier("dense.raw"),
        sparse_to_dense: farrier("sparse.raw") / farrier("dense.raw"),
        dense_qcow2_to_convert: convert("dense.qcow2") / farrier("dense.qcow2"),
        sparse_qcow2_to_convert: convert("sparse.qcow2") / farrier("sparse.qcow2"),
    }
}

impl Disk {
    fn name(self) -> String {
        self.mib_per_second.map_or("disk as it is".to_owned(), |speed| format!("disk of {speed} MiB/s"))
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
    /// Seconds, in units of the plain write beside it.
    fn slowness(&self) -> f64 {
        self.seconds / self.plain_seconds
    }

    fn line(&self) -> String {
        format!(
            "{:18} {:14} {:18} {:6.2} s ({:4.2} of plain), {:5} MiB written, {:5.1} MiB memory, {:5.2} s processor",
            self.disk.name(),
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

impl Ratios {
    fn line(&self) -> String {
        format!(
            "{}: dense to plain {:.2}, sparse to dense {:.2}, qcow2 to download and convert {:.1} (dense) and \
             {:.1} (sparse)",
            self.disk.name(),
            self.dense_to_plain,
            self.sparse_to_dense,
            self.dense_qcow2_to_convert,
            self.sparse_qcow2_to_convert
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
