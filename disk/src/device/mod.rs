//! A block device as sysfs describes it.

mod by_path;
pub(crate) mod command_set;
pub mod exports;
pub(crate) mod hardware_partition;
mod identity;
pub(crate) mod stack;
mod transport;
pub(crate) mod usage;

pub use command_set::CommandSet;
pub use hardware_partition::HardwarePartition;

use crate::error::Error;
use farrier_linux::sysfs;
use farrier_protocol::inventory::Disk;
use std::path::{Path, PathBuf};

/// Unit of the `size` attribute, whatever the sector size of the device.
const SYSFS_SECTOR: u64 = 512;

/// A block device, with every identifier a root device hint may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// The device as inventories show it.
    pub disk: Disk,
    /// Every form of its model (F27).
    pub models: Vec<String>,
    /// Every form of its serial number (F27).
    pub serials: Vec<String>,
    /// Every form of its World Wide Name (F27).
    pub wwns: Vec<String>,
    /// Every link to it under `/dev/disk/by-path`.
    pub by_paths: Vec<String>,
    kernel_name: String,
    directory: PathBuf,
}

impl BlockDevice {
    /// Describes the disk `kernel_name`, such as `sda`, from the sysfs mounted at `sysfs`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`].
    pub fn describe(sysfs: &Path, kernel_name: &str) -> Result<Self, Error> {
        let directory = sysfs.join("block").join(kernel_name);
        let name = sysfs::node(&directory).display().to_string();
        let sectors = sysfs::number::<u64>(&directory, "size")
            .ok_or_else(|| Error::NoSuchDevice { device: name.clone() })?;
        let queue = directory.join("queue");
        let logical = sysfs::number(&queue, "logical_block_size").unwrap_or(512);
        // A multipath device has the identity of the disk that its paths lead to (D23).
        let path = stack::is_multipath(&directory).then(|| stack::below(&directory).into_iter().next());
        let hardware = path.flatten().unwrap_or_else(|| directory.clone());
        let device = hardware.join("device");
        let identity = identity::Identity::read(&hardware);
        let by_paths = by_path::by_paths(&hardware);
        let wwn = identity::WorldWideName::read(&hardware);
        let disk = Disk {
            name,
            model: identity.models.first().cloned(),
            size: sectors * SYSFS_SECTOR,
            rotational: sysfs::number::<u8>(&queue, "rotational") == Some(1),
            wwn: wwn.name.clone(),
            serial: identity.serials.first().cloned(),
            vendor: sysfs::attribute(&device, "vendor"),
            wwn_with_extension: wwn.with_extension.clone(),
            wwn_vendor_extension: wwn.vendor_extension.clone(),
            hctl: sysfs::entries(&device.join("scsi_device")).into_iter().next(),
            by_path: by_paths.first().cloned(),
            logical_sectors: logical,
            physical_sectors: sysfs::number(&queue, "physical_block_size").unwrap_or(logical),
            tran: transport::transport(&hardware),
        };
        Ok(Self {
            disk,
            models: identity.models,
            serials: identity.serials,
            wwns: wwn.forms(),
            by_paths,
            kernel_name: kernel_name.to_owned(),
            directory,
        })
    }

    /// Name the kernel gave it, without `/dev/`.
    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// What area of an eMMC device it is; nothing for a disk that is none.
    pub fn hardware_partition(&self) -> Option<HardwarePartition> {
        HardwarePartition::of(&self.kernel_name)
    }

    /// The device as it is described now.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`] when it went away.
    pub(crate) fn describe_again(&self) -> Result<Self, Error> {
        Self::describe(self.sysfs(), &self.kernel_name)
    }

    /// sysfs directories of the disk itself and of its partitions.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let partitions = stack::partitions(&self.directory);
        std::iter::once(self.directory.clone()).chain(partitions).collect()
    }

    /// The sysfs directory of the disk.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The disk whose sysfs directory is called like `directory`, from the same sysfs.
    pub(crate) fn relative(&self, directory: &Path) -> Option<Self> {
        Self::describe(self.sysfs(), directory.file_name()?.to_str()?).ok()
    }

    /// The sysfs that describes it.
    pub(crate) fn sysfs(&self) -> &Path {
        self.directory.parent().and_then(Path::parent).unwrap_or(Path::new("/sys"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;
    use std::fs;

    #[test]
    fn f29_a_device_that_loses_attributes_is_described_without_them() {
        let sysfs = FakeSysfs::new();
        let path = "devices/pci0000:00/ata1/host0/block/sda";
        let attributes = [("device/model", "M"), ("device/vendor", "V"), ("queue/rotational", "1")];
        sysfs.disk(path, 5 << 30, &attributes);
        let before = BlockDevice::describe(sysfs.path(), "sda").unwrap();
        assert_eq!((before.disk.model.as_deref(), before.disk.rotational), (Some("M"), true));
        for lost in ["device", "queue"] {
            fs::remove_dir_all(sysfs.path().join(path).join(lost)).unwrap();
            let now = BlockDevice::describe(sysfs.path(), "sda").unwrap();
            assert_eq!((&now.disk.name, now.disk.size), (&before.disk.name, before.disk.size));
            assert_eq!((now.disk.model, now.disk.vendor, now.disk.serial), (None, None, None));
        }
        fs::remove_file(sysfs.path().join(path).join("size")).unwrap();
        assert!(matches!(before.describe_again(), Err(Error::NoSuchDevice { .. })), "this one is gone");
    }
}
