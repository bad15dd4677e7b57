//! From URL to proven disk: receive, digest and write, each on a thread of its own.
//!
//! A fixed set of buffers goes round between the stages, so that memory is bounded whatever the
//! image's size. Connection, body and digest are one unit that is tried again as a whole (D07).

use crate::CHUNK;
use crate::cancel::CancelHandle;
use crate::checksum::{ExpectedDigest, Hasher};
use crate::error::{Error, Retry};
use crate::format::{self, Declared};
use crate::progress::ProgressHandle;
use crate::source::{Body, HttpSource};
use crate::writer::Writer;
use farrier_disk::{WritableDisk, wipe};
use farrier_linux::aligned::AlignedBuffer;
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;
use serde::Serialize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Buffers that go round; with the one that is held back, the memory of a write in MiB.
const BUFFERS: usize = 6;

/// An image to write, judged as far as that needs no server.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    /// Name for logs.
    pub id: String,
    /// Where to get it, tried in order.
    pub urls: Vec<String>,
    /// What proves it.
    pub digest: ExpectedDigest,
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
    /// [`Error::Format`] or [`Error::Digest`].
    pub fn new(info: &ImageInfo) -> Result<Self, Error> {
        let declared = format::declared(info.disk_format.as_deref()).ok_or_else(|| Error::Format {
            image: info.id.clone(),
            format: info.disk_format.clone().unwrap_or_default(),
        })?;
        Ok(Self {
            id: info.id.clone(),
            urls: info.urls.clone(),
            digest: ExpectedDigest::choose(info)?,
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
    let deadline = source.options.max_duration.map(|limit| Instant::now() + limit);
    let mut attempts = 0;
    let mut mismatches = 0;
    let mut is_touched = false;
    let error = loop {
        let url = &request.urls[attempts as usize % request.urls.len()];
        let attempt = Attempt {
            request,
            name: crate::source::without_secrets(url),
            disk,
            progress,
            cancel,
            total: None,
        };
        let error = match attempt.run(source, url, deadline, &mut is_touched) {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        attempts += 1;
        mismatches += u32::from(error.retry() == Retry::Once);
        // Each further URL is tried at least once, whatever the first one answered (section 5.7).
        let is_worth_it = match error.retry() {
            Retry::Never => !is_about_disk(&error) && (attempts as usize) < request.urls.len(),
            Retry::Once => mismatches < 2,
            Retry::Often => attempts <= source.options.retries,
        };
        if !is_worth_it || cancel.is_cancelled() {
            break error;
        }
        tracing::warn!(%error, attempts, "image not written, trying again");
        pause(jittered(source.options.retry_interval), deadline, cancel);
    };
    progress.enter(Phase::Failed, None);
    let error = match attempts {
        1 => error,
        attempts => Error::Exhausted { attempts, last: Box::new(error) },
    };
    Err(if is_touched { abandon(disk, error) } else { error })
}

/// One attempt with one URL.
struct Attempt<'a> {
    request: &'a ImageRequest,
    /// The URL as errors show it.
    name: String,
    disk: &'a WritableDisk,
    progress: &'a ProgressHandle,
    cancel: &'a CancelHandle,
    /// Bytes the server announced.
    total: Option<u64>,
}

/// A buffer and how much of it is filled.
type Chunk = (AlignedBuffer, usize);

impl Attempt<'_> {
    fn run(
        mut self,
        source: &HttpSource,
        url: &str,
        deadline: Option<Instant>,
        is_touched: &mut bool,
    ) -> Result<Report, Error> {
        let started = Instant::now();
        self.progress.enter(Phase::Writing, None);
        let body = source.open(url, deadline)?;
        self.total = body.length();
        if let Some(image_bytes) = self.total.filter(|length| *length > self.disk.size()) {
            return Err(self.too_large(image_bytes));
        }
        self.progress.enter(Phase::Writing, self.total);
        let (mut writer, bytes_read) = self.stream(body, is_touched)?;
        writer.commit()?;
        let seconds_write = started.elapsed().as_secs_f64();
        let verifying = Instant::now();
        let bytes_verified = writer.sample.verify(self.disk, self.progress, self.cancel, &self.name)?;
        Ok(Report {
            bytes_read,
            bytes_written: writer.bytes_written,
            bytes_zeroed: writer.bytes_zeroed,
            bytes_verified,
            seconds_write,
            seconds_verify: verifying.elapsed().as_secs_f64(),
        })
    }

    /// Runs the three stages. When it returns, everything but the first MiB is on its way to the
    /// disk and the digest has matched.
    fn stream(&self, body: Body, is_touched: &mut bool) -> Result<(Writer<'_>, u64), Error> {
        let (free, pool) = channel();
        for _ in 0..BUFFERS {
            free.send(AlignedBuffer::zeroed(CHUNK)).ok();
        }
        let (received, to_hash) = sync_channel(2);
        let (hashed, to_write) = sync_channel(2);
        let hasher = self.request.digest.algorithm.hasher();
        // Raised when the writer fails, so that nobody waits for a slow server in vain.
        let stop = CancelHandle::default();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.receive(body, pool, received, &stop));
            let hashing = scope.spawn(|| digest(hasher, to_hash, hashed));
            let written = self.write(to_write, free, is_touched);
            if written.is_err() {
                stop.cancel();
            }
            let received = join(receiving.join());
            let actual = join(hashing.join());
            // The writer's failure is the cause when there is one: it stops the others (D09).
            let (writer, bytes) = written?;
            received?;
            self.require_digest(&actual)?;
            Ok((writer.ok_or_else(|| Error::Empty { url: self.name.clone() })?, bytes))
        })
    }

    fn receive(
        &self,
        mut body: Body,
        pool: Receiver<AlignedBuffer>,
        received: SyncSender<Chunk>,
        stop: &CancelHandle,
    ) -> Result<(), Error> {
        // The channels close when a later stage fails; that stage has the error.
        while let Ok(mut buffer) = pool.recv() {
            let length = body.fill(&mut buffer, [self.cancel, stop])?;
            let is_last = length < CHUNK;
            if (length > 0 && received.send((buffer, length)).is_err()) || is_last {
                break;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        to_write: Receiver<Chunk>,
        free: Sender<AlignedBuffer>,
        is_touched: &mut bool,
    ) -> Result<(Option<Writer<'_>>, u64), Error> {
        let mut writer: Option<Writer<'_>> = None;
        let mut bytes = 0;
        for (buffer, length) in to_write {
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    self.require_fitting_content(&buffer[..length])?;
                    *is_touched = true;
                    writer.insert(Writer::begin(self.disk, &self.name, self.total)?)
                }
            };
            if let Some(buffer) = writer.write(buffer, length)? {
                free.send(buffer).ok();
            }
            bytes += length as u64;
            self.progress.set_bytes(bytes);
        }
        Ok((writer, bytes))
    }

    /// Judges the first MiB, before the disk is touched.
    fn require_fitting_content(&self, start: &[u8]) -> Result<(), Error> {
        let url = self.name.clone();
        if let (Declared::Unknown, Some(format)) = (self.request.declared, format::recognize(start)) {
            return Err(Error::Content { url, format });
        }
        let disk_sector = self.disk.sector_size();
        match format::gpt_sector_size(start) {
            Some(image_sector) if image_sector != disk_sector => {
                Err(Error::SectorSize { url, image_sector, disk: self.disk.path().to_owned(), disk_sector })
            }
            _ => Ok(()),
        }
    }

    fn require_digest(&self, actual: &str) -> Result<(), Error> {
        let expected = &self.request.digest;
        if actual == expected.value {
            return Ok(());
        }
        Err(Error::Mismatch {
            url: self.name.clone(),
            algorithm: expected.algorithm.name(),
            expected: expected.value.clone(),
            actual: actual.to_owned(),
        })
    }

    fn too_large(&self, image_bytes: u64) -> Error {
        Error::TooLarge {
            url: self.name.clone(),
            image_bytes,
            disk: self.disk.path().to_owned(),
            disk_bytes: self.disk.size(),
        }
    }
}

fn digest(mut hasher: Hasher, to_hash: Receiver<Chunk>, hashed: SyncSender<Chunk>) -> String {
    for (buffer, length) in to_hash {
        hasher.update(&buffer[..length]);
        if hashed.send((buffer, length)).is_err() {
            break;
        }
    }
    hasher.finish()
}

/// A panic of a stage becomes the panic of the write, which fails its command.
fn join<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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

/// Between half and the whole of an interval, so that many machines do not ask at once.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(rand::random_range(0.5..1.0))
}

fn pause(duration: Duration, deadline: Option<Instant>, cancel: &CancelHandle) {
    let end = Instant::now() + duration;
    let end = deadline.map_or(end, |deadline| end.min(deadline));
    while !cancel.is_cancelled() && Instant::now() < end {
        thread::sleep(Duration::from_millis(100).min(end.saturating_duration_since(Instant::now())));
    }
}
