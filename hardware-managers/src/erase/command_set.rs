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

/// What the kernel calls disks with several paths.
const MULTIPATH: &str = "dm-";
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
        None if device.kernel_name().starts_with(MULTIPATH) => {
            Reach::unanswered("whether it hides blocks: it has several paths, and none was asked".to_owned())
        }
        None => Reach::default(),
    }
}

/// Gets a disk ready to be read, after an erasure that was cut off: waits for the end of one that the disk continues,
/// and unlocks an ATA drive that is locked by the empty password. Such disks answer no read.
///
/// # Errors
///
/// [`EraseError::Security`] for a drive that stays locked, [`EraseError::TimedOut`] or [`EraseError::Ending`]. A disk that
/// does not answer is left to the reader.
pub fn make_ready(device: &BlockDevice, patience: &Patience<'_>) -> Result<(), EraseError> {
    let Some(set) = CommandSet::of_drive(device) else { return Ok(()) };
    let disk = match ReadableDisk::open(device) {
        Ok(disk) => disk,
        Err(error) => {
            tracing::info!(disk = device.disk.name, "not asked whether it is ready: {error}");
            return Ok(());
        }
    };
    match set {
        CommandSet::Nvme => NvmeNamespace::behind(&disk).wait_until_idle(patience),
        CommandSet::Scsi if is_behind_bridge(device) => Ok(()),
        CommandSet::Scsi => ScsiDisk::behind(&disk).wait_until_idle(patience),
        CommandSet::Ata => {
            let drive = AtaDrive::behind(&disk);
            drive.wait_until_idle(patience)?;
            drive.release()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn device(name: &str, vendor: &str, transport: Option<&str>) -> BlockDevice {
        let sysfs = tempfile::tempdir().unwrap();
        let directory = sysfs.path().join("block").join(name);
        fs::create_dir_all(directory.join("device")).unwrap();
        fs::write(directory.join("size"), "4096").unwrap();
        fs::write(directory.join("device/vendor"), vendor).unwrap();
        let mut device = BlockDevice::describe(sysfs.path(), name).unwrap();
        device.disk.tran = transport.map(str::to_owned);
        device
    }

    #[test]
    fn a16_d22_who_may_erase_itself_and_who_does_not_tell_what_it_hides() {
        let settings = Settings::of(&farrier_protocol::lookup::Node::default(), true).unwrap();
        let forbidden = Settings { ata_secure_erase: false, nvme_secure_erase: false, ..settings };
        for (name, vendor, transport, may, unanswered) in [
            ("sdx", "ATA", Some("sata"), true, 0),
            ("sdx", "SEAGATE", Some("sas"), true, 0),
            ("nvme77n1", "", Some("nvme"), true, 0),
            ("sdx", "SanDisk", Some("usb"), false, 1),
            ("sdx", "ATA", Some("usb"), false, 1),
            ("dm-7", "", None, false, 1),
            ("vdx", "", Some("virtio"), false, 0),
            ("mmcblk7", "", Some("mmc"), false, 0),
        ] {
            let device = device(name, vendor, transport);
            assert_eq!(may_erase_itself(&device, &settings), may, "{name} {vendor}");
            assert!(!may_erase_itself(&device, &forbidden), "{name} {vendor}");
            assert_eq!(reach(None, &device).unanswered.len(), unanswered, "{name} {vendor}");
        }
    }
}
