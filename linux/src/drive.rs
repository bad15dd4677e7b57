//! Drives whose media people put in and take out: optical ones, and disks on USB. Virtual drives of a BMC are among them.
//!
//! A disk of the machine may carry any label that its last tenant wrote, so that labels prove nothing.
//! Bus and type do (S13).

use crate::sysfs;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// SCSI peripheral type of an optical drive.
const OPTICAL: u32 = 5;
/// Bytes from which on a USB disk is no virtual medium.
const MAX_VIRTUAL: u64 = 4 << 30;
/// Bytes that sysfs counts sizes in.
const SECTOR: u64 = 512;

/// A drive with a medium in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drive {
    /// Its device file.
    pub device: PathBuf,
    /// Its name in sysfs.
    pub kernel_name: String,
    /// What it calls itself.
    pub model: String,
    /// Whether it is an optical drive. Any other one is a disk on USB.
    pub is_optical: bool,
    /// Bytes of its medium.
    pub size: u64,
}

impl Drive {
    /// Whether it can be a virtual drive of a BMC: an optical drive, or a small disk.
    pub fn may_be_virtual(&self) -> bool {
        self.is_optical || self.size < MAX_VIRTUAL
    }
}

/// Every such drive with a medium in it, in the sysfs mounted at `sysfs`. Partitions are no drives.
pub fn list(sysfs: &Path) -> Vec<Drive> {
    let blocks = sysfs.join("block");
    sysfs::entries(&blocks).into_iter().filter_map(|name| describe(&blocks.join(&name), name)).collect()
}

fn describe(block: &Path, kernel_name: String) -> Option<Drive> {
    let size = sysfs::number::<u64>(block, "size").unwrap_or(0).saturating_mul(SECTOR);
    let is_optical = sysfs::number(&block.join("device"), "type") == Some(OPTICAL);
    let is_drive = size > 0 && (is_optical || is_on_usb(block));
    is_drive.then(|| Drive {
        device: sysfs::node(block),
        model: sysfs::attribute(&block.join("device"), "model").unwrap_or_default(),
        kernel_name,
        is_optical,
        size,
    })
}

/// Whether the path of the device in the tree of devices leads over a USB bus.
fn is_on_usb(block: &Path) -> bool {
    let is_bus = |name: &str| {
        let number = name.strip_prefix("usb").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    fs::canonicalize(block).is_ok_and(|path| {
        path.components()
            .any(|part| matches!(part, Component::Normal(name) if is_bus(&name.to_string_lossy())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn add(sysfs: &Path, path: &str, kind: u32, size: u64) {
        let block = sysfs.join("devices").join(path);
        fs::create_dir_all(block.join("device")).unwrap();
        fs::create_dir_all(sysfs.join("block")).unwrap();
        fs::write(block.join("size"), format!("{}\n", size / SECTOR)).unwrap();
        fs::write(block.join("device/type"), format!("{kind}\n")).unwrap();
        fs::write(block.join("device/model"), "Virtual Media   \n").unwrap();
        symlink(&block, sysfs.join("block").join(block.file_name().unwrap())).unwrap();
    }

    #[test]
    fn s13_only_optical_drives_and_small_usb_disks_are_believed() {
        const GIB: u64 = 1 << 30;
        for (path, kind, size, expected) in [
            ("pci0000:00/ata2/host1/target1:0:0/1:0:0:0/block/sr0", 5, GIB, true),
            ("pci0000:00/usb1/1-2/host6/target6:0:0/6:0:0:0/block/sr1", 5, 8 * GIB, true),
            ("pci0000:00/usb2/2-1/2-1:1.0/host7/target7:0:0/7:0:0:0/block/sdb", 0, 1_474_560, true),
            ("pci0000:00/usb2/2-1/2-1:1.0/host7/target7:0:0/7:0:0:0/block/sdc", 0, 4 * GIB, false),
            ("pci0000:00/usbank/host7/target7:0:0/7:0:0:0/block/sdd", 0, GIB, false),
            ("pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda", 0, GIB, false),
            ("pci0000:00/nvme/nvme0/nvme0n1", 0, GIB, false),
            ("virtual/block/loop0", 0, GIB, false),
            ("pci0000:00/ata2/host1/target1:0:0/1:0:0:0/block/sr2", 5, 0, false),
        ] {
            let sysfs = tempfile::tempdir().unwrap();
            add(sysfs.path(), path, kind, size);
            let found = list(sysfs.path());
            let is_usb_disk = path.contains("/usb2/");
            assert_eq!(found.len(), usize::from(expected || is_usb_disk), "{path}");
            if let Some(drive) = found.first() {
                assert_eq!(drive.may_be_virtual(), expected, "{path}");
                assert_eq!((drive.is_optical, drive.size), (kind == 5, size / SECTOR * SECTOR), "{path}");
                assert_eq!(drive.device.file_name(), Path::new(path).file_name());
                assert_eq!(drive.model, "Virtual Media");
            }
        }
    }
}
