//! What software RAID may write: arrays to be taken apart, and the disks that carry members (section 9.9).
//!
//! A volume on the skip list is kept with its members. What lies beside these on the same disks is not: a
//! [`RaidDisk`] has such a disk open as a whole and changes nothing of what is kept.

use super::skip_list::SkipList;
use super::{Choice, RootDisk, Scope, shared};
use crate::device::usage;
use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::io::view::DiskView;
use crate::io::{Sectors, WritableDisk};
use crate::map::{DiskMap, Tables};
use crate::md::MemberDevice;
use crate::md::array::{self, Array};
use crate::md::config::ESP_NAME;
use crate::md::superblock::{self, Superblock};
use crate::probe::ReadableDisk;
use crate::table::{self, NewPartition, Partition, PartitionTable, TableKind};
use crate::wipe;
use farrier_linux::sysfs;
use farrier_protocol::lookup::Node;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

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

/// A disk that is open to have partitions made and removed, but for those of kept volumes.
#[derive(Debug)]
pub struct RaidDisk {
    disk: WritableDisk,
    map: DiskMap,
    kept: Vec<Partition>,
    /// Names of the arrays that it or its partitions have superblocks of.
    members_of: Vec<String>,
    /// The disk, and what other machines may be using of what does not stay on it.
    device: BlockDevice,
    shared: Option<String>,
}

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
    /// [`Error::InvalidTable`]: there are members, and the table does not say where those are that are to be kept.
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

    /// Opens the disk, on which no array may run, and finds what is to be kept on it. With `guard`, nothing is
    /// written to one with a file system of several machines.
    ///
    /// # Errors
    ///
    /// As [`RootDisk::open`](super::RootDisk::open), [`Error::InvalidTable`] where volumes are to be kept and the
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

fn overlap(one: &Partition, other: &Partition) -> bool {
    one.start < other.start + other.size && other.start < one.start + one.size
}

/// What of a table goes, when these partitions stay.
fn doomed<'a>(table: &'a PartitionTable, kept: &[Partition]) -> Vec<&'a Partition> {
    let overlap = |one: &Partition, two: &Partition| {
        one.start < two.start + two.size && two.start < one.start + one.size
    };
    let stays = |one: &&Partition| kept.iter().any(|kept| overlap(one, kept));
    table.partitions().iter().filter(|one| !stays(one)).collect()
}

/// Refuses a table from which others cannot be removed without the kept ones.
fn require_rearrangeable(device: &Path, table: &PartitionTable, kept: &[Partition]) -> Result<(), Error> {
    match table.unkeepable(kept) {
        Some(logical) if !doomed(table, kept).is_empty() => Err(not_rearrangeable(device, logical)),
        _ => Ok(()),
    }
}

fn not_rearrangeable(device: &Path, logical: &Partition) -> Error {
    Error::Raid {
        device: device.to_owned(),
        reason: format!(
            "partition {}, which skip_block_devices keeps, is a logical one, and its table cannot be changed without \
             it; nothing was written: name the disk itself in skip_block_devices, or give the volume up",
            logical.number
        ),
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

impl RaidDisk {
    /// Path of the device node.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The partitions that stay.
    pub fn kept(&self) -> &[Partition] {
        &self.kept
    }

    /// Names of the arrays that it or its partitions are members of.
    pub fn members_of(&self) -> &[String] {
        &self.members_of
    }

    /// What keeps it from getting partitions, in words: a table that is damaged or half gone, a partition that does
    /// not stay, content of any kind. Nothing where only what stays is on it.
    pub fn occupant(&self) -> Option<String> {
        let member = || "a member of an array".to_owned();
        self.map
            .occupant_beside(&self.kept)
            .or_else(|| (self.kept.is_empty() && !self.members_of.is_empty()).then(member))
    }

    /// Whether nothing but what stays is on it.
    pub fn is_free(&self) -> bool {
        self.occupant().is_none()
    }

    /// Makes sure that it is free for partitions beside those that stay. What cannot be read, is damaged, or is of a
    /// kind that arrays have nothing to do with is somebody's all the same.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`], [`Error::Raid`] or [`Error::InvalidTable`].
    pub fn require_free(&self) -> Result<(), Error> {
        self.require_unshared()?;
        if let Some(occupant) = self.occupant() {
            return Err(Error::Raid {
                device: self.path().to_owned(),
                reason: format!(
                    "it holds {occupant}; run delete_configuration or erase_devices_metadata first, or leave it out \
                     with physical_disks"
                ),
            });
        }
        match self.map.live()?.unkeepable(&self.kept) {
            Some(logical) => Err(not_rearrangeable(self.path(), logical)),
            None => Ok(()),
        }
    }

    /// Makes sure that nothing is lost with it that other machines may be using.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`].
    pub fn require_unshared(&self) -> Result<(), Error> {
        shared::refuse(&self.device, self.shared.clone())
    }

    /// Removes all partitions but those that stay, with everything by which they could be revived; a disk
    /// on which nothing stays loses its table too (D20), and one on which all stays is not written.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`]; [`Error::Raid`] when a table cannot be
    /// changed without what stays; what [`wipe::erase_metadata`] brings.
    pub fn clear(self) -> Result<(), Error> {
        self.require_unshared()?;
        if self.kept.is_empty() {
            return wipe::erase_metadata(&self.disk);
        }
        let table = self.map.live()?;
        if doomed(table, &self.kept).is_empty() {
            return Ok(());
        }
        require_rearrangeable(self.path(), table, &self.kept)?;
        wipe::erase_volumes(&self.disk, &self.map.tables().volumes(), &self.kept)?;
        self.map.into_live()?.rearrange(&self.disk, &self.kept, &[]).map(drop)
    }

    /// Makes these partitions, empties their ends, and gives the device nodes in the same order. A disk
    /// without partitions gets a new table of this kind.
    ///
    /// # Errors
    ///
    /// Those of [`RaidDisk::require_free`], [`Error::Corrupted`], [`Error::SignatureLeft`] or [`Error::Device`].
    pub fn add(self, kind: TableKind, partitions: &[NewPartition]) -> Result<Vec<MemberDevice>, Error> {
        self.require_free()?;
        let path = self.path().to_owned();
        let table = self.map.into_live()?;
        if self.kept.is_empty() {
            wipe::wipe_ends(&self.disk)?;
        }
        let volumes: Vec<_> = partitions.iter().map(|one| Partition::at(one.start, one.size)).collect();
        wipe::erase_volumes(&self.disk, &volumes, &self.kept)?;
        if self.kept.is_empty() {
            PartitionTable::create(&self.disk, kind, partitions)?;
        } else {
            table.rearrange(&self.disk, &self.kept, partitions)?;
        }
        let node = |one: &NewPartition| MemberDevice::at(table::partition_path(&path, one.number));
        Ok(partitions.iter().map(node).collect())
    }
}

/// A place for a copy of the EFI system partition, on a disk of a root volume.
#[derive(Debug, Clone)]
pub struct BootPartition {
    /// The device, as a member of the mirror.
    pub device: MemberDevice,
    /// The partition, as the disk's table has it.
    pub partition: Partition,
    /// Bytes of a sector of the disk.
    pub sector_size: u32,
    /// The running array that it is a member of.
    pub array: Option<String>,
}

impl RootDisk {
    /// Whether it is a volume of software RAID.
    pub fn is_array(&self) -> bool {
        array::is_array(self.device().directory())
    }

    /// The EFI system partitions of the disks that the volume lies on, none of which is on the skip list.
    ///
    /// # Errors
    ///
    /// [`Error::NoEsp`] naming a disk without one, or what reading the disks brings.
    pub fn boot_partitions(&self) -> Result<Vec<BootPartition>, Error> {
        self.boot_disks().iter().map(boot_partition).collect()
    }

    /// Opens the mirror `array` of exactly these boot partitions for writing.
    ///
    /// # Errors
    ///
    /// [`Error::Raid`] when it is another array, or those of [`RootDisk::open`].
    pub fn open_mirror(&self, array: &Array, copies: &[BootPartition]) -> Result<WritableDisk, Error> {
        let name = |copy: &BootPartition| copy.device.path().strip_prefix("/dev").map(Path::to_owned);
        let mut wanted: Vec<_> = copies.iter().filter_map(|copy| name(copy).ok()).collect();
        wanted.sort();
        if !array.members.iter().map(PathBuf::from).eq(wanted) {
            return Err(Error::Raid {
                device: array.path(),
                reason: format!("its members are {}, not the boot partitions", array.members.join(", ")),
            });
        }
        let directory = self.device().directory().with_file_name(&array.kernel_name);
        let device = self.device().relative(&directory);
        let device = device.ok_or_else(|| Error::NoSuchDevice { device: array.kernel_name.clone() })?;
        WritableDisk::open(&device)
    }
}

fn boot_partition(disk: &BlockDevice) -> Result<BootPartition, Error> {
    let table = ReadableDisk::open(disk)?.table()?;
    let path = PathBuf::from(&disk.disk.name);
    let partition = table.esp().cloned().ok_or_else(|| Error::NoEsp { device: path.clone() })?;
    let device = table::partition_path(&path, partition.number);
    let name = device.file_name().unwrap_or_default();
    let holders = sysfs::entries(&disk.directory().join(name).join("holders"));
    Ok(BootPartition {
        array: holders.into_iter().next(),
        device: MemberDevice::at(device),
        partition,
        sector_size: disk.disk.logical_sectors,
    })
}
