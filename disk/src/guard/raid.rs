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
use crate::md::MemberDevice;
use crate::md::array::{self, Array};
use crate::md::config::ESP_NAME;
use crate::md::superblock::{self, Superblock};
use crate::probe::ReadableDisk;
use crate::table::{self, NewPartition, Partition, PartitionTable, TableKind};
use crate::wipe;
use farrier_linux::sysfs;
use farrier_protocol::lookup::Node;
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
    table: PartitionTable,
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

    /// Opens the disk, on which no array may run, and finds what is to be kept on it. With `guard`, nothing is
    /// written to one with a file system of several machines.
    ///
    /// # Errors
    ///
    /// As [`RootDisk::open`](super::RootDisk::open), and [`Error::Device`].
    pub fn open(&self, guard: bool) -> Result<RaidDisk, Error> {
        let device = self.0.confirm()?;
        let disk = WritableDisk::open(&device)?;
        let table = match PartitionTable::read(&disk) {
            Err(Error::InvalidTable { .. }) => PartitionTable::none(),
            outcome => outcome?,
        };
        let whole = Partition::at(0, disk.size());
        let mut named = Vec::new();
        for partition in std::iter::once(&whole).chain(table.partitions()) {
            named.extend(array_of(&disk, partition)?.map(|name| (partition.clone(), name)));
        }
        let is_kept = |name: &str| self.0.skip_list.volumes().any(|kept| superblock::is_named(name, kept));
        let mut kept: Vec<_> =
            named.iter().filter(|(_, name)| is_kept(name)).map(|(one, _)| one.clone()).collect();
        if !kept.is_empty() {
            // What the kept system boots from stays with it.
            kept.extend(table.partitions().iter().filter(|one| one.is_for_firmware()).cloned());
        }
        let members_of = named.into_iter().map(|(_, name)| name).collect();
        let shared = if guard { shared::find(&device, &kept)? } else { None };
        Ok(RaidDisk { disk, table, kept, members_of, device, shared })
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

    /// Whether it has no partitions but those that stay.
    pub fn is_free(&self) -> bool {
        self.table.partitions().iter().all(|partition| self.kept.contains(partition))
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
    /// on which nothing stays loses its table too (D20).
    ///
    /// # Errors
    ///
    /// [`Error::Protected`], [`Error::Corrupted`] or [`Error::Device`].
    pub fn clear(self) -> Result<(), Error> {
        self.require_unshared()?;
        if self.kept.is_empty() {
            return wipe::erase_metadata(&self.disk).map(drop);
        }
        let doomed = self.table.partitions().iter().filter(|partition| !self.kept.contains(partition));
        for partition in doomed {
            wipe::zero_signatures(&self.disk, partition)?;
        }
        self.table.rearrange(&self.disk, &self.kept, &[]).map(drop)
    }

    /// Makes these partitions, empties their ends, and gives the device nodes in the same order. A disk
    /// without partitions gets a new table of this kind.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`], [`Error::Corrupted`] or [`Error::Device`].
    pub fn add(self, kind: TableKind, partitions: &[NewPartition]) -> Result<Vec<MemberDevice>, Error> {
        self.require_unshared()?;
        if self.kept.is_empty() {
            wipe::wipe_ends(&self.disk)?;
        }
        for partition in partitions {
            wipe::zero_signatures(&self.disk, &Partition::at(partition.start, partition.size))?;
        }
        if self.kept.is_empty() {
            PartitionTable::create(&self.disk, kind, partitions)?;
        } else {
            self.table.rearrange(&self.disk, &self.kept, partitions)?;
        }
        let path = |one: &NewPartition| MemberDevice::at(table::partition_path(self.disk.path(), one.number));
        Ok(partitions.iter().map(path).collect())
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
