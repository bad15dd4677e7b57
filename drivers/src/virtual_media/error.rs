//! Why a medium cannot be made or read.

use crate::netboot::loaders::LoaderError;
use farrier_conductor::interfaces::InterfaceError;
use farrier_media::boot_iso::BootIsoError;
use farrier_media::config_drive::ConfigDriveError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A medium cannot be published, or not be read.
#[derive(Debug, thiserror::Error)]
pub enum MediumError {
    /// An ISO cannot be laid over.
    #[error("{what}: {source}")]
    Iso {
        /// The file or URL.
        what: String,
        /// Why not.
        source: BootIsoError,
    },
    /// A file cannot be read.
    #[error("{what} cannot be read: {source}; see whether it is there and may be read")]
    Read {
        /// The file or URL.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A server will not send what it should.
    #[error("{url} cannot be loaded: {reason}")]
    Refused {
        /// The URL, without secrets.
        url: String,
        /// Why not.
        reason: String,
    },
    /// A server does not send what it should, but may when it is asked again.
    #[error("{url} cannot be loaded: {reason}")]
    Interrupted {
        /// The URL, without secrets.
        url: String,
        /// Why not.
        reason: String,
    },
    /// A server does not end to send something.
    #[error("{url} cannot be loaded within {} s; see whether its server is overloaded, or let it send parts of files", limit.as_secs())]
    Slow {
        /// The URL, without secrets.
        url: String,
        /// How long it may take.
        limit: Duration,
    },
    /// There is something else in a file or under a URL than before.
    #[error("{what} has changed since the medium was made of it; start the operation again")]
    Changed {
        /// The file, or the URL without secrets.
        what: String,
    },
    /// Something is too long.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// The file or URL.
        what: String,
        /// What is allowed.
        limit: u64,
    },
    /// A boot loader is missing that a medium of a kernel and a ramdisk needs.
    #[error("{source}{instead}")]
    Loader {
        /// Which, and what to do.
        source: LoaderError,
        /// What could be given in its place.
        instead: &'static str,
    },
    /// The config drive of an instance cannot be used.
    #[error(transparent)]
    ConfigDrive(#[from] ConfigDriveError),
    /// The folder cannot be used.
    #[error("{path} cannot be used for the records of virtual media: {source}")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing can be asked of servers.
    #[error("no image can be loaded from servers: {0}")]
    Client(reqwest::Error),
    /// A thread has ended without an answer.
    #[error("reading a medium has crashed; the log says where")]
    Crashed,
}

impl From<MediumError> for InterfaceError {
    fn from(error: MediumError) -> Self {
        Self::driver(error)
    }
}
