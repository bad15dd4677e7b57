//! One attempt with one URL, of which a retry is the next: receive, digest, unpack, place and write, each on threads of
//! its own.
//!
//! Fixed sets of buffers go round between the stages, so that memory is bounded whatever the
//! image's size.

use crate::CHUNK;
use crate::buffers::{Chunk, Pool};
use crate::cancel::CancelHandle;
use crate::checksum::{ExpectedDigest, Hasher};
use crate::classify::{Failure, Placing};
use crate::error::Error;
use crate::order::Order;
use crate::progress::ProgressHandle;
use crate::queue::{DEPTH, Queue, Requests};
use crate::readback::Readback;
use crate::settings::{Report, Settings};
use crate::source::{Body, Download};
use crate::target::{Target, Touched};
use crate::unpack::unpack;
use crate::writer::Writer;
use farrier_protocol::progress::Phase;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

/// Buffers for received bytes; for a raw image they are nearly the whole memory of a write, in MiB.
const BUFFERS: usize = 8;

/// One attempt with one URL.
pub(crate) struct Attempt<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) declared: crate::format::Declared,
    pub(crate) digest: &'a ExpectedDigest,
    /// The URL as errors show it.
    pub(crate) name: String,
    pub(crate) target: Target<'a>,
    pub(crate) touched: &'a Touched,
    pub(crate) progress: &'a ProgressHandle,
    pub(crate) cancel: &'a CancelHandle,
}

/// What came through the stages.
struct Streamed {
    bytes_read: u64,
    /// Bytes that had to wait on the disk for their place.
    bytes_spooled: u64,
}

impl Attempt<'_> {
    /// Writes and proves the image.
    pub(crate) fn run(&self, download: &Download<'_>, url: &str) -> Result<Report, Error> {
        let started = Instant::now();
        self.progress.enter(Phase::Writing, None);
        let body = download.open(url, &[self.cancel])?;
        let total = body.length();
        self.progress.enter(Phase::Writing, total);
        let readback = Readback::new(self.settings.verify, total);
        let mut writer = Writer::new(self.target, &self.name, readback);
        let streamed = self.stream(body, &mut writer)?;
        let seconds_write = started.elapsed().as_secs_f64();
        let mut seconds_commit = seconds(|| writer.settle())?;
        let mut seconds_verify = seconds(|| self.verify(&mut writer.readback))?;
        seconds_commit += seconds(|| writer.seal())?;
        seconds_verify += seconds(|| self.verify(&mut writer.readback))?;
        Ok(Report {
            bytes_read: streamed.bytes_read,
            bytes_written: writer.bytes_written + streamed.bytes_spooled,
            bytes_zeroed: writer.bytes_zeroed,
            bytes_verified: writer.readback.bytes_verified,
            seconds_write,
            seconds_commit,
            seconds_verify,
        })
    }

    /// Runs the stages. When it returns, everything but the ends is on its way to the disk and the
    /// digest has matched.
    fn stream(&self, body: Body<'_>, writer: &mut Writer<'_>) -> Result<Streamed, Error> {
        let (received, to_hash) = sync_channel(2);
        let (hashed, to_unpack) = sync_channel(2);
        let (unpacked, to_place) = sync_channel(2);
        let (placed, to_write) = sync_channel(4);
        let hasher = self.digest.algorithm.hasher();
        let total = body.length();
        let file = body.reader(self.cancel);
        let is_packed = AtomicBool::new(false);
        let placing = Placing {
            declared: self.declared,
            policy: &self.settings.policy,
            url: &self.name,
            target: self.target,
            touched: self.touched,
            file: file.as_deref(),
            is_packed: &is_packed,
            total,
        };
        // Raised when a later stage fails, so that nobody waits for a slow server in vain.
        let stop = CancelHandle::default();
        let queue = Queue::default();
        thread::scope(|scope| {
            for _ in 0..DEPTH {
                scope.spawn(|| queue.work(&self.target));
            }
            let receiving = scope.spawn(|| self.receive(body, received, &stop));
            let hashing = scope.spawn(|| digest(hasher, to_hash, hashed));
            let unpacking =
                scope.spawn(|| unpack(self.declared.is_exact(), to_unpack, unpacked, &self.name, &is_packed));
            let placing = scope.spawn(|| {
                let placed = placing.run(&to_place, placed);
                if matches!(placed, Err(Failure::Refused(_))) {
                    stop.cancel();
                }
                drop(to_place);
                placed
            });
            let written = self.write(to_write, writer, queue.open());
            if written.is_err() {
                stop.cancel();
            }
            let received = join(receiving.join());
            let (actual, bytes_read) = join(hashing.join());
            let unpacked = join(unpacking.join());
            let placed = join(placing.join());
            // The writer's failure is the cause when there is one: it stops the others (D09).
            written?;
            let placed = match placed {
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Broken(error)) => Err(error),
                Ok(bytes) => Ok(bytes),
            };
            received?;
            self.require_digest(&actual)?;
            unpacked?;
            Ok(Streamed { bytes_read, bytes_spooled: placed? })
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

    fn write(
        &self,
        to_write: Receiver<Order>,
        writer: &mut Writer<'_>,
        queue: Requests<'_>,
    ) -> Result<(), Error> {
        for order in to_write {
            let received = match &order {
                Order::Data { chunk, .. } => Some(chunk.received),
                Order::Zeros { .. } => None,
            };
            writer.obey(order, &queue)?;
            if let Some(received) = received {
                self.progress.set_bytes(received);
            }
            if writer.readback.is_full() {
                queue.finish()?;
                self.target.sectors().flush()?;
                self.verify(&mut writer.readback)?;
                self.progress.enter(Phase::Writing, None);
            }
        }
        writer.finish(&queue)
    }

    fn verify(&self, readback: &mut Readback) -> Result<(), Error> {
        readback.verify(&self.target, self.progress, self.cancel, &self.name)
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

/// How long it took, if it succeeded.
fn seconds(work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_secs_f64())
}

/// A panic of a stage becomes the panic of the write, which fails its command.
fn join<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
