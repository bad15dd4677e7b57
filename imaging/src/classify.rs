//! The stage before the writer: judges what the image is, and says where its bytes belong.

use crate::buffers::Chunk;
use crate::error::Error;
use crate::format::{self, Declared, Format, Policy};
use crate::order::{Order, Part};
use crate::qcow2::{self, Fault, Image, ReadAt, Writing};
use crate::target::{Target, Touched};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

/// What the stage needs to know.
pub(crate) struct Placing<'a> {
    pub(crate) declared: Declared,
    pub(crate) policy: &'a Policy,
    /// The URL as errors show it.
    pub(crate) url: &'a str,
    pub(crate) target: Target<'a>,
    pub(crate) touched: &'a Touched,
    /// For reading the tables of a qcow2 image before the pass; only where the image is not packed.
    pub(crate) file: Option<&'a dyn ReadAt>,
    /// Whether what arrives was unpacked; known as soon as something arrives.
    pub(crate) is_packed: &'a AtomicBool,
    /// Bytes of the file, where that is known.
    pub(crate) total: Option<u64>,
}

/// Why no image came out.
pub(crate) enum Failure {
    /// It was refused at sight.
    Refused(Error),
    /// It failed later. Only with the digest can be told whether the image or its transfer is at fault,
    /// and for that the rest was read.
    Broken(Error),
}

impl Placing<'_> {
    /// Orders what arrives. Returns the bytes that this stage wrote itself, because they had to wait.
    pub(crate) fn run(&self, chunks: &Receiver<Chunk>, orders: SyncSender<Order>) -> Result<u64, Failure> {
        let empty = || Error::Empty { url: self.url.to_owned() };
        let start = chunks.recv().map_err(|_| Failure::Broken(empty()))?;
        let format = format::judge(start.filled(), self.declared, self.policy, self.url);
        match format.map_err(Failure::Refused)? {
            Format::Qcow2 => self.qcow2(start, chunks, orders),
            _ => self.raw(start, chunks, &orders).map(|()| 0),
        }
    }

    fn raw(&self, start: Chunk, chunks: &Receiver<Chunk>, orders: &SyncSender<Order>) -> Result<(), Failure> {
        format::require_fitting_sectors(start.filled(), self.target.size(), &self.target, self.url)
            .map_err(Failure::Refused)?;
        let is_packed = self.is_packed.load(Ordering::Acquire);
        if let Some(bytes) = self.total.filter(|bytes| !is_packed && *bytes > self.target.size()) {
            return Err(Failure::Refused(self.target.too_small(self.url, bytes)));
        }
        self.touched.begin(&self.target).map_err(Failure::Refused)?;
        let mut offset = 0;
        for chunk in std::iter::once(start).chain(chunks) {
            let length = chunk.length;
            let parts = vec![Part { start: 0, length, offset }];
            offset += length as u64;
            // A closed channel means that the writer failed; it has the error.
            if orders.send(Order::Data { chunk, parts }).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn qcow2(
        &self,
        start: Chunk,
        chunks: &Receiver<Chunk>,
        orders: SyncSender<Order>,
    ) -> Result<u64, Failure> {
        let file = self.file.filter(|_| !self.is_packed.load(Ordering::Acquire));
        let mut writing = match self.prepare(&start, file, orders.clone()) {
            Err(Fault::Other(Error::NoRanges { url })) => {
                tracing::warn!(url, "the server has no ranges after all");
                self.prepare(&start, None, orders)
            }
            prepared => {
                drop(orders);
                prepared
            }
        }
        .map_err(|fault| Failure::Refused(self.error(fault)))?;
        self.touched.begin(&self.target).map_err(Failure::Refused)?;
        let mut rest = chunks.iter();
        let passed = std::iter::once(start)
            .chain(rest.by_ref())
            .try_for_each(|chunk| writing.chunk(chunk))
            .and_then(|()| writing.finish());
        match passed {
            Ok(spooled) => Ok(spooled),
            Err(Fault::Gone) => Ok(0),
            Err(fault) => {
                rest.for_each(drop);
                Err(Failure::Broken(self.error(fault)))
            }
        }
    }

    /// Everything that can be judged before the disk is touched.
    fn prepare(
        &self,
        start: &Chunk,
        file: Option<&dyn ReadAt>,
        orders: SyncSender<Order>,
    ) -> Result<Writing<'_>, Fault> {
        let image = Image::open(start.filled(), qcow2::MEMORY)?;
        if image.virtual_size() > self.target.size() {
            return Err(self.target.too_small(self.url, image.virtual_size()).into());
        }
        let has_tables = file.is_some();
        tracing::info!(url = self.url, bytes = image.virtual_size(), has_tables, "a qcow2 image");
        image.prepare(start.filled(), file, self.target.sectors(), orders)
    }

    fn error(&self, fault: Fault) -> Error {
        let url = self.url.to_owned();
        match fault {
            Fault::Invalid(reason) => Error::Qcow2 { url, reason },
            Fault::Memory => {
                let limit = qcow2::MEMORY >> 20;
                let reason = format!("its tables need more than {limit} MiB of memory: convert it to raw");
                Error::Qcow2 { url, reason }
            }
            Fault::NoRoom { bytes } => Error::NoSpool { url, disk: self.target.path().to_owned(), bytes },
            Fault::Changed => Error::Changed { url },
            Fault::Gone => Error::Cancelled { url },
            Fault::Other(error) => error,
        }
    }
}
