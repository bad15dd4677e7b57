//! What can go wrong with iSCSI.

use farrier_protocol::error::ErrorKind;

/// An error of an export, or of the disks that the firmware booted from.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk from which the firmware booted is missing.
    #[error("the iSCSI disk {target} from which the firmware booted is missing: {reason}")]
    FirmwareBoot {
        /// Name of the target and its address.
        target: String,
        /// What happened, and what to do.
        reason: String,
    },

    /// The parameters of an export are not valid.
    #[error("{field}: {reason}; correct the parameter")]
    InvalidExport {
        /// Name of the parameter.
        field: &'static str,
        /// What is wrong with its value.
        reason: String,
    },

    /// The export of a disk failed, or its end.
    #[error("iSCSI target {target}: {reason}")]
    Target {
        /// Name of the target.
        target: String,
        /// What happened, and what to do.
        reason: String,
    },

    /// The disk itself failed.
    #[error(transparent)]
    Disk(#[from] farrier_disk::Error),
}

impl Error {
    /// The contract's class of this error (section 1.9).
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::FirmwareBoot { .. } => ErrorKind::DeviceNotFound,
            Self::InvalidExport { .. } => ErrorKind::InvalidCommandParamsError,
            Self::Target { .. } => ErrorKind::ISCSIError,
            Self::Disk(error) => error.kind(),
        }
    }
}
