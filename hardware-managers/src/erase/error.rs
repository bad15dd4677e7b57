//! Why a disk was not erased.

use super::method::Method;
use farrier_disk::guard::BootMedium;
use farrier_linux::ata::AtaError;
use farrier_linux::nvme::NvmeError;
use farrier_linux::scsi::ScsiError;
use std::fmt::Display;
use std::time::Duration;

/// A disk was not erased, or the erasure is not proven. The report puts the disk's name in front.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The disk could not be opened, read or written.
    #[error(transparent)]
    Disk(#[from] farrier_disk::Error),
    /// Writes to it are refused.
    #[error("it is read-only; remove its write protection, or set agent_erase_skip_read_only to keep it")]
    ReadOnly,
    /// A volume of software RAID covers a part of it, and was not erased or not stopped.
    #[error("a volume of the node covers a part of it, and {0}")]
    Volume(String),
    /// It may be what the ramdisk came from, and may be a disk of the machine.
    #[error("it is {0}")]
    MayBeMedium(BootMedium),
    /// It has no way of erasing itself, and overwriting proves nothing about such a disk.
    #[error(
        "it has no way to erase itself ({0}); set agent_continue_if_secure_erase_failed to overwrite it instead"
    )]
    NoSecureErase(&'static str),
    /// Its security feature set cannot be used now.
    #[error("{0}")]
    Security(&'static str),
    /// A command was refused or failed.
    #[error("{action} failed: {reason}")]
    Command {
        /// What was tried.
        action: &'static str,
        /// What the device or the kernel said.
        reason: String,
    },
    /// It says that it has a method, and refuses the command at once. Nothing was begun.
    #[error("{action} is not there, though the disk lists it: {reason}")]
    Unsupported {
        /// What was tried.
        action: &'static str,
        /// What the device said.
        reason: String,
    },
    /// Something of it cannot be reached by its sectors, and it did not sanitize itself.
    #[error("{0}")]
    Hidden(String),
    /// Zones of it cannot be written any more.
    #[error("the zone at byte {offset} is read-only or offline; replace or destroy the disk")]
    LostZone {
        /// Where.
        offset: u64,
    },
    /// Too few places of it take what is written to them.
    #[error("{failed} of {planted} places do not take what is written to them; replace or destroy the disk")]
    Worn {
        /// How many do not.
        failed: usize,
        /// How many were tried.
        planted: usize,
    },
    /// The protection of a boot area stays.
    #[error("its write protection cannot be lifted ({0}); power-cycle the machine, or keep the area")]
    BootArea(std::io::Error),
    /// The agent is about to end.
    #[error("it was not erased to its end, because the agent is ending: {0}")]
    Ending(&'static str),
    /// It did not finish.
    #[error("{action} did not finish within {} s; look for errors of the disk in the kernel log", .limit.as_secs())]
    TimedOut {
        /// What was running.
        action: &'static str,
        /// Time that was given.
        limit: Duration,
    },
    /// The disk does not keep what is written to it.
    #[error("byte {offset} does not read back as it was written; replace the disk")]
    NotKept {
        /// Where.
        offset: u64,
    },
    /// The disk reported success and the data is still there.
    #[error("it reports success, but old data is still at byte {offset}; replace or destroy the disk")]
    StillThere {
        /// Where.
        offset: u64,
    },
    /// All secure methods failed, and the operator does not want a weaker one.
    #[error(
        "secure erase ({method}) failed: {source}; correct the cause, or set agent_continue_if_secure_erase_failed \
         to continue with a weaker method"
    )]
    Secure {
        /// The method that was tried.
        method: Method,
        /// Why it failed.
        source: Box<EraseError>,
    },
    /// It says that it holds nothing.
    #[error(
        "it reports a size of 0: it failed, is locked, or a format was interrupted; replace or unlock it, or \
             put it on skip_block_devices"
    )]
    NoSize,
    /// It was unknown when the disks to erase were chosen.
    #[error("it appeared while the other disks were being erased; run the step again")]
    Appeared,
    /// The agent itself failed.
    #[error("the agent has a defect; report it with the log")]
    Defect,
}

impl EraseError {
    /// A command that a disk lists and does not have.
    pub(super) fn unsupported(action: &'static str, reason: &dyn Display) -> Self {
        Self::Unsupported { action, reason: reason.to_string() }
    }

    /// Whether the disk failed; otherwise the agent leaves it while it continues.
    pub(super) fn is_failure_of_disk(&self) -> bool {
        !matches!(self, Self::Ending(_))
    }

    /// A command that an NVMe controller refused.
    pub(super) fn nvme(action: &'static str) -> impl FnOnce(NvmeError) -> Self {
        move |error| Self::Command { action, reason: error.to_string() }
    }

    /// A command that an ATA drive refused.
    pub(super) fn ata(action: &'static str) -> impl FnOnce(AtaError) -> Self {
        move |error| Self::Command { action, reason: error.to_string() }
    }

    /// A command that a SCSI target refused.
    pub(super) fn scsi(action: &'static str) -> impl FnOnce(ScsiError) -> Self {
        move |error| Self::Command { action, reason: error.to_string() }
    }
}
