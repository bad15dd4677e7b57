//! What can go wrong with a disk, and what to do about it.

use farrier_protocol::error::ErrorKind;
use std::io;
use std::path::PathBuf;

/// An error of this crate. Its text goes to operators as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device vanished between being seen and being described.
    #[error("{device} is not a block device of this machine; list the disks again")]
    NoSuchDevice {
        /// Path of the device node.
        device: String,
    },

    /// A hint that cannot be understood. Such hints match no disk (section 8.1).
    #[error("root device hint {hint} with value {value}: {reason}; correct the node's root_device property")]
    InvalidHint {
        /// Name of the hint.
        hint: String,
        /// The value as given.
        value: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The list of disks that must not be touched cannot be understood.
    #[error("skip_block_devices: {reason}; correct the node's property, no disk is chosen without it")]
    InvalidSkipList {
        /// What is wrong with it.
        reason: String,
    },

    /// The machine shows no disk.
    #[error(
        "no disk found on this machine; check that the disk is connected, that its controller is not hidden \
         by a RAID mode and that the ramdisk has the controller's kernel module"
    )]
    NoDisk,

    /// There are disks, none of which may or can be the root disk.
    #[error("no disk satisfies {wanted} ({verdicts}); correct the hints or attach a fitting disk")]
    NoFittingDisk {
        /// The hints, or the default rule.
        wanted: String,
        /// Each disk with the reason against it.
        verdicts: String,
    },

    /// The chosen disk is no longer what was chosen.
    #[error("{device} changed since it was chosen: {reason}; nothing was written to it, run the step again")]
    ChangedSinceChosen {
        /// Path of the device node.
        device: String,
        /// What changed.
        reason: String,
    },

    /// Something else uses the disk.
    #[error("{device} is in use: {user}; nothing was written to it, release the disk and run the step again")]
    InUse {
        /// Path of the device node.
        device: String,
        /// Who uses it, as far as known.
        user: String,
    },

    /// The disk refuses writes.
    #[error("{device} is read-only; remove its write protection and run the step again")]
    ReadOnly {
        /// Path of the device node.
        device: String,
    },

    /// The disk carries what other machines may be using.
    #[error(
        "{device} carries {content}, which other machines may be using, and was not touched; disconnect the \
         disk, put it on the node's skip_block_devices, or consent with driver_info wipe_special_filesystems"
    )]
    Protected {
        /// Path of the device node.
        device: PathBuf,
        /// Kind of a file system, and where it is when it is not on the device itself; or the reservation.
        content: String,
    },

    /// An operation on the device failed.
    #[error("{device}: {action} failed: {source}; look for errors of the disk in the kernel log")]
    Device {
        /// Path of the device node.
        device: PathBuf,
        /// What was tried.
        action: String,
        /// The kernel's answer.
        source: io::Error,
    },

    /// The partition table is damaged.
    #[error("{device}: the partition table is not valid: {reason}; check the image, or clean the disk")]
    InvalidTable {
        /// Path of the device node.
        device: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// After writing an image there is nothing to boot from.
    #[error(
        "{device} has no partitions after the image was written; check that the image is a whole-disk image"
    )]
    NoPartitions {
        /// Path of the device node.
        device: PathBuf,
    },

    /// The config drive cannot be used as it came.
    #[error("config drive: {reason}")]
    InvalidConfigDrive {
        /// What is wrong with it, and what to do.
        reason: String,
    },

    /// The config drive found no place on the disk.
    #[error("{device}: no place for the config drive: {reason}")]
    NoPlaceForConfigDrive {
        /// Path of the device node.
        device: PathBuf,
        /// Why, and what to do.
        reason: String,
    },

    /// The partitions that were asked for do not fit.
    #[error("{device}: {reason}")]
    NoRoom {
        /// Path of the device node.
        device: PathBuf,
        /// What does not fit, and what to do.
        reason: String,
    },

    /// What was read back is not what was written.
    #[error("{device}: {what} reads back differently from what was written; replace the disk")]
    Corrupted {
        /// Path of the device node.
        device: PathBuf,
        /// What was written.
        what: &'static str,
    },

    /// Old content is still recognised on a disk whose metadata was removed.
    #[error(
        "{device} still shows {content} with its mark at byte {offset} after its metadata was removed; look who writes \
         to it, or erase all of it with erase_devices"
    )]
    SignatureLeft {
        /// Path of the device node.
        device: PathBuf,
        /// Kind of the content.
        content: String,
        /// Where on the device it is recognised, in bytes.
        offset: u64,
    },

    /// The wanted RAID volumes cannot be understood, or not be made on this machine.
    #[error("target_raid_config: {reason}; correct the node's target_raid_config")]
    InvalidRaidConfig {
        /// Everything that is wrong with it.
        reason: String,
    },

    /// Something about software RAID failed on one disk or array.
    #[error("{device}: {reason}")]
    Raid {
        /// Path of the device node.
        device: PathBuf,
        /// What happened, and what to do.
        reason: String,
    },

    /// The paths to a disk could not be joined.
    #[error(
        "{device}: {paths} paths to it cannot be joined ({source}), so one is used alone; pack dm_multipath and \
         dm_service_time, and look into the kernel log"
    )]
    Multipath {
        /// Path of the device node that is used.
        device: PathBuf,
        /// How many there are.
        paths: usize,
        /// The kernel's answer.
        source: io::Error,
    },

    /// The partitions of a disk with several paths cannot be mounted.
    #[error(
        "{device} is a disk with several paths, of whose partitions the ramdisk has no devices, so nothing in them \
         can be mounted; put into the image what it needs, or connect the disk by one path"
    )]
    NoPartitionNodes {
        /// Path of the device node.
        device: PathBuf,
    },

    /// There is no EFI system partition to boot from.
    #[error(
        "{device} has no EFI system partition; use an image that boots by UEFI, or boot the machine in BIOS mode"
    )]
    NoEsp {
        /// Path of the device node.
        device: PathBuf,
    },

    /// The EFI system partition cannot be read.
    #[error("{device}: the EFI system partition {number} cannot be read: {source}; check the image")]
    UnreadableEsp {
        /// Path of the device node.
        device: PathBuf,
        /// Number of the partition.
        number: u32,
        /// What the file system code said.
        source: io::Error,
    },

    /// A session leads to another disk than the one that was exported.
    #[error("the disk behind {name} is not the one that was exported: {reason}; nothing was written to it")]
    Remote {
        /// What the session is with.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The contract's class of this error (section 1.9).
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchDevice { .. }
            | Self::InvalidHint { .. }
            | Self::InvalidSkipList { .. }
            | Self::NoDisk
            | Self::NoFittingDisk { .. }
            | Self::NoEsp { .. } => ErrorKind::DeviceNotFound,
            Self::Remote { .. } => ErrorKind::ISCSIError,
            Self::Device { .. } | Self::Multipath { .. } => ErrorKind::BlockDeviceError,
            Self::InvalidRaidConfig { .. } | Self::Raid { .. } => ErrorKind::SoftwareRAIDError,
            Self::Protected { .. } => ErrorKind::ProtectedDeviceError,
            Self::ChangedSinceChosen { .. }
            | Self::InUse { .. }
            | Self::ReadOnly { .. }
            | Self::InvalidTable { .. }
            | Self::NoPartitions { .. }
            | Self::NoPartitionNodes { .. }
            | Self::InvalidConfigDrive { .. }
            | Self::NoPlaceForConfigDrive { .. }
            | Self::NoRoom { .. }
            | Self::Corrupted { .. }
            | Self::SignatureLeft { .. }
            | Self::UnreadableEsp { .. } => ErrorKind::DeploymentError,
        }
    }
}
