//! The commands by which a disk answers what the block layer of the kernel does not ask.

use crate::device::BlockDevice;
use farrier_linux::ata::IdentifyData;
use farrier_linux::nvme::{self, NvmeDevice};
use farrier_linux::scsi::{self, ScsiDevice};
use std::os::fd::AsFd;
use std::path::Path;

/// Vendor of disks behind the kernel's or a controller's translation of SCSI to ATA.
pub(crate) const ATA_VENDOR: &str = "ATA";

/// A disk's own set of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandSet {
    /// ATA, inside commands of SCSI (SAT).
    Ata,
    /// SCSI.
    Scsi,
    /// NVMe.
    Nvme,
}

/// The page "ATA Information" (SAT-4), which whatever passes commands of ATA on has.
const INFORMATION_PAGE: &str = "device/vpd_pg89";

impl CommandSet {
    /// Nothing for a device that has none of its own, such as an array.
    pub fn of(device: &BlockDevice) -> Option<Self> {
        let name = device.kernel_name();
        match device.disk.vendor.as_deref() {
            Some(ATA_VENDOR) if name.starts_with("sd") => Some(Self::Ata),
            _ if name.starts_with("sd") => Some(Self::Scsi),
            _ => name.starts_with("nvme").then_some(Self::Nvme),
        }
    }

    /// That of the drive itself. A USB bridge in front of a SATA drive shows a disk of SCSI; one that passes commands
    /// of ATA on says so.
    pub fn of_drive(device: &BlockDevice) -> Option<Self> {
        match Self::of(device) {
            Some(Self::Scsi) if device.directory().join(INFORMATION_PAGE).exists() => Some(Self::Ata),
            set => set,
        }
    }

    /// Whether the disk says that what was discarded reads as zeros, each time; one that does not answer says no.
    pub(crate) fn keeps_discarded_zero(self, path: &Path, disk: &impl AsFd) -> bool {
        let answer = match self {
            Self::Ata => IdentifyData::read(&ScsiDevice::new(disk))
                .map(|data| data.reads_zero_after_trim())
                .map_err(|error| error.to_string()),
            Self::Scsi => {
                scsi::reads_zero_after_unmap(&ScsiDevice::new(disk)).map_err(|error| error.to_string())
            }
            Self::Nvme => {
                let controller = NvmeDevice::new(disk);
                let namespace = controller.namespace().map_err(Into::into);
                namespace
                    .and_then(|number| nvme::reads_zero_after_deallocate(&controller, number))
                    .map_err(|error| error.to_string())
            }
        };
        answer.unwrap_or_else(|error| {
            tracing::info!(disk = %path.display(), "the disk does not report how discarded blocks read: {error}");
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    #[test]
    fn a16_a_drive_behind_a_bridge_that_passes_ata_commands_is_asked_by_them() {
        for (name, vendor, passes, shown, drive) in [
            ("sda", "ATA", true, Some(CommandSet::Ata), Some(CommandSet::Ata)),
            ("sda", "ATA", false, Some(CommandSet::Ata), Some(CommandSet::Ata)),
            ("sda", "JMicron", true, Some(CommandSet::Scsi), Some(CommandSet::Ata)),
            ("sda", "SanDisk", false, Some(CommandSet::Scsi), Some(CommandSet::Scsi)),
            ("nvme0n1", "", false, Some(CommandSet::Nvme), Some(CommandSet::Nvme)),
            ("vda", "", false, None, None),
            ("mmcblk0", "", false, None, None),
        ] {
            let sysfs = FakeSysfs::new();
            let page = if passes { INFORMATION_PAGE } else { "device/other" };
            sysfs.disk(&format!("devices/{name}"), 1 << 30, &[("device/vendor", vendor), (page, "x")]);
            let device = BlockDevice::describe(sysfs.path(), name).unwrap();
            assert_eq!(
                (CommandSet::of(&device), CommandSet::of_drive(&device)),
                (shown, drive),
                "{name} {vendor}"
            );
        }
    }
}
