//! Where the bytes of a medium come from: a file of the conductor's host, or one of a server that sends parts of it.
//!
//! Of a server nothing is copied: what the BMC asks for is asked of the server then. A file that is exchanged there in the
//! meantime is not mixed with the one before: reading fails.

use super::error::MediumError;
use crate::client::error_chain::chain;
use bytes::Bytes;
use rand::Rng;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::{Client, Response, StatusCode, Url};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::sleep;

/// Longest time that a server is silent.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes that are asked of a server at a time: BMCs ask for little, in a row.
const PIECE: u64 = 1 << 20;
/// Longest time for a piece, or a small file.
const PIECE_LIMIT: Duration = Duration::from_secs(60);
/// How often a piece is asked for.
const ATTEMPTS: u32 = 4;
/// Pause between two attempts, and its jitter.
const PAUSE: Duration = Duration::from_millis(500);

/// What a part of a medium is read from. Reading blocks.
#[derive(Debug)]
pub(super) enum Source {
    /// A file of this host.
    File(File, Metadata),
    /// A file of a server.
    Remote(Remote),
}

/// A file of a server that sends parts of it.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    url: Url,
    /// Says that it is still the same file, where the server tells.
    validator: Option<HeaderValue>,
    length: u64,
    /// The last piece, and where it begins.
    last: Mutex<(u64, Bytes)>,
    runtime: Handle,
}

/// What a server has under a URL.
pub(super) enum Found {
    /// A file that it sends parts of.
    Parts(Remote),
    /// One that it sends as a whole.
    Whole(Response),
}

impl Source {
    /// A file of this host.
    ///
    /// # Errors
    ///
    /// [`MediumError::Read`].
    pub(super) fn file(path: &Path) -> Result<Self, MediumError> {
        let failed = |source| MediumError::Read { what: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        Ok(Self::File(file, metadata))
    }

    /// Its length in bytes.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::File(_, metadata) => metadata.len(),
            Self::Remote(remote) => remote.length,
        }
    }

    /// By what it is known to be still the same: its length, and when it was changed or what its server says.
    pub(super) fn mark(&self) -> String {
        let length = self.length();
        match self {
            Self::File(_, metadata) => {
                format!("{length} {}.{:09}", metadata.mtime(), metadata.mtime_nsec())
            }
            Self::Remote(Remote { validator, .. }) => {
                let validator = validator.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
                format!("{length} {}", String::from_utf8_lossy(validator))
            }
        }
    }

    /// Reads a part of it, none of which is behind its end.
    pub(super) fn read_exact_at(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.read_exact_at(bytes, place),
            Self::Remote(remote) => remote.read_exact_at(place, bytes),
        }
    }

    /// What reads it from the start on.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { source: self, place: 0 }
    }
}

/// Reads a source from a place that moves.
pub(super) struct Reader<'a> {
    source: &'a Source,
    place: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.source.length().saturating_sub(self.place)).unwrap_or(usize::MAX);
        let count = bytes.len().min(left);
        self.source.read_exact_at(self.place, &mut bytes[..count])?;
        self.place += count as u64;
        Ok(count)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(distance) => self.source.length().checked_add_signed(distance),
            SeekFrom::Current(distance) => self.place.checked_add_signed(distance),
        };
        self.place = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.place)
    }
}

/// What asks servers for images.
///
/// # Errors
///
/// [`MediumError::Client`].
pub(super) fn client() -> Result<Client, MediumError> {
    let builder = Client::builder().connect_timeout(SILENCE).read_timeout(SILENCE);
    builder.build().map_err(MediumError::Client)
}

/// Asks a server what it has under a URL.
///
/// # Errors
///
/// [`MediumError::Refused`], [`MediumError::Interrupted`].
pub(super) async fn ask(client: &Client, url: &Url) -> Result<Found, MediumError> {
    with_retries(|| try_ask(client, url)).await
}

async fn try_ask(client: &Client, url: &Url) -> Result<Found, MediumError> {
    let refused = |reason: &str| MediumError::Refused { url: shown(url), reason: reason.to_owned() };
    let response = client.get(url.clone()).header(RANGE, "bytes=0-0").header(ACCEPT_ENCODING, "identity");
    let response = response.send().await.map_err(|error| interrupted(url, &error))?;
    let is_packed = response.headers().contains_key(CONTENT_ENCODING);
    match response.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT if is_packed => {
            Err(refused("it sends something compressed; have it send the file as it is"))
        }
        StatusCode::OK => Ok(Found::Whole(response)),
        StatusCode::PARTIAL_CONTENT => match place(&response) {
            Some((0, length)) => Ok(Found::Parts(Remote {
                client: client.clone(),
                // And not where it redirects to, which may hold for a minute only.
                url: url.clone(),
                validator: validator(&response),
                length,
                last: Mutex::default(),
                runtime: Handle::current(),
            })),
            _ => Err(refused("it sends another part than it was asked for")),
        },
        StatusCode::RANGE_NOT_SATISFIABLE => Err(refused("it is empty")),
        status => Err(unexpected(url, status)),
    }
}

/// A small file of a server, as a whole.
///
/// # Errors
///
/// [`MediumError::Refused`], [`MediumError::Interrupted`]; [`MediumError::TooLong`] above so many bytes.
pub(super) async fn whole(client: &Client, url: &Url, limit: u64) -> Result<Vec<u8>, MediumError> {
    with_retries(|| try_whole(client, url, limit)).await
}

async fn try_whole(client: &Client, url: &Url, limit: u64) -> Result<Vec<u8>, MediumError> {
    let response = client.get(url.clone()).timeout(PIECE_LIMIT).send().await;
    let response = response.map_err(|error| interrupted(url, &error))?;
    match response.status() {
        StatusCode::OK => body(url, response, limit).await,
        status => Err(unexpected(url, status)),
    }
}

/// What a server sends, of at most so many bytes.
async fn body(url: &Url, mut response: Response, limit: u64) -> Result<Vec<u8>, MediumError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| interrupted(url, &error))? {
        body.extend(bytes);
        if body.len() as u64 > limit {
            return Err(MediumError::TooLong { what: shown(url), limit });
        }
    }
    Ok(body)
}

/// Does what may be interrupted, again where it was.
async fn with_retries<T, F>(work: impl Fn() -> F) -> Result<T, MediumError>
where
    F: Future<Output = Result<T, MediumError>>,
{
    for _ in 1..ATTEMPTS {
        match work().await {
            Err(error @ MediumError::Interrupted { .. }) => tracing::warn!("{error}; asking again"),
            done => return done,
        }
        let pause = rand::rng().random_range(PAUSE..PAUSE * 2);
        sleep(pause).await;
    }
    work().await
}

impl Remote {
    fn read_exact_at(&self, mut place: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        if place.checked_add(bytes.len() as u64).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while !bytes.is_empty() {
            let start = place - place % PIECE;
            let piece = self.piece(start)?;
            let from = &piece[(place - start) as usize..];
            let count = from.len().min(bytes.len());
            let (now, later) = bytes.split_at_mut(count);
            now.copy_from_slice(&from[..count]);
            (bytes, place) = (later, place + count as u64);
        }
        Ok(())
    }

    /// The piece that begins at a place: the last one, or one that the server is asked for.
    fn piece(&self, start: u64) -> io::Result<Bytes> {
        let (last, bytes) = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if last == start && !bytes.is_empty() {
            return Ok(bytes);
        }
        let bytes = self.runtime.block_on(with_retries(|| self.fetch(start))).map_err(io::Error::other)?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (start, bytes.clone());
        Ok(bytes)
    }

    async fn fetch(&self, start: u64) -> Result<Bytes, MediumError> {
        let end = self.length.min(start + PIECE);
        let mut request =
            self.client.get(self.url.clone()).timeout(PIECE_LIMIT).header(ACCEPT_ENCODING, "identity");
        request = request.header(RANGE, format!("bytes={start}-{}", end - 1));
        if let Some(validator) = &self.validator {
            request = request.header(IF_RANGE, validator);
        }
        let response = request.send().await.map_err(|error| interrupted(&self.url, &error))?;
        let is_same = self.validator.is_none() || validator(&response) == self.validator;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if is_same && place(&response) == Some((start, self.length)) => {}
            StatusCode::PARTIAL_CONTENT | StatusCode::OK | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(MediumError::Changed { what: shown(&self.url) });
            }
            status => return Err(unexpected(&self.url, status)),
        }
        let bytes = body(&self.url, response, end - start).await?;
        match bytes.len() as u64 == end - start {
            true => Ok(bytes.into()),
            false => Err(MediumError::Interrupted {
                url: shown(&self.url),
                reason: "it sends less than it was asked for".to_owned(),
            }),
        }
    }
}

/// A server may be back from what is its own fault.
fn unexpected(url: &Url, status: StatusCode) -> MediumError {
    let (url, reason) = (shown(url), format!("it answers {status}"));
    match status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        true => MediumError::Interrupted { url, reason },
        false => MediumError::Refused { url, reason: format!("{reason}; see whether the URL is right") },
    }
}

/// Where the part begins that a server sends, and how long the whole is (RFC 9110, 14.4).
fn place(response: &Response) -> Option<(u64, u64)> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    let (part, length) = range.split_once('/')?;
    Some((part.split_once('-')?.0.parse().ok()?, length.parse().ok()?))
}

/// What says that a file is still the same (RFC 9110, 13.1.5); a weak tag may not.
fn validator(response: &Response) -> Option<HeaderValue> {
    let tag = response.headers().get(ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    tag.or_else(|| response.headers().get(LAST_MODIFIED)).cloned()
}

/// Why a request has failed.
pub(super) fn interrupted(url: &Url, error: &reqwest::Error) -> MediumError {
    MediumError::Interrupted { url: shown(url), reason: chain(error) }
}

/// A URL without what could be a secret in it.
pub(super) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // A URL that has no place for a name has none.
    let _ = (shown.set_username(""), shown.set_password(None));
    shown.set_query(None);
    shown.to_string()
}
