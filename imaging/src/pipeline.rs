//! From request to proven disk: as many attempts as the URLs and the budget allow.
//!
//! Connection, body and digest are one unit that is tried again as a whole (D07).

use crate::access;
use crate::attempt::Attempt;
use crate::cancel::CancelHandle;
use crate::checksum::DigestSource;
use crate::error::Error;
use crate::format::{self, Declared};
use crate::mirrors::Mirrors;
use crate::progress::ProgressHandle;
pub use crate::settings::{Report, Settings};
use crate::shown_url::without_secrets;
use crate::source::{Download, HttpSource};
use crate::target::{Target, Touched};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;
use reqwest::header::HeaderValue;

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
/// How each URL failed, after as many attempts as that was worth. A target that was touched then carries
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
    let download = Download::new(source, request.authorization.clone(), source.deadline()).shown_in(progress);
    let digest = request.digest.resolve(&download, &request.urls[0], cancel)?;
    let mut mirrors = Mirrors::new(&request.urls, &download);
    loop {
        let done = mirrors.ask(|download, url| {
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
            attempt.run(download, url)
        });
        if let Some(report) = done {
            return Ok(report);
        }
        if mirrors.are_given_up() || cancel.is_cancelled() {
            return Err(mirrors.failure());
        }
        download.pause_until(mirrors.due(), &[cancel]);
    }
}

fn abandon(target: &Target<'_>, source: Error) -> Error {
    if let Err(error) = target.wipe_ends() {
        tracing::error!(%error, disk = %target.path().display(), "the partition table cannot be removed");
        return source;
    }
    target.forget_partitions();
    Error::Abandoned { disk: target.path().to_owned(), source: Box::new(source) }
}
