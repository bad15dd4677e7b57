//! Where an image comes from: an HTTP server, a registry of OCI artifacts, or a local file.
//!
//! The client is asynchronous and belongs to the caller, who uses it for everything else too. The
//! write path is blocking, so each wait runs on the caller's runtime from a thread of its own.

mod body;
mod budget;
mod deadline;
mod encoding;
mod file;
mod oci;
mod pace;
mod ranges;
mod retry_after;
mod small;

pub use pace::LeastRate;

use crate::cancel::CancelHandle;
use crate::error::Error;
use crate::progress::ProgressHandle;
use crate::qcow2::ReadAt;
use crate::shown_url::without_secrets;
use body::HttpBody;
use budget::Budget;
use deadline::Deadline;
use encoding::{EncodedBody, Encoding};
use file::LocalFile;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use std::pin::pin;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long to wait before it is looked whether a download is still wanted.
const SLICE: Duration = Duration::from_millis(250);

/// Limits of downloads (section 3.3, `image_download_*`).
#[derive(Debug, Clone)]
pub struct Options {
    /// For a connection and the head of the reply.
    pub connect_timeout: Duration,
    /// For each part of the body (F01).
    pub read_timeout: Duration,
    /// For the whole body, on average.
    pub least_rate: LeastRate,
    /// Requests after the first one, and again after each progress.
    pub retries: u32,
    /// Pause between requests, before jitter.
    pub retry_interval: Duration,
    /// For everything, all requests together.
    pub max_duration: Option<Duration>,
}

impl Default for Options {
    /// The contract's: a budget of about ninety seconds for a server that is away (F02).
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            least_rate: LeastRate::default(),
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
    options: Options,
}

/// The requests for one file: who asks for it, how often and until when.
pub(crate) struct Download<'a> {
    source: &'a HttpSource,
    authorization: Option<HeaderValue>,
    deadline: Option<Deadline>,
    budget: Budget,
    progress: ProgressHandle,
}

/// The content of a file, being read.
pub(crate) enum Body<'a> {
    /// From a server.
    Http(Box<HttpBody<'a>>),
    /// From a server that encodes it.
    Encoded(Box<EncodedBody<'a>>),
    /// From this machine.
    Local(LocalFile),
}

impl<'a> Body<'a> {
    /// Bytes the file has, where that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Http(body) => body.length(),
            Self::Encoded(_) => None,
            Self::Local(file) => Some(file.length()),
        }
    }

    /// Fills the buffer as far as the content goes, and returns how far that was. Less than the whole
    /// buffer means that the content has ended, with as many bytes as were announced (D07, P05).
    pub(crate) fn fill(&mut self, buffer: &mut [u8], cancels: &[&CancelHandle]) -> Result<usize, Error> {
        match self {
            Self::Http(body) => body.fill(buffer, cancels),
            Self::Encoded(body) => body.fill(buffer, cancels),
            Self::Local(file) if cancels.iter().any(|cancel| cancel.is_cancelled()) => Err(file.cancelled()),
            Self::Local(file) => file.fill(buffer),
        }
    }

    /// The same file, to be read out of order, where that is possible.
    pub(crate) fn reader(&self, cancel: &CancelHandle) -> Option<Box<dyn ReadAt + 'a>> {
        match self {
            Self::Http(body) => Some(Box::new(body.ranges(cancel)?)),
            Self::Encoded(_) => None,
            Self::Local(file) => Some(Box::new(file.reader()?)),
        }
    }
}

impl HttpSource {
    /// A source over a client and the runtime it lives on.
    pub fn new(client: Client, runtime: Handle, options: Options) -> Self {
        Self { client, runtime, options }
    }

    /// When everything that begins now has to be done.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.options.max_duration.map(Deadline::after)
    }
}

impl<'a> Download<'a> {
    /// A download with the whole budget of requests ahead of it.
    pub(crate) fn new(
        source: &'a HttpSource,
        authorization: Option<HeaderValue>,
        deadline: Option<Deadline>,
    ) -> Self {
        Self { source, authorization, deadline, budget: Budget::new(), progress: ProgressHandle::default() }
    }

    /// Shows its pauses in this progress.
    pub(crate) fn shown_in(self, progress: &ProgressHandle) -> Self {
        Self { progress: progress.clone(), ..self }
    }

    /// Requests so far, the ones that went on with a broken download among them.
    pub(crate) fn requests(&self) -> u32 {
        self.budget.requests()
    }

    /// Whether another request may be tried (F02).
    pub(crate) fn has_budget(&self) -> bool {
        self.budget.has(self.source.options.retries)
    }

    /// The end of the pause before the next request after a failure: as long as the server asks for, or else less
    /// long than configured, since many machines should not ask at once.
    pub(crate) fn resting_until(&self, failure: &Error) -> Instant {
        let interval = self.source.options.retry_interval.mul_f64(rand::random_range(0.5..1.0));
        let asked = failure.retry_after();
        let rest = self.budget.rest(interval, asked);
        if rest > interval {
            let seconds = rest.as_secs();
            tracing::warn!(%failure, "the server wants to be left alone: asking again in {seconds} s");
        }
        Instant::now() + self.deadline.map_or(rest, |deadline| rest.min(deadline.left()))
    }

    /// Waits before another request.
    pub(crate) fn pause(&self, failure: &Error, cancels: &[&CancelHandle]) {
        self.pause_until(self.resting_until(failure), cancels);
    }

    /// Waits until then, or until nobody wants the file any more.
    pub(crate) fn pause_until(&self, end: Instant, cancels: &[&CancelHandle]) {
        self.progress.rest_until(Some(end));
        while !cancels.iter().any(|cancel| cancel.is_cancelled()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(100).min(end.saturating_duration_since(Instant::now())));
        }
        self.progress.rest_until(None);
    }

    /// A download of the same kind with a budget of its own.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.source, self.authorization.clone(), self.deadline).shown_in(&self.progress)
    }

    /// Whether one more failure may be tried again after so many.
    pub(crate) fn allows(&self, failures: u32) -> bool {
        failures < self.source.options.retries
    }

    /// Opens a whole file; only status 200 is an answer.
    pub(crate) fn open(&self, url: &str, cancels: &[&CancelHandle]) -> Result<Body<'_>, Error> {
        if url.starts_with("file:") {
            return Ok(Body::Local(LocalFile::open(url)?));
        }
        let url = oci::blob_url(url)?;
        let response = self.get(&url, HeaderMap::new(), cancels)?;
        if response.status() != StatusCode::OK {
            return Err(refused(without_secrets(&url), &response));
        }
        let name = without_secrets(&url);
        match Encoding::of(response.headers()) {
            Ok(None) => Ok(Body::Http(Box::new(HttpBody::new(self, &url, response)))),
            Ok(Some(encoding)) => {
                let body = HttpBody::part(self, &url, response);
                Ok(Body::Encoded(Box::new(EncodedBody::new(encoding, body, name, cancels))))
            }
            Err(encoding) => Err(Error::Encoded { url: name, encoding }),
        }
    }

    /// Sends one request; statuses that promise no body are errors.
    fn get(&self, url: &str, mut headers: HeaderMap, cancels: &[&CancelHandle]) -> Result<Response, Error> {
        let name = without_secrets(url);
        let unreachable = |reason: String| Error::Unreachable { url: name.clone(), reason };
        let limit = self.source.options.connect_timeout;
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        self.budget.spend();
        // The client drops the authorization when it is sent on to another host.
        let request = self.source.client.get(url).headers(headers).send();
        let response = self
            .wait(&name, limit, cancels, request)?
            .ok_or_else(|| unreachable(format!("no answer in {} s", limit.as_secs())))?
            .map_err(|error| unreachable(innermost(&error)))?;
        if response.status().is_success() { Ok(response) } else { Err(refused(name, &response)) }
    }

    /// Waits for a server while that is wanted; nothing when it takes longer than `limit`.
    fn wait<T>(
        &self,
        name: &str,
        limit: Duration,
        cancels: &[&CancelHandle],
        answer: impl Future<Output = T>,
    ) -> Result<Option<T>, Error> {
        let started = Instant::now();
        let mut answer = pin!(answer);
        loop {
            self.require_wanted(name, cancels)?;
            let slice = async { timeout(SLICE, answer.as_mut()).await };
            match self.source.runtime.block_on(slice) {
                Ok(answer) => return Ok(Some(answer)),
                Err(_) if started.elapsed() >= limit => return Ok(None),
                Err(_) => {}
            }
        }
    }

    fn require_wanted(&self, name: &str, cancels: &[&CancelHandle]) -> Result<(), Error> {
        if cancels.iter().any(|cancel| cancel.is_cancelled()) {
            return Err(Error::Cancelled { url: name.to_owned() });
        }
        self.deadline.map_or(Ok(()), |deadline| deadline.require(name))
    }
}

/// An answer that is no file.
fn refused(url: String, response: &Response) -> Error {
    Error::Status { url, status: response.status(), retry_after: retry_after::of(response.headers()) }
}

/// The cause that names what really happened.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
