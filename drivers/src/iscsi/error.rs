//! What can go wrong between the conductor and a disk that is exported.

use farrier_conductor::Error;
use farrier_conductor::interfaces::InterfaceError;
use std::io;

/// The conductor could not write a disk over iSCSI.
#[derive(Debug, thiserror::Error)]
pub enum IscsiError {
    /// The initiator is not installed, or not all of it.
    #[error("{program} cannot be used ({source}); install {packages}")]
    NoInitiator {
        /// The program.
        program: String,
        /// What happened.
        source: io::Error,
        /// What has it, as Debian calls it.
        packages: &'static str,
    },
    /// The login failed.
    #[error(
        "no login to {target} at {portal}: {reason}; look whether this host reaches that port of the machine"
    )]
    Login {
        /// Name of the target.
        target: String,
        /// Address and port.
        portal: String,
        /// What the initiator said.
        reason: String,
    },
    /// The session did not end as it should.
    #[error(
        "the session with {target} did not end in order: {reason}; data may be missing on the disk; deploy again"
    )]
    Logout {
        /// Name of the target.
        target: String,
        /// What happened.
        reason: String,
    },
    /// The disk, its partitions or the config drive.
    #[error(transparent)]
    Disk(#[from] farrier_disk::Error),
    /// The names or the secret of the export.
    #[error(transparent)]
    Export(#[from] farrier_iscsi::Error),
    /// The image.
    #[error(transparent)]
    Image(#[from] farrier_imaging::Error),
    /// The ephemeral partition cannot have the file system that is wanted.
    #[error("ephemeral_format: {0}")]
    EphemeralFormat(String),
    /// The work that was given to a thread crashed.
    #[error("writing the disk crashed; see the conductor's log")]
    Crashed,
}

impl From<IscsiError> for Error {
    fn from(error: IscsiError) -> Self {
        InterfaceError::driver(error).into()
    }
}
