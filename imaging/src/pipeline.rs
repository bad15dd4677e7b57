//! From request to proven disk: as many attempts as the URLs and the budget allow.
//!
//! Connection, body and digest are one unit that is tried again as a whole (D07).

use crate::access;
use crate::attempt::Attempt;
use crate::cancel::CancelHandle;
use crate::checksum::DigestSource;
use crate::error::{Error, Retry};
use crate::format::{self, Declared};
use crate::progress::ProgressHandle;
use crate::source::{Download, HttpSource, without_secrets};
use farrier_disk::{WritableDisk, wipe};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;
use reqwest::header::HeaderValue;
use serde::Serialize;

/// An image to write, judged as far as that needs no server.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    /// Name for logs.
    pub id: String,
    /// Where to get it, tried in order.
    pub urls: Vec<String>,
    /// What proves it.
    pub digest: DigestSource,
    authorization: Option<HeaderValue>,
    declared: Declared,
}

/// What a write achieved.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Bytes received.
    pub bytes_read: u64,
    /// Bytes transferred to the disk.
    pub bytes_written: u64,
    /// Bytes the disk was told to make zero.
    pub bytes_zeroed: u64,
    /// Bytes read back and compared.
    pub bytes_verified: u64,
    /// Seconds from the request to the proven digest, the last attempt only.
    pub seconds_write: f64,
    /// Seconds of reading back.
    pub seconds_verify: f64,
}

impl ImageRequest {
    /// Judges what was asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Digest`] or [`Error::Access`].
    pub fn new(info: &ImageInfo) -> Result<Self, Error> {
        let declared = format::declared(info.disk_format.as_deref()).ok_or_else(|| Error::Format {
            image: info.id.clone(),
            format: info.disk_format.clone().unwrap_or_default(),
        })?;
        Ok(Self {
            id: info.id.clone(),
            urls: info.urls.clone(),
            digest: DigestSource::choose(info)?,
            authorization: access::authorization(info)?,
            declared,
        })
    }
}

/// Writes an image to a disk and proves it. Blocks; the memory in use is fixed.
///
/// # Errors
///
/// The last failure after as many attempts as it is worth. A disk that was touched then carries no
/// partition table, and the error says so.
pub fn write_image(
    request: &ImageRequest,
    source: &HttpSource,
    disk: &WritableDisk,
    progress: &ProgressHandle,
    cancel: &CancelHandle,
) -> Result<Report, Error> {
    let deadline = source.deadline();
    let download = || Download::new(source, request.authorization.clone(), deadline);
    let digest = request
        .digest
        .resolve(&download(), &request.urls[0], cancel)
        .inspect_err(|_| progress.enter(Phase::Failed, None))?;
    let download = download();
    let mut attempts = 0;
    let mut mismatches = 0;
    let mut is_touched = false;
    let error = loop {
        let url = &request.urls[attempts % request.urls.len()];
        let name = without_secrets(url);
        let attempt = Attempt {
            declared: request.declared,
            digest: &digest,
            name,
            disk,
            progress,
            cancel,
            total: None,
        };
        let error = match attempt.run(&download, url, &mut is_touched) {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        attempts += 1;
        mismatches += u32::from(error.retry() == Retry::Once);
        // Each further URL is tried at least once, whatever the first one answered (section 5.7).
        let has_untried = attempts < request.urls.len();
        let is_worth_it = match error.retry() {
            Retry::Never => has_untried && !is_about_disk(&error),
            Retry::Once => mismatches < 2,
            Retry::Often => has_untried || download.has_budget(),
        };
        if !is_worth_it || cancel.is_cancelled() {
            break error;
        }
        tracing::warn!(%error, attempts, "image not written, trying again");
        download.pause(&[cancel]);
    };
    progress.enter(Phase::Failed, None);
    let error = match download.requests() {
        0 | 1 => error,
        attempts => Error::Exhausted { attempts, last: Box::new(error) },
    };
    Err(if is_touched { abandon(disk, error) } else { error })
}

/// Another server does not make a disk larger or better.
fn is_about_disk(error: &Error) -> bool {
    matches!(error, Error::Disk(_) | Error::ReadBack { .. } | Error::TooLarge { .. })
}

fn abandon(disk: &WritableDisk, source: Error) -> Error {
    if let Err(error) = wipe::wipe_ends(disk) {
        tracing::error!(%error, disk = %disk.path().display(), "the partition table cannot be removed");
        return source;
    }
    if let Err(error) = disk.reread_partitions() {
        tracing::warn!(%error, "the kernel still lists the partitions of the old table");
    }
    Error::Abandoned { disk: disk.path().to_owned(), source: Box::new(source) }
}
