//! From request to proven disk: as many attempts as the URLs and the budget allow.
//!
//! Connection, body and digest are one unit that is tried again as a whole (D07).

use crate::access;
use crate::attempt::Attempt;
use crate::cancel::CancelHandle;
use crate::checksum::{DigestSource, Trust};
use crate::error::{Error, Retry};
use crate::format::{self, Declared, Policy};
use crate::progress::ProgressHandle;
use crate::readback::Verify;
use crate::source::{Download, HttpSource, without_secrets};
use crate::target::{Target, Touched};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;
use reqwest::header::HeaderValue;
use serde::Serialize;

/// What the operator decides about images (section 3.3).
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Which formats may be written.
    pub policy: Policy,
    /// How much is read back (`farrier-verify`).
    pub verify: Verify,
    /// Which digests are believed.
    pub trust: Trust,
}

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
    settings: Settings,
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
    /// Seconds of flushing, and of writing the ends of the disk.
    pub seconds_commit: f64,
    /// Seconds of reading back.
    pub seconds_verify: f64,
}

impl ImageRequest {
    /// Judges what was asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Digest`] or [`Error::Access`].
    pub fn new(info: &ImageInfo, settings: Settings) -> Result<Self, Error> {
        let declared = format::declared(info.disk_format.as_deref()).ok_or_else(|| Error::Format {
            image: info.id.clone(),
            format: info.disk_format.clone().unwrap_or_default(),
        })?;
        Ok(Self {
            id: info.id.clone(),
            urls: info.urls.clone(),
            digest: DigestSource::choose(info, settings.trust)?,
            authorization: access::authorization(info)?,
            declared,
            settings,
        })
    }
}

/// Writes an image to a disk, or to a part of it, and proves it. Blocks; the memory in use is bounded.
///
/// # Errors
///
/// The last failure after as many attempts as it is worth. A target that was touched then carries
/// neither a partition table nor a file system, and the error says so.
pub fn write_image<'a>(
    request: &ImageRequest,
    source: &HttpSource,
    target: impl Into<Target<'a>>,
    progress: &ProgressHandle,
    cancel: &CancelHandle,
) -> Result<Report, Error> {
    let target = target.into();
    let touched = Touched::default();
    let outcome = attempts(request, source, target, &touched, progress, cancel);
    outcome.map_err(|error| {
        progress.enter(Phase::Failed, None);
        if touched.is_touched() { abandon(&target, error) } else { error }
    })
}

fn attempts(
    request: &ImageRequest,
    source: &HttpSource,
    target: Target<'_>,
    touched: &Touched,
    progress: &ProgressHandle,
    cancel: &CancelHandle,
) -> Result<Report, Error> {
    let download = Download::new(source, request.authorization.clone(), source.deadline());
    let digest = request.digest.resolve(&download, &request.urls[0], cancel)?;
    let mut attempts = 0;
    let mut mismatches = 0;
    loop {
        let url = &request.urls[attempts % request.urls.len()];
        let attempt = Attempt {
            settings: &request.settings,
            declared: request.declared,
            digest: &digest,
            name: without_secrets(url),
            target,
            touched,
            progress,
            cancel,
        };
        let error = match attempt.run(&download, url) {
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
            return Err(match download.requests() {
                0 | 1 => error,
                attempts => Error::Exhausted { attempts, last: Box::new(error) },
            });
        }
        tracing::warn!(%error, attempts, "image not written, trying again");
        download.pause(&[cancel]);
    }
}

/// Another server does not make a disk larger or better.
fn is_about_disk(error: &Error) -> bool {
    matches!(error, Error::Disk(_) | Error::ReadBack { .. } | Error::TooLarge { .. } | Error::NoSpool { .. })
}

fn abandon(target: &Target<'_>, source: Error) -> Error {
    if let Err(error) = target.wipe_ends() {
        tracing::error!(%error, disk = %target.path().display(), "the partition table cannot be removed");
        return source;
    }
    target.forget_partitions();
    Error::Abandoned { disk: target.path().to_owned(), source: Box::new(source) }
}
