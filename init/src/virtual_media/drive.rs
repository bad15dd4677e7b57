//! Which block devices can be virtual drives of a BMC.
//!
//! A disk of the machine may carry any label that its last tenant wrote, so that labels prove nothing.
//! Bus and type do: an optical drive, or a small disk on USB (S13).

use farrier_linux::sysfs;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// SCSI peripheral type of an optical drive.
const OPTICAL: u32 = 5;
/// Bytes from which on a USB disk is no virtual medium.
const MAX_USB_SIZE: u64 = 4 << 30;
/// Bytes that sysfs counts sizes in.
const SECTOR: u64 = 512;

/// A drive that the machine's users cannot write to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drive {
    /// Its device file.
    pub device: PathBuf,
    /// What it calls itself.
    pub model: String,
}

/// Every such drive with a medium in it. Partitions are no drives: they are not listed here.
pub fn list(sysfs: &Path, devices: &Path) -> Vec<Drive> {
    let blocks = sysfs.join("block");
    let names = sysfs::entries(&blocks).into_iter();
    names
        .filter(|name| is_virtual(&blocks.join(name)))
        .map(|name| Drive {
            model: sysfs::attribute(&blocks.join(&name).join("device"), "model").unwrap_or_default(),
            device: devices.join(name),
        })
        .collect()
}

fn is_virtual(block: &Path) -> bool {
    let size = sysfs::number::<u64>(block, "size").unwrap_or(0).saturating_mul(SECTOR);
    let is_optical = sysfs::number(&block.join("device"), "type") == Some(OPTICAL);
    size > 0 && (is_optical || (is_on_usb(block) && size < MAX_USB_SIZE))
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
            let found = list(sysfs.path(), Path::new("/dev"));
            assert_eq!(found.len(), usize::from(expected), "{path}");
            if let Some(drive) = found.first() {
                assert_eq!(drive.device.file_name(), Path::new(path).file_name());
                assert_eq!(drive.model, "Virtual Media");
            }
        }
    }
}
