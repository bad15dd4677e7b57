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
pub(crate) enum CommandSet {
    Ata,
    Scsi,
    Nvme,
}

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

    /// Whether the disk says that what was discarded reads as zeros, each time; one that does not answer says no.
    pub fn keeps_discarded_zero(self, path: &Path, disk: &impl AsFd) -> bool {
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
            tracing::info!(disk = %path.display(), "it does not tell what discarded blocks read as: {error}");
            false
        })
    }
}
