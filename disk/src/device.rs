//! A block device as sysfs describes it.

use crate::error::Error;
use crate::identity;
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
    /// Every form of its serial number (F27).
    pub serials: Vec<String>,
    /// Every form of its World Wide Name (F27).
    pub wwns: Vec<String>,
    kernel_name: String,
    directory: PathBuf,
}

impl BlockDevice {
    /// Describes the whole disk `kernel_name`, such as `sda`, from the sysfs mounted at `sysfs`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`].
    pub fn describe(sysfs: &Path, kernel_name: &str) -> Result<Self, Error> {
        // sysfs writes the slash of names such as cciss/c0d0 as an exclamation mark.
        let name = format!("/dev/{}", kernel_name.replace('!', "/"));
        let directory = sysfs.join("block").join(kernel_name);
        let sectors = sysfs::number::<u64>(&directory, "size")
            .ok_or_else(|| Error::NoSuchDevice { device: name.clone() })?;
        let device = directory.join("device");
        let queue = directory.join("queue");
        let logical = sysfs::number(&queue, "logical_block_size").unwrap_or(512);
        let serials = identity::serials(&directory);
        let wwn = identity::WorldWideName::read(&directory);
        let disk = Disk {
            name,
            model: sysfs::attribute(&device, "model"),
            size: sectors * SYSFS_SECTOR,
            rotational: sysfs::number::<u8>(&queue, "rotational") == Some(1),
            wwn: wwn.name.clone(),
            serial: serials.first().cloned(),
            vendor: sysfs::attribute(&device, "vendor"),
            wwn_with_extension: wwn.with_extension.clone(),
            wwn_vendor_extension: wwn.vendor_extension.clone(),
            hctl: sysfs::entries(&device.join("scsi_device")).into_iter().next(),
            by_path: None,
            logical_sectors: logical,
            physical_sectors: sysfs::number(&queue, "physical_block_size").unwrap_or(logical),
            tran: transport(&directory, kernel_name),
        };
        Ok(Self { disk, serials, wwns: wwn.forms(), kernel_name: kernel_name.to_owned(), directory })
    }

    /// Name the kernel gave it, without `/dev/`.
    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// The device as it is described now.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`] when it went away.
    pub(crate) fn describe_again(&self) -> Result<Self, Error> {
        let sysfs = self.directory.parent().and_then(Path::parent).unwrap_or(Path::new("/sys"));
        Self::describe(sysfs, &self.kernel_name)
    }

    /// sysfs directories of the disk itself and of its partitions.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let partitions = sysfs::entries(&self.directory)
            .into_iter()
            .map(|name| self.directory.join(name))
            .filter(|directory| directory.join("partition").exists());
        std::iter::once(self.directory.clone()).chain(partitions).collect()
    }
}

/// How the disk is attached, told by its place in the device tree.
fn transport(directory: &Path, kernel_name: &str) -> Option<String> {
    if kernel_name.starts_with("nvme") {
        return Some("nvme".to_owned());
    }
    let path = directory.canonicalize().ok()?;
    let path = path.to_string_lossy();
    // Nearest bus first: a SATA or virtio disk behind a USB bridge is a USB disk.
    [
        ("/usb", "usb"),
        ("/end_device-", "sas"),
        ("/rport-", "fc"),
        ("/session", "iscsi"),
        ("/ata", "sata"),
        ("/virtio", "virtio"),
        ("/mmc_host/", "mmc"),
    ]
    .into_iter()
    .find_map(|(mark, name)| path.contains(mark).then(|| name.to_owned()))
}
