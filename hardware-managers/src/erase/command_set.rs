//! Which commands a disk erases itself by: those of NVMe, of ATA or of SCSI.

use super::ata::AtaDrive;
use super::nvme::NvmeNamespace;
use super::scsi::ScsiDisk;
use super::secure::SecureErase;
use super::settings::Settings;
use farrier_disk::{BlockDevice, WritableDisk};

/// SCSI vendor of disks behind an ATA translation.
const ATA_VENDOR: &str = "ATA";

/// How a disk erases itself; nothing for one whose kind cannot, or which the operator keeps from it.
///
/// A disk behind a USB bridge is overwritten: bridges drop or mangle such commands (D22).
pub fn of<'a>(
    disk: &'a WritableDisk,
    device: &BlockDevice,
    settings: &Settings,
) -> Option<Box<dyn SecureErase + 'a>> {
    let name = device.kernel_name();
    if name.starts_with("nvme") {
        return settings.nvme_secure_erase.then(|| Box::new(NvmeNamespace::of(disk)) as _);
    }
    let is_usable = settings.ata_secure_erase && device.disk.tran.as_deref() != Some("usb");
    if !is_usable || !name.starts_with("sd") {
        return None;
    }
    if device.disk.vendor.as_deref() == Some(ATA_VENDOR) {
        return Some(Box::new(AtaDrive::of(disk)));
    }
    Some(Box::new(ScsiDisk::of(disk)))
}
