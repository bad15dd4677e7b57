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
    /// What is to be erased on the disk itself.
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

    /// What of a disk is to be erased, and what is not.
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
mod tests {
    use super::*;
    use crate::guard::fake_machine::{FakeMachine, superblock};
    use crate::guard::{KeepReason, plan_erase};
    use crate::io::MemoryDisk;
    use crate::table::{NewPartition, PartitionKind, TableKind, types};
    use farrier_protocol::lookup::Node;
    use serde_json::json;
    use uuid::Uuid;

    const MIB: u64 = 1 << 20;
    const DISK: u64 = 64 * MIB;

    /// A disk of ones with partitions at these places.
    fn disk(kind: TableKind, sector_size: u32, places: &[Range<u64>]) -> MemoryDisk {
        let disk = MemoryDisk::ones(DISK, sector_size);
        let partition = |(number, place): (u32, &Range<u64>)| NewPartition {
            number,
            start: place.start,
            size: place.end - place.start,
            kind: match kind {
                TableKind::Gpt => PartitionKind::Gpt { type_guid: types::gpt::RAID, guid: Uuid::new_v4() },
                TableKind::Mbr => PartitionKind::Mbr { type_id: types::mbr::RAID, disk_identifier: 7 },
            },
            is_booted: false,
            name: format!("part {number}"),
        };
        let partitions: Vec<_> = (1..).zip(places).map(partition).collect();
        PartitionTable::create(&disk, kind, &partitions).unwrap();
        disk
    }

    /// A member in this place, with a superblock at 4 KiB, and data from 1 MiB on of this length.
    fn member(place: Range<u64>, data: u64) -> (String, CoveredMember) {
        let start = place.start;
        let metadata = std::iter::once(start + 4096..start + 8192).collect();
        let data = start + MIB..start + MIB + data;
        ("/dev/md0".to_owned(), CoveredMember { disk: PathBuf::new(), place, data, metadata })
    }

    #[test]
    fn g01_every_byte_of_a_disk_is_erased_with_a_volume_beside_it_or_is_table_or_superblock() {
        let (os, other) = (8 * MIB..24 * MIB, 32 * MIB..56 * MIB);
        for (kind, sector_size, table) in [
            (TableKind::Gpt, 512, vec![0..17_408, DISK - 16_896..DISK]),
            (TableKind::Gpt, 4096, vec![0..24_576, DISK - 20_480..DISK]),
            (TableKind::Mbr, 512, std::iter::once(0..512).collect()),
        ] {
            let disk = disk(kind, sector_size, &[os.clone(), other.clone()]);
            // Ten bytes that no whole sector has are not covered.
            let found = divide(&disk, &[member(os.clone(), 10 * MIB + 10)]).unwrap();
            assert_eq!(found.covered, [("/dev/md0".to_owned(), os.start + MIB..os.start + 11 * MIB)]);
            let superblock = os.start + 4096..os.start + 8192;
            let kept: Ranges = table.iter().cloned().chain([superblock.clone()]).collect();
            assert_eq!(found.kept, kept);
            let everything: Ranges = std::iter::once(0..DISK).collect();
            let covered: Ranges = found.covered.iter().map(|(_, range)| range.clone()).collect();
            assert_eq!(everything.without(&found.doomed).without(&covered), kept);
            for byte in
                [MIB, os.start, superblock.end, os.start + 11 * MIB, 30 * MIB, other.start, other.end - 1]
            {
                assert!(found.doomed.overlap(&(byte..byte + 1)), "{byte} stays");
            }
            for part in covered.iter().chain(kept.iter()) {
                assert!(!found.doomed.overlap(&part), "{part:?} goes twice or should stay");
            }
        }
    }

    #[test]
    fn g01_a_disk_is_not_divided_by_a_table_that_is_not_there_or_lies_elsewhere() {
        let (os, other) = (8 * MIB..24 * MIB, 32 * MIB..56 * MIB);
        let gone = MemoryDisk::ones(DISK, 512);
        gone.put(0, &[0; 4096]);
        assert!(matches!(divide(&gone, &[member(os.clone(), MIB)]), Err(Error::InvalidTable { .. })));
        let moved = disk(TableKind::Gpt, 512, std::slice::from_ref(&other));
        assert!(matches!(divide(&moved, &[member(os, MIB)]), Err(Error::InvalidTable { .. })));
        // A volume on the disk itself has no table around it, and all of it is divided.
        let whole = divide(&gone, &[member(0..DISK, MIB)]).unwrap();
        assert_eq!(whole.kept, std::iter::once(4096..8192).collect());
        assert!(whole.doomed.overlap(&(0..1)) && whole.doomed.overlap(&(DISK - 1..DISK)));
    }

    #[test]
    fn g01_metadata_beside_a_volume_go_and_the_volume_stays() {
        let (os, other) = (8 * MIB..24 * MIB, 32 * MIB..56 * MIB);
        let disk = disk(TableKind::Gpt, 512, &[os.clone(), other.clone()]);
        let beside = divide(&disk, &[member(os.clone(), 10 * MIB)]).unwrap();
        let before = disk.content(os.start, 16 * MIB as usize);
        beside.erase_metadata(&disk).unwrap();
        assert!(disk.content(os.start, 16 * MIB as usize) == before, "the volume changed");
        for place in [other.start, other.end - 4096] {
            assert!(disk.content(place, 4096).iter().all(|byte| *byte == 0), "{place}");
        }
        assert_eq!(PartitionTable::read(&disk).unwrap().partitions().len(), 2);
    }

    /// Two disks with a mirror `os` on their first partitions and a tenant's mirror on the second ones.
    fn machine() -> FakeMachine {
        let machine = FakeMachine::new();
        for disk in ["vda", "vdb"] {
            machine.add(disk, &[], &[]);
            for (number, array) in [(1, "any:os"), (2, "tenant")] {
                let start = u64::from(number) * 1024 * MIB;
                let content = superblock(number as u8, array);
                machine.partition(disk, number, start..start + 512 * MIB, &[(4096, &content)]);
            }
        }
        machine.mirror("md0", 256 * MIB, [("vda", 1), ("vdb", 1)]);
        machine.mirror("md1", 256 * MIB, [("vda", 2), ("vdb", 2)]);
        machine
    }

    fn node() -> Node {
        let volume = json!({"controller": "software", "raid_level": "1", "size_gb": 1, "volume_name": "os"});
        Node { raid_config: json!({"logical_disks": [volume]}), ..Node::default() }
    }

    /// The targets, each with the volumes on it, and what is kept.
    fn planned(machine: &FakeMachine) -> (Vec<(String, usize)>, Vec<String>) {
        let devices = ["md0", "md1", "vda", "vdb"].map(|name| machine.device(name));
        let plan = plan_erase(&node(), &devices).unwrap();
        let name = |device: &BlockDevice| machine.shortened(&device.disk.name);
        let targets = plan.targets.iter().map(|target| (name(target.device()), target.volumes().len()));
        let kept = plan.kept.iter().map(|kept| {
            assert_eq!(kept.reason, KeepReason::ForeignArray);
            name(&kept.device)
        });
        (targets.collect(), kept.collect())
    }

    #[test]
    fn g01_disks_of_a_volume_are_targets_beside_it_and_an_array_of_others_goes_with_them() {
        let machine = machine();
        let beside = |volumes| [("vda".to_owned(), volumes), ("vdb".to_owned(), volumes)];
        let os = [("md0".to_owned(), 0)];
        assert_eq!(planned(&machine), ([&os[..], &beside(1)].concat(), vec!["md1".to_owned()]));
        // What a volume covers is not known of a layout that nobody makes here: it goes with its disks too.
        for (attribute, value) in
            [("level", "raid10"), ("metadata_version", "external:/md127/0"), ("component_size", "77")]
        {
            let before =
                std::fs::read_to_string(machine.device("md0").directory().join("md").join(attribute));
            machine.set("md0", attribute, value);
            let (targets, kept) = planned(&machine);
            assert_eq!((&targets[..], kept.len()), (&beside(0)[..], 2), "{attribute}");
            machine.set("md0", attribute, &before.unwrap());
        }
        assert_eq!(planned(&machine).1.len(), 1);
    }

    #[test]
    fn g01_members_cover_what_the_kernel_says_and_a_spare_covers_nothing() {
        let machine = machine();
        let directory = machine.device("md0").directory().canonicalize().unwrap();
        let members = coverage::members(&directory).unwrap();
        assert_eq!(members.len(), 2);
        let start = 1024 * MIB;
        assert_eq!(members[0].place, start..start + 512 * MIB);
        assert_eq!(members[0].data, start + MIB..start + 257 * MIB);
        assert_eq!(members[0].metadata, std::iter::once(start + 4096..start + 8192).collect());
        assert_eq!(members[0].disk, machine.device("vda").directory().canonicalize().unwrap());
    }

    #[test]
    fn g01_a_volume_that_lost_a_member_or_cannot_write_all_of_it_is_no_proof() {
        let machine = machine();
        let md0 = machine.device("md0");
        require_whole(&md0).unwrap();
        let entries = farrier_linux::sysfs::entries(&md0.directory().join("md"));
        let member = entries.into_iter().find(|name| name.starts_with("dev-")).unwrap();
        for (attribute, bad, good, told) in [
            ("degraded".to_owned(), "1", "0", "of 2 members are in step"),
            (format!("{member}/state"), "spare", "in_sync", "1 of 2 members"),
            (format!("{member}/state"), "faulty,in_sync", "in_sync", "is faulty"),
            (format!("{member}/bad_blocks"), "2048 8", "", "cannot be written"),
        ] {
            machine.set("md0", &attribute, bad);
            let error = require_whole(&md0).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("replace the disk"), "{error}");
            machine.set("md0", &attribute, good);
        }
        require_whole(&md0).unwrap();
    }
}
