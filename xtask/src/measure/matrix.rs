//! `cargo xtask matrix`: every combination of firmware, disk, image, table and config drive is deployed and booted.

mod exits;
mod iscsi;
mod netboot;
mod report;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use farrier_tests::cells::boot::{Cell, DebianImage, Image};

pub use self::report::MatrixReport;

use self::report::Outcome;
use crate::book::page;
use crate::build::dist;
use crate::build::instance_image::{self, Content, DiskFormat, System};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, read_json, write_json};

/// Size of the whole-disk images: the system and little more, for every combination reads all of it.
const MEBIBYTES: u64 = 1024;

/// Deploys Debian in each combination of firmware, disk, image, table and config drive, and boots it.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MatrixArguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Only combinations whose names, such as bios-nvme-whole-gpt-drive, have all these parts, separated by commas.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    filter: Vec<String>,
    /// Only tells which combinations there are.
    #[arg(long)]
    list: bool,
    /// How many machines run at a time [default: one for each processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    machines: Option<u8>,
    /// Folder of a ramdisk that was built already.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Writes the result as JSON, after each combination.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Goes on with what an earlier run wrote there: what booted is not run again.
    #[arg(long, requires = "json")]
    resume: bool,
    /// Writes the page of the book with the result of all combinations.
    #[arg(long, conflicts_with_all = ["filter", "list"])]
    page: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Another matrix.
#[derive(Debug, Subcommand)]
enum Other {
    Exits(exits::ExitsArguments),
    Iscsi(iscsi::IscsiArguments),
    Netboot(netboot::NetbootArguments),
}

/// Runs the command. A combination that does not boot is an error once all were tried; its machine is kept.
pub fn matrix(arguments: &MatrixArguments) -> Result<()> {
    match &arguments.other {
        Some(Other::Exits(arguments)) => return exits::exits(arguments),
        Some(Other::Iscsi(arguments)) => return iscsi::iscsi(arguments),
        Some(Other::Netboot(arguments)) => return netboot::netboot(arguments),
        None => {}
    }
    let cells = chosen(Cell::all(), &arguments.filter)?;
    if arguments.list {
        for cell in &cells {
            println!("{cell}{}", cell.obstacle().map(|reason| format!(": {reason}")).unwrap_or_default());
        }
        return Ok(());
    }
    let report = run(arguments, &cells, earlier(arguments, &cells)?)?;
    println!("{}", report.line());
    if arguments.page {
        page::write(&Workspace::find()?, &report)?;
    }
    if !report.is_good() {
        bail!("not every combination boots");
    }
    Ok(())
}

/// The combinations whose names have all these parts, which are separated by hyphens there.
fn chosen<C: fmt::Display>(cells: impl IntoIterator<Item = C>, filter: &[String]) -> Result<Vec<C>> {
    let cells: Vec<_> = cells.into_iter().collect();
    let parts: Vec<_> = filter.iter().flat_map(|part| part.split('-')).collect();
    let has_all = |name: &String| parts.iter().all(|part| name.split('-').any(|word| word == *part));
    let names: Vec<_> = cells.iter().map(ToString::to_string).collect();
    ensure!(
        names.iter().any(has_all),
        "no combination has all of {}; there are {}",
        filter.join(","),
        names.join(", ")
    );
    Ok(cells.into_iter().zip(&names).filter(|(_, name)| has_all(name)).map(|(cell, _)| cell).collect())
}

/// What booted of the wanted combinations in the run that is gone on with.
fn earlier(arguments: &MatrixArguments, cells: &[Cell]) -> Result<Vec<Outcome>> {
    let file = arguments.json.as_deref().filter(|file| arguments.resume && file.exists());
    let outcomes = file.map(read_json::<Vec<Outcome>>).transpose()?.unwrap_or_default();
    let is_kept = |outcome: &Outcome| outcome.is_good() && cells.iter().any(|cell| outcome.is_of(cell));
    Ok(outcomes.into_iter().filter(is_kept).collect())
}

fn run(arguments: &MatrixArguments, cells: &[Cell], outcomes: Vec<Outcome>) -> Result<MatrixReport> {
    requirements::ensure(&[Purpose::Dist, Purpose::InstanceImage, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => std::path::absolute(folder)?,
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    let is_open = |cell: &&Cell| outcomes.iter().all(|outcome| !outcome.is_of(cell));
    let legal = cells.iter().filter(|cell| cell.obstacle().is_none()).filter(is_open);
    // Each image is made before the first machine is switched on.
    let jobs = legal.map(|cell| Ok((*cell, image_for(cell, &workspace)?))).collect::<Result<Vec<_>>>()?;
    let folder = workspace.cache().join(format!("matrix-{}", std::process::id()));
    let outcomes = Mutex::new(outcomes);
    at_once(jobs, arguments.machines, |(cell, image)| {
        let outcome = attempt(&cell, &dist, &image, &folder);
        println!("{outcome}");
        let Ok(mut outcomes) = outcomes.lock() else { return };
        outcomes.push(outcome);
        if let Err(error) = write_json(arguments.json.as_deref(), &*outcomes) {
            println!("{error:#}");
        }
    });
    // Fails, and keeps what is there, when a machine was kept.
    fs::remove_dir(&folder).ok();
    Ok(MatrixReport::new(outcomes.into_inner().unwrap_or_default(), cells))
}

/// Does all jobs in their order, as many at a time as machines may run: one for each processor, where no number is given.
fn at_once<J: Send>(jobs: Vec<J>, machines: Option<u8>, work: impl Fn(J) + Sync) {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().ok().and_then(|mut jobs| jobs.next());
    thread::scope(|scope| {
        for _ in 0..machines.map_or(processors, usize::from) {
            scope.spawn(|| {
                while let Some(job) = next() {
                    work(job);
                }
            });
        }
    });
}

fn attempt(cell: &Cell, dist: &Path, image: &DebianImage, folder: &Path) -> Outcome {
    let folder = folder.join(cell.to_string());
    let result = cell.run(dist, image, &folder).and_then(|seconds| {
        fs::remove_dir_all(&folder)?;
        Ok(seconds)
    });
    // The disk is large, and says less than the console.
    fs::remove_file(folder.join("disk.raw")).ok();
    Outcome::new(*cell, result)
}

fn image_for(cell: &Cell, workspace: &Workspace) -> Result<DebianImage> {
    let content = match cell.image {
        Image::Partition => Content::Partition,
        Image::WholeDisk => Content::Disk(DiskFormat { table: cell.table, sector_size: cell.sector_size() }),
    };
    let image = instance_image::cached(workspace, MEBIBYTES, System::Common, content)?;
    Ok(DebianImage { path: image.path, sha256: image.sha256 })
}

#[cfg(test)]
mod tests {

    #[test]
    fn combinations_are_chosen_by_parts_of_their_names_and_none_is_an_error() {
        let chosen = |filter: &[&str]| {
            let filter: Vec<_> = filter.iter().map(|part| (*part).to_owned()).collect();
            super::chosen(["pxe-bios", "http-ipxe-uefi", "ipxe-uefi"], &filter)
        };
        assert_eq!(chosen(&[]).unwrap().len(), 3);
        assert_eq!(chosen(&["ipxe-uefi"]).unwrap(), ["http-ipxe-uefi", "ipxe-uefi"]);
        assert_eq!(chosen(&["uefi", "http"]).unwrap(), ["http-ipxe-uefi"]);
        let error = chosen(&["pxe", "uefi"]).unwrap_err().to_string();
        assert!(error.contains("pxe,uefi; there are pxe-bios, http-ipxe-uefi, ipxe-uefi"), "{error}");
    }
}
