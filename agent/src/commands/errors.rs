//! The one place where errors of lower crates become the contract's error types (section 1.9).

use farrier_protocol::error::CommandError;

/// An error about what makes a system bootable.
pub fn from_boot(error: farrier_boot::Error) -> CommandError {
    CommandError::new(error.kind(), error.to_string())
}

/// An error about disks.
pub fn from_disk(error: farrier_disk::Error) -> CommandError {
    CommandError::new(error.kind(), error.to_string())
}

/// An error about iSCSI.
pub fn from_iscsi(error: farrier_iscsi::Error) -> CommandError {
    CommandError::new(error.kind(), error.to_string())
}

/// An error about images.
pub fn from_imaging(error: farrier_imaging::Error) -> CommandError {
    CommandError::new(error.kind(), error.to_string())
}
