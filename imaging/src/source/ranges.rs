//! Parts of a file on a server, out of order.

use super::Download;
use super::body::{HttpBody, start_and_total};
use super::encoding::Encoding;
use crate::cancel::CancelHandle;
use crate::error::{Error, Retry};
use crate::qcow2::ReadAt;
use crate::shown_url::without_secrets;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, HeaderMap, HeaderValue, IF_RANGE, RANGE};

/// A file on a server that said it has ranges.
pub(crate) struct Ranges<'a> {
    /// With a budget of its own: reading the tables must not use up that of the image.
    pub(super) download: Download<'a>,
    pub(super) url: String,
    pub(super) validator: Option<HeaderValue>,
    pub(super) length: u64,
    pub(super) cancel: CancelHandle,
}

impl Ranges<'_> {
    fn fetch(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let range = format!("bytes={offset}-{}", offset + buffer.len() as u64 - 1);
        let range = HeaderValue::from_str(&range).expect("digits are visible");
        let mut headers = HeaderMap::from_iter([(RANGE, range)]);
        if let Some(validator) = &self.validator {
            headers.insert(IF_RANGE, validator.clone());
        }
        let response = self.download.get(&self.url, headers, &[&self.cancel])?;
        let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let is_asked_for = range.and_then(start_and_total) == Some((offset, Some(self.length)))
            && Encoding::of(response.headers()) == Ok(None);
        if response.status() != StatusCode::PARTIAL_CONTENT || !is_asked_for {
            return Err(Error::NoRanges { url: without_secrets(&self.url) });
        }
        let mut body = HttpBody::part(&self.download, &self.url, response);
        match body.fill(buffer, &[&self.cancel])? {
            count if count == buffer.len() => Ok(()),
            count => Err(Error::Interrupted {
                url: without_secrets(&self.url),
                received: count as u64,
                expected: Some(buffer.len() as u64),
                reason: "the server sent less than the range".to_owned(),
            }),
        }
    }
}

impl ReadAt for Ranges<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let mut failures = 0;
        loop {
            match self.fetch(buffer, offset) {
                Err(error) if error.retry() == Retry::Often && self.download.allows(failures) => {
                    failures += 1;
                    tracing::warn!(%error, offset, "asking for the range again");
                    self.download.pause(&error, &[&self.cancel]);
                }
                outcome => return outcome,
            }
        }
    }
}
