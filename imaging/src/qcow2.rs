//! qcow2 images, versions 2 and 3, written while they arrive.
//!
//! A qcow2 file is a map from the clusters of a disk to places in the file, and the clusters. The
//! usual readers, the crates among them, turn that map around at every read: they want random access,
//! hence a complete copy of the file somewhere. Here the file is passed over once, in its own order,
//! and each cluster goes where it belongs on the disk. Nothing of the image is kept but the map, of
//! which neighbours are joined; its size has a limit ([`MEMORY`]).
//!
//! * From a server that has ranges, and from a local file, the tables are read first. They are
//!   judged as a whole before the disk is touched. Their bytes must be the same when the pass comes to
//!   them, so that the digest of the file proves what was read before it was known.
//! * From any other source, and out of a compressed file, the tables are learned during the pass.
//!   What comes before its table waits on the target itself, behind the disk that the image describes.
//!
//! Compressed clusters (zlib, zstd), clusters of zeros, and extended entries are understood. An image
//! that refers to another file, is encrypted or marked as corrupt, or needs an unknown feature is
//! refused at the sight of its header. Snapshots inside an image are left out: only the active state
//! is deployed. No byte of the file may be used twice.

mod claims;
mod cluster;
mod header;
mod joined;
mod map;
mod pass;
mod spool;
mod streamed;
mod table;
mod tables;

#[cfg(any(test, feature = "fuzzing"))]
pub mod in_memory;
#[cfg(test)]
mod tests;

use crate::Error;
use crate::buffers::Chunk;
use crate::order::Order;
use farrier_disk::Sectors;
use header::Header;
pub(crate) use header::MAGIC;
use map::{Budget, Map};
use pass::Pass;
use spool::Spool;
use std::sync::mpsc::SyncSender;
use streamed::Streamed;
pub(crate) use tables::ReadAt;
use tables::{Loaded, Seals};

/// Bytes that tables and map may take: enough for a million stretches that are not neighbours.
pub const MEMORY: usize = 24 << 20;

/// Why an image was not written.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The image is at fault.
    Invalid(String),
    /// It needs more memory than [`MEMORY`].
    Memory,
    /// The spool is full; it has so many bytes.
    NoRoom { bytes: u64 },
    /// The tables are no longer what they were.
    Changed,
    /// Reading or writing failed.
    Other(Error),
    /// The writer has stopped, and has the reason.
    Gone,
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<farrier_disk::Error> for Fault {
    fn from(error: farrier_disk::Error) -> Self {
        Self::Other(error.into())
    }
}

/// An image of which the header was accepted.
pub(crate) struct Image {
    header: Header,
    budget: Budget,
}

/// An image that is being written.
pub(crate) enum Writing<'a> {
    /// With the tables known.
    Mapped(Box<Mapped>),
    /// With the tables to be learned.
    Streamed(Box<Streamed<'a>>),
}

/// The pass with all tables known.
pub(crate) struct Mapped {
    pass: Pass,
    seals: Seals,
    holes: Vec<(u64, u64)>,
    position: u64,
}

impl Image {
    /// Judges the header at the beginning of the file.
    pub(crate) fn open(start: &[u8], memory: usize) -> Result<Self, Fault> {
        Ok(Self { header: Header::parse(start)?, budget: Budget::new(memory) })
    }

    /// Bytes of the disk it describes.
    pub(crate) fn virtual_size(&self) -> u64 {
        self.header.virtual_size
    }

    /// Gets ready for the pass. Nothing is written yet; with a `file` the whole map is judged.
    pub(crate) fn prepare<'a>(
        mut self,
        start: &[u8],
        file: Option<&dyn ReadAt>,
        space: &'a dyn Sectors,
        orders: SyncSender<Order>,
    ) -> Result<Writing<'a>, Fault> {
        let sector_size = space.sector_size();
        let Some(file) = file else {
            let spool = Spool::new(space, self.header.virtual_size);
            let map = Map::new(&self.header)?;
            let pass = Pass::new(self.header, map, self.budget, orders, sector_size)?;
            return Ok(Writing::Streamed(Box::new(Streamed::new(pass, spool)?)));
        };
        let Loaded { map, holes, seals } = tables::load(&self.header, start, file, &mut self.budget)?;
        let pass = Pass::new(self.header, map, self.budget, orders, sector_size)?;
        Ok(Writing::Mapped(Box::new(Mapped { pass, seals, holes, position: 0 })))
    }
}

impl Writing<'_> {
    /// Takes the chunk that comes next in the file.
    pub(crate) fn chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
        match self {
            Self::Mapped(mapped) => mapped.chunk(chunk),
            Self::Streamed(streamed) => streamed.chunk(chunk),
        }
    }

    /// The file has ended. Returns the bytes that were written twice, because they had to wait.
    pub(crate) fn finish(&mut self) -> Result<u64, Fault> {
        match self {
            Self::Mapped(mapped) => mapped.finish().map(|()| 0),
            Self::Streamed(streamed) => streamed.finish(),
        }
    }
}

impl Mapped {
    fn chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
        for (guest, length) in std::mem::take(&mut self.holes) {
            self.pass.zero(guest, length)?;
        }
        let bytes = chunk.filled();
        self.seals.check(bytes, self.position)?;
        // What the map does not know, nobody needs: counts of references, and what is left over.
        self.pass.take(bytes, self.position, 0)?;
        self.position += bytes.len() as u64;
        let received = chunk.received;
        self.pass.send(chunk, received)
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if !self.seals.is_empty() {
            return Err(format!("its tables lie behind its end at {}", self.position).into());
        }
        self.pass.finish(self.position)
    }
}
