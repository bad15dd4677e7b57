//! Where an image comes from: an HTTP server.
//!
//! The client is asynchronous and belongs to the caller, who uses it for everything else too. The
//! write path is blocking, so each wait runs on the caller's runtime from a thread of its own.

use crate::cancel::CancelHandle;
use crate::error::Error;
use bytes::Bytes;
use reqwest::{Client, Response, StatusCode, Url};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long a read waits before it looks whether it is still wanted.
const SLICE: Duration = Duration::from_millis(250);

/// Limits of downloads (section 3.3, `image_download_*`).
#[derive(Debug, Clone)]
pub struct Options {
    /// For a connection and the head of the reply.
    pub connect_timeout: Duration,
    /// For each part of the body (F01).
    pub read_timeout: Duration,
    /// Attempts after the first one.
    pub retries: u32,
    /// Pause between attempts, before jitter.
    pub retry_interval: Duration,
    /// For everything, all attempts together.
    pub max_duration: Option<Duration>,
}

impl Default for Options {
    /// The contract's: a budget of about ninety seconds for a server that is away (F02).
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            retries: 9,
            retry_interval: Duration::from_secs(10),
            max_duration: None,
        }
    }
}

/// Downloads images.
#[derive(Debug, Clone)]
pub struct HttpSource {
    client: Client,
    runtime: Handle,
    pub(crate) options: Options,
}

/// The body of an image, being read.
pub(crate) struct Body {
    response: Response,
    source: HttpSource,
    url: String,
    length: Option<u64>,
    received: u64,
    deadline: Option<Instant>,
    /// Bytes that arrived and were not read yet.
    pending: Bytes,
}

impl HttpSource {
    /// A source over a client and the runtime it lives on.
    pub fn new(client: Client, runtime: Handle, options: Options) -> Self {
        Self { client, runtime, options }
    }

    /// Asks for an image; only status 200 is an answer.
    pub(crate) fn open(&self, url: &str, deadline: Option<Instant>) -> Result<Body, Error> {
        let name = without_secrets(url);
        let unreachable = |reason: String| Error::Unreachable { url: name.clone(), reason };
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if remaining.is_some_and(|remaining| remaining.is_zero()) {
            return Err(self.too_slow(&name));
        }
        let limit =
            remaining.map_or(self.options.connect_timeout, |left| left.min(self.options.connect_timeout));
        let request = self.client.get(url).send();
        let response = self
            .runtime
            .block_on(async { timeout(limit, request).await })
            .map_err(|_| unreachable(format!("no answer in {} s", limit.as_secs())))?
            .map_err(|error| unreachable(innermost(&error)))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(Error::Status { url: name, status });
        }
        Ok(Body {
            length: response.content_length(),
            response,
            source: self.clone(),
            url: name,
            received: 0,
            deadline,
            pending: Bytes::new(),
        })
    }

    fn too_slow(&self, url: &str) -> Error {
        let seconds = self.options.max_duration.unwrap_or_default().as_secs();
        Error::TooSlow { url: url.to_owned(), seconds }
    }
}

impl Body {
    /// Bytes the server announced.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Fills the buffer as far as the body goes, and returns how far that was. Less than the whole
    /// buffer means that the body has ended, with as many bytes as were announced (D07, P05).
    pub(crate) fn fill(&mut self, buffer: &mut [u8], cancels: [&CancelHandle; 2]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.pending.is_empty() && !self.receive(cancels)? {
                break;
            }
            let part = self.pending.split_to(self.pending.len().min(buffer.len() - filled));
            buffer[filled..filled + part.len()].copy_from_slice(&part);
            filled += part.len();
        }
        Ok(filled)
    }

    /// Waits for the next part; false at the end of the body.
    fn receive(&mut self, cancels: [&CancelHandle; 2]) -> Result<bool, Error> {
        let started = Instant::now();
        loop {
            if cancels.iter().any(|cancel| cancel.is_cancelled()) {
                return Err(Error::Cancelled { url: self.url.clone() });
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.source.too_slow(&self.url));
            }
            let part = self.source.runtime.block_on(async { timeout(SLICE, self.response.chunk()).await });
            match part {
                Ok(Ok(Some(part))) => {
                    self.received += part.len() as u64;
                    self.pending = part;
                    return Ok(true);
                }
                Ok(Ok(None)) if self.length.is_some_and(|length| length != self.received) => {
                    return Err(self.interrupted("the server closed the connection".to_owned()));
                }
                Ok(Ok(None)) => return Ok(false),
                Ok(Err(error)) => return Err(self.interrupted(innermost(&error))),
                Err(_) if started.elapsed() >= self.source.options.read_timeout => {
                    let seconds = self.source.options.read_timeout.as_secs_f64();
                    return Err(self.interrupted(format!("nothing came for {seconds} s")));
                }
                Err(_) => {}
            }
        }
    }

    fn interrupted(&self, reason: String) -> Error {
        Error::Interrupted { url: self.url.clone(), received: self.received, expected: self.length, reason }
    }
}

/// A URL as logs and errors may show it: without a user's name and password.
pub(crate) fn without_secrets(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return url.to_owned() };
    if parsed.username().is_empty() && parsed.password().is_none() {
        return url.to_owned();
    }
    // Both fail for URLs that cannot have a user, and those have none.
    parsed.set_username("").ok();
    parsed.set_password(None).ok();
    parsed.into()
}

/// The cause that names what really happened.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s48_users_and_passwords_are_not_shown() {
        for (url, expected) in [
            ("http://ann:secret@images/a.raw?x=1", "http://images/a.raw?x=1"),
            ("http://ann@images/a.raw", "http://images/a.raw"),
            ("http://images/a.raw", "http://images/a.raw"),
            ("no url at all", "no url at all"),
        ] {
            assert_eq!(without_secrets(url), expected);
        }
    }
}
