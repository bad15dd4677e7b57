//! The body of a reply, read to its proven end across broken connections: each retry resumes where the last one broke.

use super::encoding::Encoding;
use super::pace::Pace;
use super::ranges::Ranges;
use super::{Download, innermost};
use crate::cancel::CancelHandle;
use crate::error::{Error, Retry};
use crate::shown_url::without_secrets;
use bytes::Bytes;
use reqwest::header::{
    ACCEPT_RANGES, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::{Response, StatusCode};
use std::time::Instant;

/// The body of a file, being read.
pub(crate) struct HttpBody<'a> {
    download: &'a Download<'a>,
    url: String,
    /// The URL as errors show it.
    name: String,
    response: Response,
    /// What proves that the file on the server is still the same.
    validator: Option<HeaderValue>,
    length: Option<u64>,
    has_ranges: bool,
    received: u64,
    pace: Pace,
    /// Why no more is waited for, once too little has come.
    slowness: Option<String>,
    /// Bytes that arrived and were not read yet.
    pending: Bytes,
}

impl<'a> HttpBody<'a> {
    /// The body of the reply to a request for all of a file.
    pub(super) fn new(download: &'a Download<'a>, url: &str, response: Response) -> Self {
        Self {
            download,
            url: url.to_owned(),
            name: without_secrets(url),
            validator: validator(response.headers()),
            length: response.content_length(),
            has_ranges: response.headers().get(ACCEPT_RANGES).is_some_and(|unit| unit == "bytes"),
            response,
            received: 0,
            pace: Pace::default(),
            slowness: None,
            pending: Bytes::new(),
        }
    }

    /// The body of the reply to a request for a part of a file. It cannot be gone on with.
    pub(super) fn part(download: &'a Download<'a>, url: &str, response: Response) -> Self {
        Self { validator: None, ..Self::new(download, url, response) }
    }

    /// The same file, to be read out of order, if the server has ranges.
    pub(super) fn ranges(&self, cancel: &CancelHandle) -> Option<Ranges<'a>> {
        Some(Ranges {
            length: self.length.filter(|_| self.has_ranges)?,
            download: self.download.another(),
            url: self.url.clone(),
            validator: self.validator.clone(),
            cancel: cancel.clone(),
        })
    }

    /// Bytes the server announced.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Fills the buffer as far as the body goes, and returns how far that was. Less than the whole
    /// buffer means that the body has ended, with as many bytes as were announced (D07, P05).
    pub(super) fn fill(&mut self, buffer: &mut [u8], cancels: &[&CancelHandle]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.pending.is_empty() {
                match self.receive(cancels) {
                    Ok(Some(part)) => self.pending = part,
                    Ok(None) => break,
                    Err(error) => self.resume(error, cancels)?,
                }
            }
            let part = self.pending.split_to(self.pending.len().min(buffer.len() - filled));
            buffer[filled..filled + part.len()].copy_from_slice(&part);
            filled += part.len();
        }
        Ok(filled)
    }

    /// Waits for the next part; nothing at the end of the body.
    fn receive(&mut self, cancels: &[&CancelHandle]) -> Result<Option<Bytes>, Error> {
        let is_whole = self.length == Some(self.received);
        if let Some(reason) = self.slowness.take().filter(|_| !is_whole) {
            return Err(self.interrupted(reason));
        }
        let options = &self.download.source.options;
        let (limit, started) = (options.read_timeout, Instant::now());
        match self.download.wait(&self.name, limit, cancels, self.response.chunk())? {
            Some(Ok(Some(part))) => {
                self.received += part.len() as u64;
                let pace = self.pace.count(options.least_rate, part.len() as u64, started.elapsed());
                // The part is here; what follows is asked for anew.
                self.slowness = pace.err();
                Ok(Some(part))
            }
            Some(Ok(None)) if self.length.is_some_and(|length| length != self.received) => {
                Err(self.interrupted("the server closed the connection".to_owned()))
            }
            Some(Ok(None)) => Ok(None),
            Some(Err(error)) => Err(self.interrupted(innermost(&error))),
            None => Err(self.interrupted(format!("nothing came for {} s", limit.as_secs_f64()))),
        }
    }

    /// Goes on where the body broke off, if the server has ranges and still the same file.
    /// Everything behind goes on too, for the stream continues with the very next byte. Otherwise
    /// the failure stands, and the whole download may begin anew.
    fn resume(&mut self, failure: Error, cancels: &[&CancelHandle]) -> Result<(), Error> {
        let (Error::Interrupted { .. }, Some(validator)) = (&failure, &self.validator) else {
            return Err(failure);
        };
        let range = HeaderValue::from_str(&format!("bytes={}-", self.received)).expect("digits are visible");
        let headers = HeaderMap::from_iter([(RANGE, range), (IF_RANGE, validator.clone())]);
        self.download.budget.broke_off(self.received);
        let mut latest = None;
        while self.download.has_budget() {
            tracing::warn!(error = %latest.as_ref().unwrap_or(&failure), "resuming the download");
            self.download.pause(latest.as_ref().unwrap_or(&failure), cancels);
            self.download.require_wanted(&self.name, cancels)?;
            match self.download.get(&self.url, headers.clone(), cancels) {
                Ok(response) if self.is_continued_by(&response) => {
                    (self.response, self.pace) = (response, Pace::default());
                    return Ok(());
                }
                Err(error) if error.retry() == Retry::Often => latest = Some(error),
                Ok(_) | Err(_) => break,
            }
        }
        Err(failure)
    }

    fn is_continued_by(&self, response: &Response) -> bool {
        let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        response.status() == StatusCode::PARTIAL_CONTENT
            && Encoding::of(response.headers()) == Ok(None)
            && range.and_then(start_and_total).is_some_and(|(start, total)| {
                start == self.received && (total == self.length || total.is_none())
            })
    }

    fn interrupted(&self, reason: String) -> Error {
        Error::Interrupted { url: self.name.clone(), received: self.received, expected: self.length, reason }
    }
}

/// What `If-Range` may name: a strong entity tag, else the time of the last change.
fn validator(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    tag.or_else(|| headers.get(LAST_MODIFIED)).cloned()
}

/// First byte of a `Content-Range`, and the bytes of the whole file where they are told.
pub(super) fn start_and_total(range: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-')?.0.parse().ok()?;
    match total {
        "*" => Some((start, None)),
        total => Some((start, Some(total.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read() {
        for (range, expected) in [
            ("bytes 5-9/10", Some((5, Some(10)))),
            ("bytes 5-9/*", Some((5, None))),
            ("bytes */10", None),
            ("lines 5-9/10", None),
            ("bytes 5-9/ten", None),
            ("", None),
        ] {
            assert_eq!(start_and_total(range), expected, "{range}");
        }
    }

    #[test]
    fn only_strong_tags_prove_that_a_file_is_the_same() {
        let (strong, weak, time) = ("\"a\"", "W/\"a\"", "Sat, 21 Nov 2026 02:00:00 GMT");
        for (tag, changed, expected) in [
            (Some(strong), Some(time), Some(strong)),
            (Some(weak), Some(time), Some(time)),
            (Some(weak), None, None),
            (None, None, None),
        ] {
            let mut headers = HeaderMap::new();
            tag.map(|tag| headers.insert(ETAG, HeaderValue::from_static(tag)));
            changed.map(|time| headers.insert(LAST_MODIFIED, HeaderValue::from_static(time)));
            assert_eq!(validator(&headers), expected.map(HeaderValue::from_static));
        }
    }
}
