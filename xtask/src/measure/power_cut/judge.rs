//! What a cut left on a disk, as other people's tools see it: nothing of the image that could be taken for a
//! system, or all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use farrier_tests::disk::volatile::{Event, VolatileDisk};
use serde::{Deserialize, Serialize};

use super::DISK_BYTES;
use super::loop_disk::LoopDisk;
use super::subject::{IMAGE_BYTES, Kind, Subject};
use super::writer::Writer;
use crate::host::command::{command, run_quietly};

const MIB: u64 = 1 << 20;
/// Both ends of a disk may hold a table, which a deployment itself changes.
const TABLES: u64 = MIB;

/// What a cut left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// What was there before, to the last byte.
    Before,
    /// What was there before, of which some is zero already: the erasure was cut off.
    Erasing,
    /// No partition table, or in a table that stays no file system where the image belongs.
    Nothing,
    /// All of the image, and its config drive not yet.
    WithoutDrive,
    /// All there is to a deployment.
    Everything,
}

impl Left {
    /// In the order of the page.
    pub const ALL: [Self; 5] =
        [Self::Before, Self::Erasing, Self::Nothing, Self::WithoutDrive, Self::Everything];

    /// In the words of the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Erasing => "erasing",
            Self::Nothing => "nothing",
            Self::WithoutDrive => "no drive yet",
            Self::Everything => "all",
        }
    }
}

/// A line of a table's listing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Partition {
    line: String,
    range: Range<u64>,
}

/// Knows what the disk was and became without a cut.
pub struct Judge<'a> {
    subject: &'a Subject,
    before: Vec<u8>,
    old_table: Vec<Partition>,
    finished: File,
    new_table: Vec<Partition>,
    /// By the number of a sector in the first MiB: what the deployment put there at any time.
    tables: BTreeMap<u64, BTreeSet<Vec<u8>>>,
}

impl<'a> Judge<'a> {
    /// `disk` is as it was before the deployment of these events, which left what the machine sees in `folder`.
    pub fn new(subject: &'a Subject, disk: &LoopDisk, events: &[Event], folder: &Path) -> Result<Self> {
        let old_table = table(disk.path(), subject.sector_size)?;
        let mut before = vec![0; reach(&old_table)];
        File::open(disk.path())?.read_exact_at(&mut before, 0)?;
        let file = VolatileDisk::current(folder);
        let finished = LoopDisk::attach(&file, subject.sector_size)?;
        let new_table = table(finished.path(), subject.sector_size)?;
        finished.detach()?;
        let tables = written_tables(events, subject.sector_size as usize);
        let judge = Self { subject, before, old_table, finished: File::open(file)?, new_table, tables };
        judge.require_finished()?;
        Ok(judge)
    }

    /// The deployment without a cut has to be one.
    fn require_finished(&self) -> Result<()> {
        let content = &self.subject.content;
        let place = if self.subject.kind.is_whole_disk() {
            0..IMAGE_BYTES as u64
        } else {
            self.root()?.range.clone()
        };
        let mut found = vec![0; content.len()];
        self.finished.read_exact_at(&mut found, place.start)?;
        let inner = if self.subject.kind.is_whole_disk() {
            TABLES as usize..content.len() - TABLES as usize
        } else {
            0..content.len()
        };
        ensure!(found[inner.clone()] == content[inner], "a deployment without a cut left no image");
        let partitions = if self.subject.kind == Kind::ConfigDrive { 2 } else { 1 };
        ensure!(self.new_table.len() >= partitions, "a deployment without a cut left {:?}", self.new_table);
        Ok(())
    }

    /// Says what is on the disk; anything half is an error.
    pub fn judge(&self, disk: &Path) -> Result<Left> {
        // It ends with 2 when there is nothing.
        let found = command("blkid").args(["-p", "-s", "PTTYPE", "-o", "value"]).arg(disk).output()?;
        if self.subject.kind == Kind::PreserveEphemeral {
            return self.judge_kept_table(disk);
        }
        if found.stdout.is_empty() {
            return Ok(Left::Nothing);
        }
        let file = File::open(disk)?;
        if content(&file, 0..self.before.len() as u64)? == self.before {
            return Ok(Left::Before);
        }
        if self.subject.kind.is_whole_disk() {
            self.judge_whole_disk(disk, &file)
        } else {
            self.judge_partitions(disk, &file)
        }
    }

    fn judge_whole_disk(&self, disk: &Path, file: &File) -> Result<Left> {
        if self.subject.writer == Writer::Conductor && self.is_being_erased(disk, file)? {
            return Ok(Left::Erasing);
        }
        self.require_image(file)?;
        let found = table(disk, self.subject.sector_size)?;
        let Some((drive, image)) =
            self.new_table.split_last().filter(|_| self.subject.kind == Kind::ConfigDrive)
        else {
            ensure!(found == self.new_table, "the table is another one: {found:?}");
            return Ok(Left::Everything);
        };
        if found == image {
            return Ok(Left::WithoutDrive);
        }
        ensure!(found == self.new_table, "the table is another one: {found:?}");
        let is_complete =
            content(file, drive.range.clone())? == content(&self.finished, drive.range.clone())?;
        Ok(if is_complete { Left::Everything } else { Left::WithoutDrive })
    }

    /// Whether there is nothing but what was there before and zeros: who exports a disk erases old metadata in its
    /// partitions first, before the table that leads to it.
    fn is_being_erased(&self, disk: &Path, file: &File) -> Result<bool> {
        let found = table(disk, self.subject.sector_size)?;
        let reached = content(file, 0..self.before.len() as u64)?;
        Ok(found.iter().all(|one| self.old_table.contains(one))
            && self.require_old_or_zero(&reached, 0).is_ok())
    }

    /// Each sector is the image's; where tables are it may be one that the deployment itself put there.
    fn require_image(&self, file: &File) -> Result<()> {
        let size = self.subject.sector_size as usize;
        let found = content(file, 0..IMAGE_BYTES as u64)?;
        let finished = content(&self.finished, 0..IMAGE_BYTES as u64)?;
        let sectors = found.chunks(size).zip(self.subject.content.chunks(size)).zip(finished.chunks(size));
        for (number, ((found, image), finished)) in sectors.enumerate() {
            let tables = self.tables.get(&(number as u64));
            let is_table = || tables.is_some_and(|tables| tables.contains(found));
            ensure!(
                found == image || found == finished || is_table(),
                "sector {number} is not the image's, and there is a table"
            );
        }
        Ok(())
    }

    fn judge_partitions(&self, disk: &Path, file: &File) -> Result<Left> {
        let found = table(disk, self.subject.sector_size)?;
        if found == self.new_table {
            for partition in &found {
                let is_same = content(file, partition.range.clone())?
                    == content(&self.finished, partition.range.clone())?;
                ensure!(is_same, "the table is there, and not all of {}", partition.line);
            }
            return Ok(Left::Everything);
        }
        // A torn table may name no partition any more, or only some of the old ones.
        ensure!(found.iter().all(|one| self.old_table.contains(one)), "the table is another one: {found:?}");
        self.require_old_or_zero(&content(file, 0..self.before.len() as u64)?, 0)?;
        Ok(Left::Erasing)
    }

    fn judge_kept_table(&self, disk: &Path) -> Result<Left> {
        let found = table(disk, self.subject.sector_size)?;
        ensure!(found == self.old_table, "the table that was to stay is another one: {found:?}");
        let file = File::open(disk)?;
        let ephemeral = self.old_table.iter().find(|one| one.line.ends_with("ephemeral"));
        let ephemeral = ephemeral.context("there is no ephemeral partition")?.range.clone();
        let is_kept = content(&file, ephemeral.clone())?
            == self.before[ephemeral.start as usize..ephemeral.end as usize];
        ensure!(is_kept, "the ephemeral partition was changed");
        let root = self.root()?.range.clone();
        let (offset, size) = (root.start.to_string(), (root.end - root.start).to_string());
        let signature = command("blkid").args(["-p", "-O", &offset, "-S", &size]).arg(disk).output()?;
        if signature.stdout.is_empty() {
            return Ok(Left::Nothing);
        }
        let found = content(&file, root.clone())?;
        if found == content(&self.finished, root.clone())? {
            return Ok(Left::Everything);
        }
        if found == self.before[root.start as usize..root.end as usize] {
            return Ok(Left::Before);
        }
        self.require_old_or_zero(&found, root.start as usize)?;
        Ok(Left::Erasing)
    }

    fn require_old_or_zero(&self, found: &[u8], start: usize) -> Result<()> {
        let size = self.subject.sector_size as usize;
        let sectors = found.chunks(size).zip(self.before[start..].chunks(size));
        for (number, (found, old)) in sectors.enumerate() {
            let is_zero = found.iter().all(|byte| *byte == 0);
            ensure!(found == old || is_zero, "sector {number} is neither old nor zero, and there is a table");
        }
        Ok(())
    }

    fn root(&self) -> Result<&Partition> {
        self.new_table.iter().find(|one| one.line.ends_with("root")).context("there is no root partition")
    }
}

/// What was put into the sectors of the first MiB, but for zeros, which make room.
fn written_tables(events: &[Event], sector_size: usize) -> BTreeMap<u64, BTreeSet<Vec<u8>>> {
    let mut tables: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for event in events {
        let Event::Change(change) = event else { continue };
        let sectors = change.data.iter().flat_map(|data| data.chunks(sector_size));
        let first = change.offset / sector_size as u64;
        for (number, sector) in (first..TABLES / sector_size as u64).zip(sectors) {
            if sector.iter().any(|byte| *byte != 0) {
                tables.entry(number).or_default().insert(sector.to_vec());
            }
        }
    }
    tables
}

/// Bytes from the beginning of the disk that a table speaks of.
fn reach(table: &[Partition]) -> usize {
    table.iter().map(|one| one.range.end as usize).max().unwrap_or_default().max(IMAGE_BYTES)
}

fn content(file: &File, range: Range<u64>) -> Result<Vec<u8>> {
    let mut content = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut content, range.start).with_context(|| format!("reading {range:?}"))?;
    Ok(content)
}

/// The partitions as `sgdisk` lists them; none when it cannot make sense of the table.
fn table(disk: &Path, sector_size: u32) -> Result<Vec<Partition>> {
    let listing = match run_quietly(command("sgdisk").arg("--print").arg(disk)) {
        Ok(listing) => listing,
        Err(error) if error.to_string().contains("ended with") => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = listing.lines().skip_while(|line| !line.starts_with("Number")).skip(1);
    let partitions = lines.filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1).map(str::parse::<u64>);
        let (first, last) = (fields.next()?.ok()?, fields.next()?.ok()?);
        let sector = u64::from(sector_size);
        let end = ((last + 1) * sector).min(DISK_BYTES);
        Some(Partition { line: line.trim().to_owned(), range: first * sector..end })
    });
    Ok(partitions.collect())
}
