//! What software RAID may write: arrays to be taken apart, and the disks that carry members (section 9.9).
//!
//! A volume on the skip list is kept with its members. What lies beside these on the same disks is not: a
//! [`RaidDisk`] has such a disk open as a whole and changes nothing of what is kept.

mod boot_partition;
mod disk;
mod new_array;

pub use boot_partition::BootPartition;
pub use disk::RaidDisk;
pub use new_array::open_array;

use super::skip_list::SkipList;
use super::{Choice, Scope, shared};
use crate::device::usage;
use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::io::view::DiskView;
use crate::io::{Sectors, WritableDisk};
use crate::map::{DiskMap, Tables};
use crate::md::array;
use crate::md::config::ESP_NAME;
use crate::md::superblock::{self, Superblock};
use crate::probe::ReadableDisk;
use crate::table::{Partition, PartitionTable};
use disk::{overlap, require_rearrangeable};
use farrier_protocol::lookup::Node;
use std::io::{Read, Seek};
use std::path::Path;

/// What of a machine software RAID may use. Nothing has been opened yet.
#[derive(Debug)]
pub struct RaidPlan {
    /// Running arrays that may be taken apart, in this order.
    pub arrays: Vec<RaidArray>,
    /// Disks that may get or lose partitions, in the order of their names.
    pub disks: Vec<RaidTarget>,
    /// Names of the volumes that stay.
    pub kept_volumes: Vec<String>,
}

/// An array that may be taken apart.
#[derive(Debug)]
pub struct RaidArray(Choice);

/// A disk that may get or lose partitions.
#[derive(Debug)]
pub struct RaidTarget(Choice);

/// Names of the volumes of software RAID that must stay on a node.
///
/// # Errors
///
/// [`Error::InvalidSkipList`].
pub fn kept_volumes(node: &Node) -> Result<Vec<String>, Error> {
    Ok(SkipList::of(node)?.volumes().map(str::to_owned).collect())
}

/// Sorts `devices` by what software RAID may do with them.
///
/// # Errors
///
/// [`Error::InvalidSkipList`]: nothing is touched without knowing what to keep.
pub fn plan_raid(node: &Node, devices: &[BlockDevice]) -> Result<RaidPlan, Error> {
    let skip_list = SkipList::of(node)?;
    skip_list.warn(devices);
    let kept_volumes = skip_list.volumes().map(str::to_owned).collect();
    let mut plan = RaidPlan { arrays: Vec::new(), disks: Vec::new(), kept_volumes };
    for device in devices.iter().filter(|device| !skip_list.excludes_from_raid(device)) {
        let choice = Choice { device: device.clone(), skip_list: skip_list.clone(), scope: Scope::Raid };
        if array::is_array(device.directory()) {
            if !is_needed_by_kept(device, &skip_list) {
                plan.arrays.push(RaidArray(choice));
            }
        } else if !usage::is_read_only(device) {
            plan.disks.push(RaidTarget(choice));
        }
    }
    array::sort_for_removal(&mut plan.arrays, |array| array.device().directory().to_owned());
    Ok(plan)
}

/// Whether it is the array of boot partitions on disks of a kept volume.
fn is_needed_by_kept(device: &BlockDevice, skip_list: &SkipList) -> bool {
    let is_named = |found: &str, name: &str| superblock::is_named(found, name);
    let is_esp = array::name_of(device.directory()).is_some_and(|found| is_named(&found, ESP_NAME));
    let neighbours = || stack::below(device.directory()).into_iter().flat_map(|disk| stack::above(&disk));
    let mut names = neighbours().filter_map(|array| array::name_of(&array));
    is_esp && names.any(|found| skip_list.volumes().any(|name| is_named(&found, name)))
}

impl RaidArray {
    /// The array.
    pub fn device(&self) -> &BlockDevice {
        &self.0.device
    }

    /// Opens the array for writing, under the rules of [`RootDisk::open`](super::RootDisk::open); `guard` keeps
    /// one with a file system of several machines closed.
    ///
    /// # Errors
    ///
    /// As there. Nothing is written in any case.
    pub fn open(&self, guard: bool) -> Result<WritableDisk, Error> {
        let device = self.0.confirm()?;
        if guard {
            shared::require_none(&device)?;
        }
        WritableDisk::open(&device)
    }
}

impl RaidTarget {
    /// The disk.
    pub fn device(&self) -> &BlockDevice {
        &self.0.device
    }

    /// Whether members of arrays are on it. The disk is only read, and may be in use.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] when it cannot be read.
    pub fn has_member(&self) -> Result<bool, Error> {
        ReadableDisk::open(self.device())?.has_member()
    }

    /// Makes sure that what is kept on the disk can stay while the rest goes, before anything of any disk goes. The
    /// disk is only read, and may be in use.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`]: there are members, and the table does not say where those are that stay.
    /// [`Error::Raid`]: a kept one is a logical partition. [`Error::Device`] when the disk cannot be read.
    pub fn require_keepable(&self) -> Result<(), Error> {
        if !self.keeps_volumes() {
            return Ok(());
        }
        let mut disk = ReadableDisk::open(self.device())?;
        let tables = disk.tables()?;
        let path: &Path = self.device().disk.name.as_ref();
        let table = match tables.live(path) {
            Ok(table) => table,
            Err(error) => return if disk.has_member()? { Err(error) } else { Ok(()) },
        };
        let kept = self.kept_in(disk.source(), &tables, table)?;
        require_rearrangeable(path, table, &kept)
    }

    /// Opens the disk, on which no array may run, and finds the volumes that stay on it. With `guard`, nothing is
    /// written to one with a file system of several machines.
    ///
    /// # Errors
    ///
    /// As [`RootDisk::open`](super::RootDisk::open), [`Error::InvalidTable`] where volumes stay and the
    /// table does not say where they are, and [`Error::Device`].
    pub fn open(&self, guard: bool) -> Result<RaidDisk, Error> {
        let device = self.0.confirm()?;
        let disk = WritableDisk::open(&device)?;
        let map = DiskMap::read(&disk)?;
        let none = PartitionTable::none();
        let (table, volumes) = match map.live() {
            Ok(table) => (table, table.partitions().to_vec()),
            Err(Error::InvalidTable { .. }) if !self.keeps_volumes() => (&none, map.tables().volumes()),
            Err(error) => return Err(error),
        };
        let kept = self.kept_in(&mut DiskView::whole(&disk), map.tables(), table)?;
        let whole = Partition::at(0, disk.size());
        let arrays = std::iter::once(&whole).chain(&volumes).map(|volume| array_of(&disk, volume));
        let members_of = arrays.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let shared = if guard { shared::find(&device, &kept)? } else { None };
        Ok(RaidDisk { disk, map, kept, members_of, device, shared })
    }

    fn keeps_volumes(&self) -> bool {
        self.0.skip_list.volumes().next().is_some()
    }

    /// The partitions of `table`, which is believed, that stay: the members of kept volumes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`] when another of the `tables` leads to such a member, and [`Error::Device`].
    fn kept_in(
        &self,
        source: &mut (impl Read + Seek),
        tables: &Tables,
        table: &PartitionTable,
    ) -> Result<Vec<Partition>, Error> {
        let mut kept = Vec::new();
        if !self.keeps_volumes() {
            return Ok(kept);
        }
        let whole = Partition::at(0, self.device().disk.size);
        for volume in std::iter::once(&whole).chain(table.partitions()) {
            kept.extend(self.kept_member(source, volume)?.map(|_| volume.clone()));
        }
        let is_in_table = |one: &Partition| table.partitions().iter().any(|other| overlap(one, other));
        let is_hidden = |one: &Partition| !is_in_table(one) && !kept.iter().any(|kept| overlap(one, kept));
        for volume in tables.volumes().iter().filter(|one| is_hidden(one)) {
            if let Some(name) = self.kept_member(source, volume)? {
                let reason = format!(
                    "skip_block_devices keeps the volume {name}, and only a table that no system believes leads to its \
                     member at byte {}",
                    volume.start
                );
                return Err(Error::InvalidTable { device: self.device().disk.name.clone().into(), reason });
            }
        }
        if !kept.is_empty() {
            // What the kept system boots from stays with it.
            kept.extend(table.partitions().iter().filter(|one| one.is_for_firmware()).cloned());
        }
        Ok(kept)
    }

    /// The name of the kept array that a volume of the disk is a member of.
    fn kept_member(
        &self,
        source: &mut (impl Read + Seek),
        volume: &Partition,
    ) -> Result<Option<String>, Error> {
        let found = Superblock::find(source, volume.start, volume.size).map_err(|source| Error::Device {
            device: self.device().disk.name.clone().into(),
            action: "looking for superblocks".to_owned(),
            source,
        })?;
        let is_kept =
            |name: &String| self.0.skip_list.volumes().any(|wanted| superblock::is_named(name, wanted));
        Ok(found.map(|found| found.name).filter(is_kept))
    }
}

/// The array that a volume on the disk has a superblock of; an empty name where the format has none.
fn array_of(disk: &dyn Sectors, partition: &Partition) -> Result<Option<String>, Error> {
    let found = Superblock::find(&mut DiskView::whole(disk), partition.start, partition.size);
    let found = found.map_err(|source| Error::Device {
        device: disk.path().to_owned(),
        action: "looking for superblocks".to_owned(),
        source,
    })?;
    if let Some(superblock) = found {
        return Ok(Some(superblock.name));
    }
    let signatures = disk.signatures(partition.start, partition.size)?;
    Ok(signatures.iter().any(|signature| signature.kind == superblock::SIGNATURE).then(String::new))
}
