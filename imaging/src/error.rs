//! What can go wrong while an image is written.

use crate::shown_url::without_secrets;
use farrier_protocol::error::ErrorKind;
use reqwest::StatusCode;
use std::path::PathBuf;
use std::time::Duration;

/// An image could not be written. The text names image or disk and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The declared format is not one that can be written.
    #[error("image {image} is declared as {format}, which cannot be written: convert it to raw or qcow2")]
    Format {
        /// Image id.
        image: String,
        /// Declared format.
        format: String,
    },
    /// The content is not what was declared, or may not be written.
    #[error("{url} is refused: {reason}")]
    Content {
        /// Where it came from.
        url: String,
        /// What is wrong, and where that is not plain what to do.
        reason: String,
    },
    /// A qcow2 image that is refused.
    #[error("{url} is refused as a qcow2 image: {reason}")]
    Qcow2 {
        /// URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A qcow2 image whose data comes before its tables, and no room for what has to wait.
    #[error(
        "{url} has data before the tables that map it, the server has no ranges, and {disk} has only \
         {bytes} bytes to spare for it: serve the image with ranges, or rewrite it with qemu-img convert"
    )]
    NoSpool {
        /// URL.
        url: String,
        /// Disk.
        disk: PathBuf,
        /// Bytes behind the image.
        bytes: u64,
    },
    /// The tables of a qcow2 image were others when the file came than when they were read before.
    #[error("{url} changed while it was read: try again")]
    Changed {
        /// URL.
        url: String,
    },
    /// The server said it has ranges and does not give them.
    #[error("{url} cannot be read in parts: serve it with ranges")]
    NoRanges {
        /// URL.
        url: String,
    },
    /// Declared raw, but compressed.
    #[error(
        "{url} is declared as raw and is compressed with {compression}: \
         declare no disk_format, or unknown, to have it unpacked"
    )]
    NotRaw {
        /// URL.
        url: String,
        /// What it is compressed with.
        compression: &'static str,
    },
    /// Compressed in a way that is not unpacked.
    #[error("{url} is compressed with {compression}, which is not unpacked: use one of {known}")]
    Packed {
        /// URL.
        url: String,
        /// What it is compressed with.
        compression: &'static str,
        /// What is unpacked.
        known: String,
    },
    /// The digest matches, and still the image cannot be unpacked.
    #[error(
        "{url} cannot be unpacked as {compression} ({reason}): compress the image again; if memory is what lacks, \
         with a window of less than {memory_mib} MiB, which is all that can be given to it"
    )]
    Unpack {
        /// URL.
        url: String,
        /// What it is compressed with.
        compression: &'static str,
        /// What the decoder says.
        reason: String,
        /// MiB that the decoder might take.
        memory_mib: u64,
    },
    /// The image's partition table was made for other sectors.
    #[error(
        "{url} was made for sectors of {image_sector} bytes, {disk} has sectors of {disk_sector}: \
         use an image made for such disks"
    )]
    SectorSize {
        /// URL.
        url: String,
        /// Bytes of a sector in the image.
        image_sector: u32,
        /// Disk.
        disk: PathBuf,
        /// Bytes of a sector of the disk.
        disk_sector: u32,
    },
    /// No digest that can be used.
    #[error("image {image} cannot be verified: {reason}")]
    Digest {
        /// Image id.
        image: String,
        /// What is wrong with the given digests, and what to give.
        reason: String,
    },
    /// A checksum file does not tell the digest of the image.
    #[error("the checksum file {url} is of no use: {reason}")]
    ChecksumFile {
        /// URL of the file.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Credentials or proxies that cannot be used.
    #[error("image {image} cannot be requested: {reason}")]
    Access {
        /// Image id.
        image: String,
        /// What is wrong, and what to give; never a secret itself.
        reason: String,
    },
    /// The server cannot be reached.
    #[error("{url} cannot be reached ({reason}): check the address and the image server")]
    Unreachable {
        /// URL.
        url: String,
        /// Cause.
        reason: String,
    },
    /// A local file cannot be read.
    #[error("{url} cannot be read ({reason}): check the path")]
    LocalFile {
        /// URL.
        url: String,
        /// Cause.
        reason: String,
    },
    /// An address in a registry that names no blob.
    #[error("{url} names no blob: give oci://REGISTRY/REPOSITORY@sha256:DIGEST")]
    Registry {
        /// URL.
        url: String,
    },
    /// The server encodes what it sends, although that was not asked for, and in an unknown way.
    #[error(
        "{url} is sent with Content-Encoding {encoding}: have the server send the file as it is, or with gzip"
    )]
    Encoded {
        /// URL.
        url: String,
        /// What the server says.
        encoding: String,
    },
    /// The server refuses.
    #[error("{url} answered {status}: check the URL and the image server")]
    Status {
        /// URL.
        url: String,
        /// Its answer.
        status: StatusCode,
        /// How long it wants to be left alone (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// The body broke off, or has another length than announced.
    #[error("the download of {url} broke off after {received} bytes{}: {reason}", of(*expected))]
    Interrupted {
        /// URL.
        url: String,
        /// Bytes that came.
        received: u64,
        /// Bytes that were announced.
        expected: Option<u64>,
        /// Cause.
        reason: String,
    },
    /// The download took longer than it may.
    #[error(
        "the download of {url} took longer than {seconds} s in all: \
         check the image server, or raise image_download_max_duration"
    )]
    TooSlow {
        /// URL.
        url: String,
        /// Limit.
        seconds: u64,
    },
    /// A file that is read into memory is no small one.
    #[error("{url} has more than {most} bytes: check the address, or make it smaller")]
    TooLong {
        /// URL.
        url: String,
        /// Bytes it may have.
        most: usize,
    },
    /// The bytes are not those that were asked for.
    #[error(
        "{url} has the {algorithm} digest {actual}, expected {expected}: \
         the image or its checksum is wrong"
    )]
    Mismatch {
        /// URL.
        url: String,
        /// Algorithm.
        algorithm: &'static str,
        /// Digest that was given.
        expected: String,
        /// Digest of what was received.
        actual: String,
    },
    /// The image does not fit.
    #[error("{url} has {image_bytes} bytes or more, {disk} has {disk_bytes}: choose a larger disk")]
    TooLarge {
        /// URL.
        url: String,
        /// Bytes of the image, as far as known.
        image_bytes: u64,
        /// Disk.
        disk: PathBuf,
        /// Its bytes.
        disk_bytes: u64,
    },
    /// An empty image.
    #[error("{url} is empty: check the URL and the image server")]
    Empty {
        /// URL.
        url: String,
    },
    /// The disk returns other bytes than were written.
    #[error("{disk} returns other data than was written at byte {offset}: replace the disk")]
    ReadBack {
        /// Disk.
        disk: PathBuf,
        /// Where.
        offset: u64,
    },
    /// Stopped from outside.
    #[error("the download of {url} was cancelled")]
    Cancelled {
        /// URL.
        url: String,
    },
    /// Reading, writing or zeroing the disk failed.
    #[error(transparent)]
    Disk(#[from] farrier_disk::Error),
    /// Every attempt failed.
    #[error("{}", failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Exhausted {
        /// How each URL failed, the latest one last.
        failed: Vec<Failed>,
    },
    /// The write failed after it had begun.
    #[error("{source}; {disk} was left without a partition table")]
    Abandoned {
        /// Disk.
        disk: PathBuf,
        /// Failure.
        #[source]
        source: Box<Error>,
    },
}

/// How one URL failed.
#[derive(Debug, thiserror::Error)]
#[error("{error} ({attempts} {}, {seconds} s)", if *attempts == 1 { "attempt" } else { "attempts" })]
pub struct Failed {
    /// Failure of the last attempt; it names the URL.
    #[source]
    pub error: Error,
    /// Requests for it, the ones that went on with a broken download among them.
    pub attempts: u32,
    /// Seconds spent on them, without the pauses between attempts.
    pub seconds: u64,
}

impl Error {
    pub(crate) fn checksum_file(url: &str, reason: String) -> Self {
        Self::ChecksumFile { url: without_secrets(url), reason }
    }

    /// Class of the error on the wire (section 1.9).
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Format { .. }
            | Self::Content { .. }
            | Self::Qcow2 { .. }
            | Self::NotRaw { .. }
            | Self::Packed { .. }
            | Self::Unpack { .. }
            | Self::SectorSize { .. } => ErrorKind::InvalidImage,
            Self::Digest { .. } => ErrorKind::ImageChecksumError,
            Self::ChecksumFile { .. }
            | Self::Access { .. }
            | Self::Unreachable { .. }
            | Self::Status { .. }
            | Self::LocalFile { .. }
            | Self::Registry { .. }
            | Self::Encoded { .. }
            | Self::Changed { .. }
            | Self::NoRanges { .. }
            | Self::Interrupted { .. }
            | Self::TooSlow { .. }
            | Self::TooLong { .. }
            | Self::Empty { .. } => ErrorKind::ImageDownloadError,
            Self::Mismatch { .. } => ErrorKind::ImageChecksumError,
            Self::TooLarge { .. } | Self::NoSpool { .. } | Self::ReadBack { .. } | Self::Cancelled { .. } => {
                ErrorKind::ImageWriteError
            }
            Self::Disk(error) => error.kind(),
            Self::Exhausted { failed } => {
                failed.last().map_or(ErrorKind::ImageDownloadError, |failed| failed.error.kind())
            }
            Self::Abandoned { source, .. } => source.kind(),
        }
    }

    /// The pause that a server asks for before the next request.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether another attempt may help (F03).
    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::Unreachable { .. } | Self::Interrupted { .. } => Retry::Often,
            Self::Status { status, .. } if is_passing(*status) => Retry::Often,
            Self::Mismatch { .. } | Self::Changed { .. } => Retry::Once,
            Self::Disk(_) | Self::ReadBack { .. } | Self::TooSlow { .. } | Self::Cancelled { .. } => {
                Retry::Nowhere
            }
            _ => Retry::Never,
        }
    }
}

/// How often a failed attempt may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// No server helps: the disk is at fault, or the time is over.
    Nowhere,
    /// It would fail the same way. Another server may have another file.
    Never,
    /// Bytes may have been damaged on the way, but hardly twice.
    Once,
    /// As often as configured.
    Often,
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::REQUEST_TIMEOUT
        || status == StatusCode::TOO_MANY_REQUESTS
}

fn of(expected: Option<u64>) -> String {
    expected.map(|bytes| format!(" of {bytes}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f03_permanent_errors_are_not_retried() {
        for (status, expected) in [
            (400, Retry::Never),
            (401, Retry::Never),
            (403, Retry::Never),
            (404, Retry::Never),
            (204, Retry::Never),
            (206, Retry::Never),
            (408, Retry::Often),
            (429, Retry::Often),
            (500, Retry::Often),
            (503, Retry::Often),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = Error::Status { url: "http://x".into(), status, retry_after: None };
            assert_eq!(error.retry(), expected, "{status}");
        }
    }

    /// The Python agent has a type of its own for it, and wraps it before anybody sees it (section 5.7).
    #[test]
    fn x37_a_download_that_takes_too_long_is_told_as_a_failed_download() {
        let slow = Error::TooSlow { url: "http://x/image.raw".into(), seconds: 900 };
        let failed = vec![Failed { error: slow, attempts: 3, seconds: 899 }];
        let error = Error::Exhausted { failed };
        assert_eq!(error.kind(), ErrorKind::ImageDownloadError);
        for part in
            ["http://x/image.raw", "longer than 900 s", "image_download_max_duration", "3 attempts, 899 s"]
        {
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn f10_a_mismatch_names_url_algorithm_and_both_digests() {
        let error = Error::Abandoned {
            disk: "/dev/vda".into(),
            source: Box::new(Error::Mismatch {
                url: "http://x/image.raw".into(),
                algorithm: "sha256",
                expected: "aa".into(),
                actual: "bb".into(),
            }),
        };
        let text = error.to_string();
        for part in ["http://x/image.raw", "sha256", "aa", "bb", "/dev/vda", "without a partition table"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(error.kind(), ErrorKind::ImageChecksumError);
    }
}
