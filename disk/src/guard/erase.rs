//! Which disks of a node are erased (section 9.8).

use super::boot_media::BootMedium;
use super::skip_list::SkipList;
use super::volumes::{Volumes, stop_arrays};
use super::{Choice, beside, shared};
use crate::device::{BlockDevice, HardwarePartition, stack, usage};
use crate::error::Error;
use crate::io::WritableDisk;
use crate::md::array;
use farrier_protocol::lookup::Node;
use std::fmt;
use std::path::Path;

/// The disks to erase and those to keep. Nothing has been opened yet.
#[derive(Debug)]
pub struct ErasePlan {
    /// Disks to erase, arrays before the disks that they lie on.
    pub targets: Vec<EraseTarget>,
    /// Disks to keep.
    pub kept: Vec<KeptDisk>,
    /// A sentence for each entry of the skip list that names no disk.
    pub warnings: Vec<String>,
}

/// A disk that is not to be erased.
#[derive(Debug)]
pub struct KeptDisk {
    /// The disk.
    pub device: BlockDevice,
    /// Why.
    pub reason: KeepReason,
}

/// Why a disk is not erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepReason {
    /// It is on the list of skipped disks.
    Skipped,
    /// The ramdisk came from it.
    BootMedium(BootMedium),
    /// The kernel refuses writes to it.
    ReadOnly,
    /// It is an array that is no volume of the node. What it holds goes with its disks.
    ForeignArray,
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BootMedium(medium) => return medium.fmt(f),
            Self::Skipped => "on the list of skipped disks",
            Self::ReadOnly => "read-only",
            Self::ForeignArray => "an array of an earlier user, which goes with its disks",
        })
    }
}

/// A disk to erase.
#[derive(Debug)]
pub struct EraseTarget {
    choice: Choice,
    /// Kernel names of the node's volumes that stay, and are erased by this plan.
    spared: Vec<String>,
}

/// Plans to erase every disk of `node` among `devices` that is not on the skip list and accepts writes.
///
/// Volumes of the node's software RAID stay where it is known what they cover: they are erased, and then what lies
/// [beside](super::Beside) them on their disks. Any other array is data on its disks, and goes
/// with them.
///
/// # Errors
///
/// [`Error::InvalidSkipList`]: no disk is erased without knowing which ones to keep.
pub fn plan_erase(node: &Node, devices: &[BlockDevice]) -> Result<ErasePlan, Error> {
    let (skip_list, volumes) = (SkipList::of(node)?, Volumes::of(node));
    let warnings = skip_list.warnings(devices);
    let mut plan = ErasePlan { targets: Vec::new(), kept: Vec::new(), warnings };
    let open: Vec<_> = devices.iter().filter(|device| reason_against(device, &skip_list).is_none()).collect();
    let spared = spared(&open, &volumes);
    for device in devices {
        let is_spared = spared.iter().any(|name| name == device.kernel_name());
        let reason = reason_against(device, &skip_list).or_else(|| {
            (!is_spared && goes_with_its_disks(device, &skip_list)).then_some(KeepReason::ForeignArray)
        });
        match reason {
            Some(reason) => plan.kept.push(KeptDisk { device: device.clone(), reason }),
            None => plan.targets.push(EraseTarget {
                choice: Choice::whole(device.clone(), skip_list.clone()),
                spared: spared.clone(),
            }),
        }
    }
    array::sort_for_removal(&mut plan.targets, |target| target.device().directory().to_owned());
    Ok(plan)
}

/// Why a device is not erased, whatever lies on it.
fn reason_against(device: &BlockDevice, skip_list: &SkipList) -> Option<KeepReason> {
    // The kernel protects boot areas of eMMC devices from slips alone; whoever erases them lifts that.
    let is_boot_area = device.hardware_partition() == Some(HardwarePartition::Boot);
    let is_read_only = || !is_boot_area && usage::is_read_only_as_a_whole(device);
    skip_list.reason(device).or_else(|| is_read_only().then_some(KeepReason::ReadOnly))
}

/// Kernel names of the node's volumes among the devices that may be erased, all of whose disks may be.
fn spared(devices: &[&BlockDevice], volumes: &Volumes) -> Vec<String> {
    let own = devices.iter().filter(|device| volumes.own(device.directory()));
    let own = own.filter(|volume| beside::can_be_spared(volume.directory(), devices));
    own.map(|volume| volume.kernel_name().to_owned()).collect()
}

impl EraseTarget {
    /// The device to erase.
    pub fn device(&self) -> &BlockDevice {
        &self.choice.device
    }

    /// Names of the node's running volumes that it or one of its partitions is a member of. What they cover of it is
    /// erased with them.
    pub fn volumes(&self) -> Vec<String> {
        beside::on(self.device(), &self.spared)
    }

    /// Whether it is a volume of the node, which stays.
    pub fn is_volume(&self) -> bool {
        self.spared.iter().any(|name| name == self.device().kernel_name())
    }

    /// Whether it is an array, of any owner.
    pub fn is_array(&self) -> bool {
        array::is_array(self.device().directory())
    }

    /// Makes sure that all that a volume held is erased with it: each of its members is there and in step.
    ///
    /// # Errors
    ///
    /// [`Error::Raid`].
    pub fn require_whole(&self) -> Result<(), Error> {
        if self.is_volume() { beside::require_whole(self.device()) } else { Ok(()) }
    }

    /// Opens the disk for writing, under the rules of [`RootDisk::open`](super::RootDisk::open); `guard` keeps
    /// one with a file system of several machines closed. Arrays on it that are no volumes of the node are
    /// stopped.
    ///
    /// # Errors
    ///
    /// As there. Nothing is written in any case.
    pub fn open(&self, guard: bool) -> Result<WritableDisk, Error> {
        let device = self.choice.confirm()?;
        if guard {
            shared::require_none(&device).or_else(|error| shared::allow_unread(&device, error))?;
        }
        let is_spared = |array: &Path| self.spared.iter().any(|name| array.ends_with(name));
        stop_arrays(&device, is_spared)?;
        WritableDisk::open(&device)
    }
}

/// Whether it is an array all of whose disks may be erased.
fn goes_with_its_disks(device: &BlockDevice, skip_list: &SkipList) -> bool {
    let may_be_erased =
        |disk: &BlockDevice| !skip_list.excludes(disk) && !usage::is_read_only_as_a_whole(disk);
    let below = stack::below(device.directory());
    array::is_array(device.directory())
        && below.iter().all(|disk| device.relative(disk).is_some_and(|disk| may_be_erased(&disk)))
}
