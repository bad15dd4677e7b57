//! What can go wrong while a deployed system is made bootable, and what to do about it.

use farrier_protocol::error::ErrorKind;
use std::path::PathBuf;

/// An error of this crate. Its text goes to operators as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk cannot be used.
    #[error(transparent)]
    Disk(#[from] farrier_disk::Error),

    /// The image is for the other firmware mode.
    #[error(
        "{device}: the image boots by BIOS only, and the machine runs in UEFI mode; use an image that boots by \
         UEFI, or boot the machine in BIOS mode"
    )]
    BiosOnly {
        /// Path of the device node.
        device: PathBuf,
    },

    /// The image brings no boot loader for the firmware, and none may or can be installed.
    #[error("{device}: the image brings no boot loader for {firmware}: {advice}")]
    NoLoader {
        /// Path of the device node.
        device: PathBuf,
        /// Mode of the firmware.
        firmware: String,
        /// What to do.
        advice: String,
    },

    /// The firmware has no boot entries, and nothing that it finds without.
    #[error(
        "{device}: {reason}, and the image has no loader at {path}, where firmware without boot entries looks; use \
         an image with a loader there"
    )]
    NoRemovableLoader {
        /// Path of the device node.
        device: PathBuf,
        /// Why no boot entry can be written.
        reason: String,
        /// Where a loader would be found.
        path: String,
    },

    /// The deployed system could not be made bootable with what it brings.
    #[error("{device}: {action} failed: {reason}; check the image, or set ipa-ignore-bootloader-failure")]
    BootLoader {
        /// Path of the device node.
        device: PathBuf,
        /// What was tried.
        action: String,
        /// What happened.
        reason: String,
    },

    /// A pattern for boot entries that cannot be read.
    #[error("match_patterns: {pattern:?} is not a regular expression ({reason}); correct it")]
    InvalidPattern {
        /// The text.
        pattern: String,
        /// What is wrong.
        reason: String,
    },

    /// The firmware's variables refused a boot entry, or to be rid of one.
    #[error(
        "UEFI variable {name}: {reason}; clear the firmware's boot entries, or set ipa-ignore-bootloader-failure"
    )]
    BootVariable {
        /// Name of the variable.
        name: String,
        /// What happened.
        reason: String,
    },
}

impl Error {
    /// The contract's class of this error (section 1.9).
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Disk(error) => error.kind(),
            Self::BiosOnly { .. } => ErrorKind::DeviceNotFound,
            Self::NoLoader { .. } | Self::NoRemovableLoader { .. } => ErrorKind::InvalidImage,
            Self::InvalidPattern { .. } => ErrorKind::InvalidCommandParamsError,
            Self::BootLoader { .. } | Self::BootVariable { .. } => ErrorKind::DeploymentError,
        }
    }
}
