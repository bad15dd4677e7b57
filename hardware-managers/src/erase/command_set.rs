//! What a disk does by commands of its own: erase itself, and say how much of it is out of reach.

mod ata;
mod nvme;
mod reach;
mod scsi;
mod secure;

pub use reach::{Cause, Hidden, Reach};
pub use secure::{Patience, SecureErase};
#[cfg(test)]
pub use secure::{Stage, Survey};

use super::error::EraseError;
use super::settings::Settings;
use ata::AtaDrive;
use farrier_disk::device::CommandSet;
use farrier_disk::probe::ReadableDisk;
use farrier_disk::{BlockDevice, WritableDisk};
use nvme::NvmeNamespace;
use scsi::ScsiDisk;
use std::path::Path;

/// How a disk is attached whose bridge passes few commands on.
const USB: &str = "usb";

/// How a disk erases itself; nothing for one whose kind cannot.
pub fn of<'a>(disk: &'a WritableDisk, device: &BlockDevice) -> Option<Box<dyn SecureErase + 'a>> {
    match CommandSet::of_drive(device)? {
        CommandSet::Nvme => Some(Box::new(NvmeNamespace::of(disk))),
        CommandSet::Ata => Some(Box::new(AtaDrive::of(disk))),
        CommandSet::Scsi => (!is_behind_bridge(device)).then(|| Box::new(ScsiDisk::of(disk)) as _),
    }
}

/// Whether the operator lets a disk erase itself.
///
/// A disk behind a USB bridge is overwritten: bridges drop or mangle such commands (D22).
pub fn may_erase_itself(device: &BlockDevice, settings: &Settings) -> bool {
    match CommandSet::of_drive(device) {
        Some(CommandSet::Nvme) => settings.nvme_secure_erase,
        Some(CommandSet::Ata | CommandSet::Scsi) => settings.ata_secure_erase && !is_behind_bridge(device),
        None => false,
    }
}

/// How much of a disk its sectors reach, with what the disk does not tell.
pub fn reach(own: Option<&dyn SecureErase>, device: &BlockDevice) -> Reach {
    match own {
        // The medium behind a fabric is another machine's, and so is what others may make of it.
        Some(_) if nvme::is_remote(Path::new("/sys"), device.kernel_name()) => Reach::default(),
        Some(own) => own.reach(),
        None if is_behind_bridge(device) => Reach::unanswered(
            "whether it hides sectors (host protected area): its USB bridge passes no commands on".to_owned(),
        ),
        None => Reach::default(),
    }
}

/// Unlocks an ATA drive that an erasure left locked by the empty password, before anything on it is read: a locked
/// drive answers no read.
///
/// # Errors
///
/// [`EraseError::Security`] for a drive that stays locked. One that cannot be asked is left to whoever reads it.
pub fn unlock(device: &BlockDevice) -> Result<(), EraseError> {
    if CommandSet::of_drive(device) != Some(CommandSet::Ata) {
        return Ok(());
    }
    match ReadableDisk::open(device) {
        Ok(disk) => AtaDrive::behind(&disk).release(),
        Err(error) => {
            tracing::info!(disk = device.disk.name, "not asked whether it is locked: {error}");
            Ok(())
        }
    }
}

/// What a disk hides, asked without opening it for writing.
pub fn hidden(device: &BlockDevice) -> Vec<Hidden> {
    if CommandSet::of_drive(device) != Some(CommandSet::Ata) {
        return Vec::new();
    }
    ReadableDisk::open(device).map(|disk| AtaDrive::behind(&disk).reach().hidden).unwrap_or_default()
}

fn is_behind_bridge(device: &BlockDevice) -> bool {
    device.disk.tran.as_deref() == Some(USB)
}
