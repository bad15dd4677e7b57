//! One attempt with one URL: receive, digest, unpack and write, each on a thread of its own.
//!
//! Fixed sets of buffers go round between the stages, so that memory is bounded whatever the
//! image's size.

use crate::CHUNK;
use crate::buffers::{Chunk, Pool};
use crate::cancel::CancelHandle;
use crate::checksum::{ExpectedDigest, Hasher};
use crate::error::Error;
use crate::format::{self, Declared};
use crate::pipeline::Report;
use crate::progress::ProgressHandle;
use crate::source::{Body, Download};
use crate::unpack::unpack;
use crate::writer::Writer;
use farrier_disk::WritableDisk;
use farrier_protocol::progress::Phase;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

/// Buffers for received bytes; for a raw image they are the whole memory of a write, in MiB.
const BUFFERS: usize = 7;

/// One attempt with one URL.
pub(crate) struct Attempt<'a> {
    pub(crate) declared: Declared,
    pub(crate) digest: &'a ExpectedDigest,
    /// The URL as errors show it.
    pub(crate) name: String,
    pub(crate) disk: &'a WritableDisk,
    pub(crate) progress: &'a ProgressHandle,
    pub(crate) cancel: &'a CancelHandle,
    /// Bytes the server announced.
    pub(crate) total: Option<u64>,
}

impl Attempt<'_> {
    /// Writes and proves the image. The flag is raised before the first byte of the disk is changed.
    pub(crate) fn run(
        mut self,
        download: &Download<'_>,
        url: &str,
        is_touched: &mut bool,
    ) -> Result<Report, Error> {
        let started = Instant::now();
        self.progress.enter(Phase::Writing, None);
        let body = download.open(url)?;
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

    /// Runs the four stages. When it returns, everything but the first MiB is on its way to the
    /// disk and the digest has matched.
    fn stream(&self, body: Body<'_>, is_touched: &mut bool) -> Result<(Writer<'_>, u64), Error> {
        let (received, to_hash) = sync_channel(2);
        let (hashed, to_unpack) = sync_channel(2);
        let (unpacked, to_write) = sync_channel(2);
        let hasher = self.digest.algorithm.hasher();
        // Raised when the writer fails, so that nobody waits for a slow server in vain.
        let stop = CancelHandle::default();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.receive(body, received, &stop));
            let hashing = scope.spawn(|| digest(hasher, to_hash, hashed));
            let unpacking = scope.spawn(move || unpack(self.declared, to_unpack, &unpacked, &self.name));
            let written = self.write(to_write, is_touched);
            if written.is_err() {
                stop.cancel();
            }
            let received = join(receiving.join());
            let (actual, bytes_read) = join(hashing.join());
            let unpacked = join(unpacking.join());
            // The writer's failure is the cause when there is one: it stops the others (D09).
            let writer = written?;
            received?;
            self.require_digest(&actual)?;
            unpacked?;
            Ok((writer.ok_or_else(|| Error::Empty { url: self.name.clone() })?, bytes_read))
        })
    }

    fn receive(
        &self,
        mut body: Body<'_>,
        received: SyncSender<Chunk>,
        stop: &CancelHandle,
    ) -> Result<(), Error> {
        let pool = Pool::new(BUFFERS);
        loop {
            let mut chunk = pool.take();
            chunk.length = body.fill(&mut chunk, &[self.cancel, stop])?;
            let is_last = chunk.length < CHUNK;
            // The channel closes when a later stage fails; that stage has the error.
            if (chunk.length > 0 && received.send(chunk).is_err()) || is_last {
                return Ok(());
            }
        }
    }

    fn write(&self, to_write: Receiver<Chunk>, is_touched: &mut bool) -> Result<Option<Writer<'_>>, Error> {
        let mut writer: Option<Writer<'_>> = None;
        for chunk in to_write {
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    self.require_fitting_content(chunk.filled())?;
                    *is_touched = true;
                    writer.insert(Writer::begin(self.disk, &self.name, self.total)?)
                }
            };
            let received = chunk.received;
            writer.write(chunk)?;
            self.progress.set_bytes(received);
        }
        Ok(writer)
    }

    /// Judges the first MiB, before the disk is touched.
    fn require_fitting_content(&self, start: &[u8]) -> Result<(), Error> {
        let url = self.name.clone();
        match self.declared {
            Declared::Unknown => {
                if let Some(format) = format::recognize(start) {
                    return Err(Error::Content { url, format });
                }
            }
            Declared::Raw => {
                if let Some(compression) = format::compressed_only(start) {
                    return Err(Error::NotRaw { url, compression });
                }
            }
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
        let expected = self.digest;
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

/// Computes the digest of all bytes, and how many they were.
fn digest(mut hasher: Hasher, to_hash: Receiver<Chunk>, hashed: SyncSender<Chunk>) -> (String, u64) {
    let mut bytes = 0;
    for chunk in to_hash {
        hasher.update(chunk.filled());
        bytes += chunk.length as u64;
        if hashed.send(chunk).is_err() {
            break;
        }
    }
    (hasher.finish(), bytes)
}

/// A panic of a stage becomes the panic of the write, which fails its command.
fn join<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
