//! Boot areas of eMMC devices. Firmware may start from them, and a board whose firmware is gone never starts again: so
//! they are erased only where the operator says so. The kernel protects them from slips by `force_ro`.

use super::error::EraseError;
use farrier_disk::BlockDevice;
use farrier_disk::device::HardwarePartition;
use farrier_linux::sysfs;
use std::path::{Path, PathBuf};

/// Why a boot area is kept.
pub const KEPT: &str = "a boot area of an eMMC device, which may hold the firmware of the machine; \
                        farrier-erase-emmc-boot-areas erases it";
/// Attribute by which the kernel refuses writes.
const FORCE_RO: &str = "force_ro";

/// Whether a disk is such an area.
pub fn is_one(device: &BlockDevice) -> bool {
    device.hardware_partition() == Some(HardwarePartition::Boot)
}

/// A boot area that takes writes, until this is dropped.
#[derive(Debug)]
pub struct Writable(PathBuf);

impl Writable {
    /// Lifts the kernel's protection of a boot area in the sysfs mounted at `sysfs`.
    ///
    /// # Errors
    ///
    /// [`EraseError::BootArea`].
    pub fn new(sysfs: &Path, device: &BlockDevice) -> Result<Self, EraseError> {
        let directory = sysfs.join("block").join(device.kernel_name());
        sysfs::write(&directory, FORCE_RO, "0").map_err(EraseError::BootArea)?;
        let area = Self(directory);
        // One that its own register protects until the next power cycle, or for ever, stays read-only.
        match sysfs::number::<u8>(&area.0, "ro") {
            Some(1) => Err(EraseError::BootArea(std::io::ErrorKind::ReadOnlyFilesystem.into())),
            _ => Ok(area),
        }
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        if let Err(error) = sysfs::write(&self.0, FORCE_RO, "1") {
            tracing::warn!(area = %self.0.display(), "its protection is not set again: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a12_the_protection_of_a_boot_area_is_lifted_and_set_again() {
        let sysfs = tempfile::tempdir().unwrap();
        let area = sysfs.path().join("block/mmcblk0boot0");
        fs::create_dir_all(&area).unwrap();
        fs::write(area.join("size"), "8192").unwrap();
        let device = BlockDevice::describe(sysfs.path(), "mmcblk0boot0").unwrap();
        assert!(is_one(&device));
        assert!(matches!(Writable::new(sysfs.path(), &device), Err(EraseError::BootArea(_))), "no force_ro");
        for (ro, is_lifted) in [("0", true), ("1", false)] {
            fs::write(area.join(FORCE_RO), "1").unwrap();
            fs::write(area.join("ro"), ro).unwrap();
            let writable = Writable::new(sysfs.path(), &device);
            assert_eq!(writable.is_ok(), is_lifted, "{ro}");
            let while_open = fs::read_to_string(area.join(FORCE_RO)).unwrap();
            assert_eq!(while_open, if is_lifted { "0" } else { "1" });
            drop(writable);
            assert_eq!(fs::read_to_string(area.join(FORCE_RO)).unwrap(), "1");
        }
    }
}
