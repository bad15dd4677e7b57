//! Where the firmware boots a volume of software RAID from: a copy of the EFI system partition on each of its disks.

use crate::device::BlockDevice;
use crate::error::Error;
use crate::guard::RootDisk;
use crate::md::MemberDevice;
use crate::md::array;
use crate::probe::ReadableDisk;
use crate::table::{self, Partition};
use farrier_linux::sysfs;
use std::path::PathBuf;

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
