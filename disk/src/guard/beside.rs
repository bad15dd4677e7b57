//! What lies beside the node's volumes on their disks: it is erased in the same step as the volumes.
//!
//! A volume covers a part of each of its disks. Whoever had the machine may have written to all the rest: gaps, other
//! partitions, arrays in these, and what is between a superblock and its data. So once the volumes are erased they are
//! stopped, every byte of their disks is written which none of them covers, and they are started again. What stays is
//! the partition table, and the superblocks by which the volumes are found.

use super::coverage::{self, CoveredMember};
use super::erase::{ErasePlan, EraseTarget};
use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::map::Ranges;
use crate::md::array::{self, Array};
use crate::md::assemble::assemble;
use crate::md::mdadm;
use crate::table::{Geometry, Partition, PartitionTable};
use crate::wipe;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Room of a GPT with 128 entries behind its first sector: its header and the entries.
const GPT_ENTRIES: u64 = 128 * 128;

/// The node's volumes that were erased, stopped until what lies beside them is erased too.
#[derive(Debug)]
pub struct StoppedVolumes {
    /// The name and the place in sysfs of each.
    volumes: Vec<(String, PathBuf)>,
    /// What each covers of its disks, by the sysfs directory of the disk.
    members: BTreeMap<PathBuf, Vec<(String, CoveredMember)>>,
    sysfs: PathBuf,
}

/// The parts of a disk that carries volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The parts of the disk itself that an erasure covers.
    pub doomed: Ranges,
    /// What was erased with a volume, by the device of that.
    pub covered: Vec<(String, Range<u64>)>,
    /// The partition table and the superblocks.
    pub kept: Ranges,
    /// The partitions that volumes lie in.
    places: Vec<Partition>,
}

impl StoppedVolumes {
    /// Stops the volumes of a plan that `is_erased` says it of. Each must have all of its members.
    ///
    /// # Errors
    ///
    /// [`Error::Raid`] naming the volume.
    pub fn stop(plan: &ErasePlan, is_erased: impl Fn(&BlockDevice) -> bool) -> Result<Self, Error> {
        let erased = plan.targets.iter().filter(|target| target.is_volume() && is_erased(target.device()));
        let devices: Vec<_> = erased.map(EraseTarget::device).collect();
        let sysfs = devices.first().map_or(Path::new("/sys"), |device| device.sysfs()).to_owned();
        let mut stopped = Self { volumes: Vec::new(), members: BTreeMap::new(), sysfs };
        for device in &devices {
            require_whole(device)?;
            let failed = |reason: String| raid(device, format!("it is not known what it covers: {reason}"));
            for member in coverage::members(device.directory()).map_err(failed)? {
                let disk = member.disk.clone();
                stopped.members.entry(disk).or_default().push((device.disk.name.clone(), member));
            }
            let name = array::name_of(device.directory()).unwrap_or_default();
            stopped.volumes.push((name, device.directory().to_owned()));
        }
        // A volume on another one is stopped before it.
        let mut order = stopped.volumes.clone();
        array::sort_for_removal(&mut order, |(_, directory)| directory.clone());
        for (_, directory) in order {
            if let Err(error) = mdadm::stop(&farrier_linux::sysfs::node(&directory)) {
                stopped.start()?;
                return Err(error);
            }
        }
        Ok(stopped)
    }

    /// The parts of a disk that an erasure covers, and those that it leaves.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`] when its partition table is not the one in which the volumes were, [`Error::Raid`] when
    /// the table lies among other content, or [`Error::Device`].
    pub fn beside(&self, target: &EraseTarget, disk: &dyn Sectors) -> Result<Beside, Error> {
        let directory = target.device().directory();
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let members = self.members.get(&directory).map(Vec::as_slice).unwrap_or_default();
        divide(disk, members)
    }

    /// Starts the volumes again.
    ///
    /// # Errors
    ///
    /// [`Error::Raid`] naming a volume that does not run with all of its members.
    pub fn start(&self) -> Result<(), Error> {
        if self.volumes.is_empty() {
            return Ok(());
        }
        assemble(&self.sysfs)?;
        for (name, directory) in &self.volumes {
            let arrays = Array::all(&self.sysfs);
            let found = arrays.iter().find(|array| array.name.as_deref() == Some(name));
            let fault = match found {
                None => Some("it does not run again".to_owned()),
                Some(array) => coverage::fault(&self.sysfs.join("block").join(&array.kernel_name)),
            };
            if let Some(fault) = fault {
                let device = farrier_linux::sysfs::node(directory);
                let reason = format!("the volume {name} was erased, and {fault}; {REMEDY}");
                return Err(Error::Raid { device, reason });
            }
        }
        Ok(())
    }
}

const REMEDY: &str = "replace the disk that failed, and run delete_configuration and create_configuration";

/// Makes sure that a volume of the node has all of its members, and that these hold what it holds: what is written to
/// it reaches no other.
///
/// # Errors
///
/// [`Error::Raid`].
pub(super) fn require_whole(volume: &BlockDevice) -> Result<(), Error> {
    match coverage::fault(volume.directory()) {
        None => Ok(()),
        Some(fault) => {
            Err(raid(volume, format!("{fault}, so not all that it held is erased with it; {REMEDY}")))
        }
    }
}

fn raid(volume: &BlockDevice, reason: String) -> Error {
    Error::Raid { device: volume.disk.name.clone().into(), reason }
}

impl Beside {
    /// Removes whatever may be recognised beside the volumes.
    ///
    /// # Errors
    ///
    /// As [`wipe::erase_metadata`].
    pub fn erase_metadata(&self, disk: &dyn Sectors) -> Result<(), Error> {
        let tables = crate::map::Tables::read(disk)?;
        let gaps = self.doomed.iter().map(|range| Partition::at(range.start, range.end - range.start));
        let kept: Vec<_> =
            self.kept.iter().map(|range| Partition::at(range.start, range.end - range.start)).collect();
        let kept = [self.places.clone(), kept].concat();
        let volumes: Vec<_> = tables.volumes().into_iter().chain(gaps).collect();
        wipe::erase_volumes(disk, &volumes, &kept)
    }
}

/// Divides a disk with these members of volumes.
fn divide(disk: &dyn Sectors, members: &[(String, CoveredMember)]) -> Result<Beside, Error> {
    let (size, sector_size) = (disk.size(), disk.sector_size());
    let table = PartitionTable::read(disk)?;
    let places: Vec<_> = members
        .iter()
        .map(|(_, member)| Partition::at(member.place.start, member.place.end - member.place.start))
        .collect();
    for place in &places {
        let is_it = |one: &Partition| (one.start, one.size) == (place.start, place.size);
        let is_whole = (place.start, place.size) == (0, size);
        if !is_whole && !table.partitions().iter().any(is_it) {
            let reason = format!("no partition begins at byte {} and has {} bytes", place.start, place.size);
            return Err(Error::InvalidTable { device: disk.path().to_owned(), reason });
        }
    }
    let metadata = members.iter().flat_map(|(_, member)| member.metadata.iter());
    let kept: Ranges = table_places(disk, &table)?.iter().chain(metadata).collect();
    let kept = kept.in_sectors(sector_size, size);
    let covered: Vec<_> = members
        .iter()
        .map(|(volume, member)| (volume.clone(), whole_sectors(&member.data, sector_size)))
        .filter(|(_, range)| !range.is_empty())
        .collect();
    let stays: Ranges = kept.iter().chain(covered.iter().map(|(_, range)| range.clone())).collect();
    let doomed = std::iter::once(0..size).collect::<Ranges>().without(&stays);
    Ok(Beside { doomed, covered, kept, places })
}

/// Where the table lies: the first sector, and for a GPT both copies in their usual places.
fn table_places(disk: &dyn Sectors, table: &PartitionTable) -> Result<Ranges, Error> {
    if table.partitions().is_empty() {
        return Ok(Ranges::default());
    }
    let (size, sector) = (disk.size(), u64::from(disk.sector_size()));
    let entries = GPT_ENTRIES.next_multiple_of(sector);
    let kept: Ranges = match table.name() {
        "gpt" => [0..2 * sector + entries, size.saturating_sub(entries + sector)..size].into_iter().collect(),
        _ => std::iter::once(0..sector).collect(),
    };
    // Whatever the table says of itself, it has to be the same without all the rest.
    let geometry = Geometry { size, sector_size: disk.sector_size() };
    let mut alone = Alone { disk: DiskView::whole(disk), kept: &kept, position: 0 };
    let primary = |one: &&Partition| !is_logical(table, one);
    let is_same = PartitionTable::parse(&mut alone, geometry).is_ok_and(|alone| {
        let known = |table: &PartitionTable| -> Vec<(u64, u64)> {
            table.partitions().iter().filter(primary).map(|one| (one.start, one.size)).collect()
        };
        known(&alone) == known(table)
    });
    if is_same {
        return Ok(kept);
    }
    let reason = "its partition table lies among other content, so what is beside the volumes cannot be erased; run \
                  delete_configuration and create_configuration";
    Err(Error::Raid { device: disk.path().to_owned(), reason: reason.to_owned() })
}

/// Logical partitions of an MBR go with the chain that leads to them: no volume of a node lies in one.
fn is_logical(table: &PartitionTable, partition: &Partition) -> bool {
    table.name() == "msdos" && partition.number > 4
}

fn whole_sectors(range: &Range<u64>, sector_size: u32) -> Range<u64> {
    let unit = u64::from(sector_size);
    range.start.next_multiple_of(unit)..range.end - range.end % unit
}

/// A disk on which nothing is but some ranges.
struct Alone<'a> {
    disk: DiskView<'a>,
    kept: &'a Ranges,
    position: u64,
}

impl Read for Alone<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.disk.read(buffer)?;
        let read = self.position..self.position + count as u64;
        for hidden in std::iter::once(read.clone()).collect::<Ranges>().without(self.kept).iter() {
            buffer[(hidden.start - read.start) as usize..(hidden.end - read.start) as usize].fill(0);
        }
        self.position = read.end;
        Ok(count)
    }
}

impl Seek for Alone<'_> {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.position = self.disk.seek(target)?;
        Ok(self.position)
    }
}

/// Whether every member of the array in `directory` of sysfs lies on one of these disks, so that what is beside it can
/// be erased with it.
pub(super) fn can_be_spared(directory: &Path, disks: &[&BlockDevice]) -> bool {
    let is_there = |member: &CoveredMember| {
        disks.iter().any(|disk| disk.directory().canonicalize().is_ok_and(|place| place == member.disk))
    };
    match coverage::members(directory) {
        Ok(members) => members.iter().all(is_there),
        Err(reason) => {
            tracing::warn!(array = %directory.display(), "erased with its disks: {reason}");
            false
        }
    }
}

/// Names of the arrays `spared` that lie on a device, by their kernel names.
pub(super) fn on(device: &BlockDevice, spared: &[String]) -> Vec<String> {
    let is_spared = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let mut names: Vec<_> = stack::above(device.directory())
        .iter()
        .filter_map(is_spared)
        .filter(|name| spared.contains(name))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
