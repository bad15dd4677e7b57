//! `cargo xtask power-cut`: the power goes at any point of a deployment, again and again.
//!
//! A machine with the real ramdisk deploys to a disk that records what it is asked for, once for each kind of
//! deployment and each sector size; or it exports the disk, and is written by the conductor's code. A cut at any of these requests leaves what was flushed before it, and of what
//! came later each sector or not; that is put on a medium, for as many requests and chances as one likes, and
//! looked at with other people's tools. Some cuts are made in the machine itself as well.

mod judge;
mod loop_disk;
mod report;
mod site;
mod subject;
mod writer;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use farrier_tests::disk::power_replay::Replay;
use farrier_tests::disk::volatile::VolatileDisk;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use self::judge::{Judge, Left};
use self::loop_disk::LoopDisk;
pub use self::report::PowerCutReport;

use self::report::Series;
use self::site::Site;
use self::subject::{Kind, Subject};
use self::writer::Writer;
use crate::book::page;
use crate::build::dist;
use crate::host::command::{command, run_quietly};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

/// A disk that the default rule for the root disk accepts.
const DISK_BYTES: u64 = 5 << 30;

/// Cuts the power of a disk at any point of deployments and looks at what is left.
#[derive(Debug, Args)]
pub struct PowerCutArguments {
    /// How often in each kind of deployment.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    cuts: u32,
    /// How often the power goes in the machine itself, in each kind of deployment of a whole-disk image.
    #[arg(long, value_name = "N", default_value_t = 1)]
    machine_cuts: u32,
    /// Only these kinds [default: all].
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "page")]
    kind: Vec<Kind>,
    /// Only written by these [default: both].
    #[arg(long, value_enum, value_name = "WRITER", conflicts_with = "page")]
    writer: Vec<Writer>,
    /// Makes the points the same as in another run [default: by chance].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many of the disks with all of the image are booted.
    #[arg(long, value_name = "N", default_value_t = 2)]
    boots: u32,
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

impl PowerCutArguments {
    /// Every kind that is wanted, by every writer, on every sector size it goes to. What is preserved is what the one
    /// before it has left.
    fn series(&self) -> Vec<(Writer, Kind, u32)> {
        let all = <Kind as clap::ValueEnum>::value_variants();
        let is_wanted = |kind: Kind| {
            let is_base = kind == Kind::Partition && self.kind.contains(&Kind::PreserveEphemeral);
            self.kind.is_empty() || self.kind.contains(&kind) || is_base
        };
        let kinds = |size: u32| {
            all.iter().filter(move |kind| is_wanted(**kind) && kind.sector_sizes().contains(&size))
        };
        let writers = Writer::ALL.into_iter();
        let writers = writers.filter(|writer| self.writer.is_empty() || self.writer.contains(writer));
        let disks = writers.flat_map(|writer| [512, 4096].map(|size| (writer, size)));
        disks.flat_map(|(writer, size)| kinds(size).map(move |kind| (writer, *kind, size))).collect()
    }
}

/// Runs the command. A disk with anything else than nothing or all is an error, and is kept.
pub fn power_cut(arguments: &PowerCutArguments) -> Result<()> {
    let purposes = [Purpose::Dist, Purpose::Machine, Purpose::Disk, Purpose::WriteBench];
    requirements::ensure(&purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => folder.clone(),
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    let writer = workspace.build_writer_of_exported_disks()?;
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let folder = workspace.cache().join(format!("power-cut-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut site = Site::start(&dist, &writer, &folder)?;
    let (series, booted) = run_series(arguments, seed, &mut site)?;
    drop(site);
    fs::remove_dir_all(&folder)?;
    let PowerCutArguments { cuts, machine_cuts, .. } = *arguments;
    let report = PowerCutReport { seed, cuts, machine_cuts, booted, series };
    println!("{}", report.line());
    if arguments.page {
        page::write(&workspace, &report)?;
    }
    write_json(arguments.json.as_deref(), &report)
}

/// What came of all kinds, and how many of the disks were booted.
fn run_series(arguments: &PowerCutArguments, seed: u64, site: &mut Site) -> Result<(Vec<Series>, u32)> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut all = Vec::new();
    let mut boots = arguments.boots;
    for (writer, kind, sector_size) in arguments.series() {
        let subject = Subject::new(kind, writer, sector_size, &site.folder)?;
        let what = format!("{}, by the {}, sectors of {sector_size} bytes", kind.name(), writer.name());
        let series = cut_often(site, &subject, arguments, &mut boots, &mut chance).context(what)?;
        println!("{}", series.line());
        all.push(series);
    }
    Ok((all, arguments.boots - boots))
}

/// One deployment, and all the cuts in it.
fn cut_often(
    site: &mut Site,
    subject: &Subject,
    arguments: &PowerCutArguments,
    boots: &mut u32,
    chance: &mut StdRng,
) -> Result<Series> {
    let base = site.folder.join("base.img");
    site.exchange_disk(subject)?;
    copy(&VolatileDisk::medium(&site.folder), &base)?;
    let events = site.record(subject)?;
    let disk = LoopDisk::attach(&base, subject.sector_size)?;
    let judge = Judge::new(subject, &disk, &events, &site.folder)?;
    let medium = File::options().read(true).write(true).open(disk.path())?;
    let mut replay = Replay::new(medium, &events, subject.sector_size as usize);
    let mut series = Series::new(subject, events.len());
    for requests in points(events.len(), arguments.cuts, chance) {
        replay.cut(requests, chance.random())?;
        let kept =
            || format!("cut at request {requests} of {}; it is kept in {}", events.len(), base.display());
        let left = judge.judge(disk.path()).with_context(kept)?;
        series.add(left);
        let boots_here = subject.sector_size == 512 && subject.kind.is_whole_disk();
        if left == Left::Everything && boots_here && *boots > 0 {
            let copied = site.folder.join("boot.img");
            copy(disk.path(), &copied)?;
            site::boot(&copied, &site.folder)?;
            *boots -= 1;
        }
    }
    // All of it is the deployment itself: what is judged is what was recorded.
    replay.cut(events.len(), 0)?;
    let end = judge.judge(disk.path())?;
    ensure!(end == Left::Everything, "the recording ends without a flush: {end:?}");
    if subject.kind.is_whole_disk() {
        for _ in 0..arguments.machine_cuts {
            let left = cut_in_the_machine(site, subject, &judge, events.len() as u64, chance)?;
            series.add_from_machine(left);
        }
    }
    disk.detach()?;
    Ok(series)
}

/// Cuts for every part of a deployment alike, by chance within each, in order.
fn points(events: usize, cuts: u32, chance: &mut StdRng) -> Vec<usize> {
    let mut points: Vec<_> = (0..cuts as usize)
        .map(|cut| {
            let part = |number: usize| number * events / cuts as usize;
            chance.random_range(part(cut)..=part(cut + 1).max(part(cut)))
        })
        .collect();
    points.sort_unstable();
    points
}

fn cut_in_the_machine(
    site: &mut Site,
    subject: &Subject,
    judge: &Judge<'_>,
    events: u64,
    chance: &mut StdRng,
) -> Result<Left> {
    let requests = chance.random_range(0..events / 2);
    site.exchange_disk(subject)?;
    site.lose_power(subject, requests, chance.random())?;
    let file = site.folder.join("cut.img");
    copy(&VolatileDisk::medium(&site.folder), &file)?;
    let disk = LoopDisk::attach(&file, subject.sector_size)?;
    let left = judge.judge(disk.path()).with_context(|| {
        format!("cut in the machine at request {requests}; it is kept in {}", file.display())
    })?;
    disk.detach()?;
    Ok(left)
}

/// Holes stay holes.
fn copy(from: &Path, to: &Path) -> Result<()> {
    run_quietly(command("cp").arg("--sparse=always").args([from, to])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: PowerCutArguments,
    }

    fn arguments(words: &[&str]) -> PowerCutArguments {
        <Line as clap::Parser>::parse_from([&["power-cut"], words].concat()).arguments
    }

    #[test]
    fn x33_every_kind_is_cut_on_both_sector_sizes_whoever_writes() {
        let all = arguments(&[]);
        let series = all.series();
        assert_eq!(series.len(), 2 * 13, "{series:?}");
        assert!(series.len() * all.cuts as usize >= 200);
        for pair in series.windows(2).filter(|pair| pair[1].1 == Kind::PreserveEphemeral) {
            let (writer, _, size) = pair[1];
            assert_eq!(pair[0], (writer, Kind::Partition, size), "what is preserved must be there");
        }
        let few = arguments(&["--kind", "preserve-ephemeral", "--writer", "conductor"]).series();
        assert_eq!(few.len(), 4, "{few:?}");
    }

    #[test]
    fn x33_cuts_are_spread_over_the_whole_deployment() {
        let mut chance = StdRng::seed_from_u64(1);
        for (events, cuts) in [(46, 100), (300, 100), (5, 1), (0, 3)] {
            let points = points(events, cuts, &mut chance);
            assert_eq!(points.len(), cuts as usize);
            assert!(points.is_sorted() && points.iter().all(|point| *point <= events), "{points:?}");
            if events == 300 {
                assert!(points[0] <= 3 && points[99] >= 297, "{points:?}");
            }
        }
    }
}
