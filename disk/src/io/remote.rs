//! A disk of another machine, reached through a server of network block devices that is logged in to it.

use super::nbd::{Connection, Feature, Offer};
use super::sectors::{Sectors, sealed};
use crate::error::Error;
use farrier_linux::aligned::AlignedBuffer;
use farrier_linux::blkid::{self, Signature};
use farrier_linux::loop_device::LoopDevice;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections at a time: as many as the write path has requests under way.
pub const CONNECTIONS: usize = 3;
/// Bytes zeroed by one request: a disk may take seconds for it.
const ZEROS: u64 = 64 << 20;
/// Bytes of zeros sent in one piece to a server that makes none by itself.
const PIECE: u64 = 1 << 20;
/// Bytes at either end of a volume among which its signatures are, the root folders of FAT included.
const HEAD: u64 = 8 << 20;
const TAIL: u64 = 1 << 20;

/// What is known of a remote disk before it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its name in messages, such as that of its iSCSI target. It leads nowhere.
    pub name: String,
    /// Size in bytes and of a logical sector, of each disk that it may be: those of the machine's inventory.
    pub sizes: Vec<(u64, u32)>,
    /// Time for each request, which has to outlast a network that is away for a moment.
    pub patience: Duration,
}

/// A disk of another machine that may be overwritten. There is no way to make one but by a session that is proven to
/// lead to a disk that is expected; a path of this machine cannot become one.
#[derive(Debug)]
pub struct RemoteDisk {
    name: PathBuf,
    offer: Offer,
    sector_size: u32,
    lines: Mutex<Lines>,
    /// A connection is free, or none ever will be again.
    freed: Condvar,
}

#[derive(Debug)]
struct Lines {
    free: Vec<Connection>,
    /// Why no connection is used any more: what one of them had under way may be on the disk or not.
    broken: Option<String>,
}

impl RemoteDisk {
    /// Connects to the server, as often as it allows, and makes sure that its disk is one that is expected. Nothing is
    /// written before that.
    ///
    /// # Errors
    ///
    /// [`Error::Remote`]: it is another disk, or none that can be written to; [`Error::Device`] when the server cannot
    /// be spoken with.
    pub fn open(expected: &Expected, connect: impl Fn() -> io::Result<UnixStream>) -> Result<Self, Error> {
        let name = PathBuf::from(&expected.name);
        let meet = || {
            let met = connect().and_then(|stream| Connection::open(stream, expected.patience));
            met.map_err(|source| Error::Device {
                device: name.clone(),
                action: "connecting to its initiator".to_owned(),
                source,
            })
        };
        let (first, offer) = meet()?;
        let sector_size = prove(expected, &offer)?;
        let mut free = vec![first];
        while free.len() < CONNECTIONS && offer.has(Feature::MultipleConnections) {
            let (next, same) = meet()?;
            if same != offer {
                return Err(expected.refused("the initiator offers another disk to each connection"));
            }
            free.push(next);
        }
        let lines = Mutex::new(Lines { free, broken: None });
        Ok(Self { name, offer, sector_size, lines, freed: Condvar::new() })
    }

    /// Takes leave of the server, which has been asked for everything.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] when a connection broke before.
    pub fn close(self) -> Result<(), Error> {
        let lines = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        let left = lines.free.into_iter().try_for_each(Connection::disconnect);
        let broken = lines.broken.map_or(Ok(()), |reason| Err(io::Error::other(reason)));
        broken.and(left).map_err(|source| Error::Device {
            device: self.name,
            action: "taking leave of its initiator".to_owned(),
            source,
        })
    }

    /// Has a request made by a connection that is free.
    fn ask<T>(
        &self,
        action: impl FnOnce() -> String,
        request: impl FnOnce(&mut Connection) -> io::Result<T>,
    ) -> Result<T, Error> {
        let outcome = self.borrow().and_then(|mut connection| {
            let outcome = request(&mut connection);
            self.give_back(connection, outcome.as_ref().err());
            outcome
        });
        outcome.map_err(|source| Error::Device { device: self.name.clone(), action: action(), source })
    }

    fn borrow(&self) -> io::Result<Connection> {
        let is_busy = |lines: &mut Lines| lines.free.is_empty() && lines.broken.is_none();
        let waited = self.freed.wait_while(self.lines(), is_busy);
        let mut lines = waited.unwrap_or_else(PoisonError::into_inner);
        match &lines.broken {
            Some(reason) => Err(io::Error::new(io::ErrorKind::NotConnected, reason.clone())),
            None => lines.free.pop().ok_or_else(|| io::ErrorKind::NotConnected.into()),
        }
    }

    fn give_back(&self, connection: Connection, error: Option<&io::Error>) {
        let mut lines = self.lines();
        match error.filter(|_| connection.is_broken()) {
            Some(error) => {
                lines.broken.get_or_insert_with(|| format!("the session broke earlier: {error}"));
                self.freed.notify_all();
            }
            None => {
                lines.free.push(connection);
                self.freed.notify_one();
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn require_inside(&self, action: &str, offset: u64, length: u64) -> Result<(), Error> {
        match offset.checked_add(length) {
            Some(end) if end <= self.offer.size => Ok(()),
            _ => Err(Error::Device {
                device: self.name.clone(),
                action: format!("{action} {length} bytes at {offset} of {}", self.offer.size),
                source: io::ErrorKind::InvalidInput.into(),
            }),
        }
    }

    /// Both ends of `size` bytes from `start` in their place in a file that is otherwise empty, for libblkid, which
    /// reads files.
    fn ends_as_file(&self, start: u64, size: u64) -> Result<File, Error> {
        let failed = |source| Error::Device {
            device: self.name.clone(),
            action: format!("keeping the ends of {size} bytes at {start}"),
            source,
        };
        let file = memfd_create(c"signatures", MFdFlags::MFD_CLOEXEC).map(File::from);
        let file = file.map_err(|error| failed(error.into()))?;
        file.set_len(self.offer.size).map_err(failed)?;
        let (head, tail) = (HEAD.min(size), TAIL.min(size.saturating_sub(HEAD)));
        let mut buffer = AlignedBuffer::zeroed(PIECE as usize);
        for (first, length) in [(start, head), (start + size - tail, tail)] {
            for offset in (first..first + length).step_by(PIECE as usize) {
                let piece = &mut buffer[..PIECE.min(first + length - offset) as usize];
                self.read_exact_at(piece, offset)?;
                file.write_all_at(piece, offset).map_err(failed)?;
            }
        }
        Ok(file)
    }
}

impl Expected {
    fn refused(&self, reason: impl Into<String>) -> Error {
        Error::Remote { name: self.name.clone(), reason: reason.into() }
    }
}

/// The bytes of a sector of the disk that is offered, if it is one that is expected.
fn prove(expected: &Expected, offer: &Offer) -> Result<u32, Error> {
    if offer.has(Feature::ReadOnly) || !offer.has(Feature::Flush) {
        return Err(expected.refused("it cannot be written to and flushed"));
    }
    let Some(sector_size) = offer.block else {
        return Err(expected.refused("its initiator does not tell the size of its sectors"));
    };
    match expected.sizes.contains(&(offer.size, sector_size)) && offer.size.is_multiple_of(sector_size.into())
    {
        true => Ok(sector_size),
        false => Err(expected.refused(format!(
            "it has {} bytes in sectors of {sector_size}, as no disk of the machine's inventory has",
            offer.size
        ))),
    }
}

/// A range in pieces of at most `most` bytes.
fn pieces(offset: u64, length: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..length.div_ceil(most)).map(move |index| (offset + index * most, most.min(length - index * most)))
}

impl sealed::Sealed for RemoteDisk {}

impl Sectors for RemoteDisk {
    /// Its name. No file has it.
    fn path(&self) -> &Path {
        &self.name
    }

    fn size(&self) -> u64 {
        self.offer.size
    }

    fn sector_size(&self) -> u32 {
        self.sector_size
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.require_inside("reading", offset, buffer.len() as u64)?;
        for (index, piece) in buffer.chunks_mut(self.offer.most as usize).enumerate() {
            let (at, length) = (offset + index as u64 * u64::from(self.offer.most), piece.len());
            self.ask(|| format!("reading {length} bytes at {at}"), |line| line.read(piece, at))?;
        }
        Ok(())
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        self.require_inside("writing", offset, data.len() as u64)?;
        for (index, piece) in data.chunks(self.offer.most as usize).enumerate() {
            let (at, length) = (offset + index as u64 * u64::from(self.offer.most), piece.len());
            self.ask(|| format!("writing {length} bytes at {at}"), |line| line.write(piece, at))?;
        }
        Ok(())
    }

    fn zero_out(&self, offset: u64, length: u64) -> Result<(), Error> {
        if self.zero_by_command(offset, length)? {
            return Ok(());
        }
        let zeros = AlignedBuffer::zeroed(PIECE as usize);
        pieces(offset, length, PIECE)
            .try_for_each(|(at, count)| self.write_all_at(&zeros[..count as usize], at))
    }

    fn zero_by_command(&self, offset: u64, length: u64) -> Result<bool, Error> {
        self.require_inside("zeroing", offset, length)?;
        if !self.offer.has(Feature::WriteZeroes) {
            return Ok(false);
        }
        for (at, count) in pieces(offset, length, ZEROS) {
            let zero = |line: &mut Connection| line.write_zeroes(at, count as u32);
            self.ask(|| format!("zeroing {count} bytes at {at}"), zero)?;
        }
        Ok(true)
    }

    fn discards(&self) -> bool {
        self.offer.has(Feature::Trim)
    }

    /// Its server promises nothing of the kind.
    fn keeps_discarded_zero(&self) -> bool {
        false
    }

    fn discard(&self, offset: u64, length: u64) -> Result<bool, Error> {
        self.require_inside("discarding", offset, length)?;
        if !self.discards() {
            return Ok(false);
        }
        for (at, count) in pieces(offset, length, ZEROS) {
            let trim = |line: &mut Connection| line.trim(at, count as u32);
            self.ask(|| format!("discarding {count} bytes at {at}"), trim)?;
        }
        Ok(true)
    }

    fn flush(&self) -> Result<(), Error> {
        self.ask(|| "flushing".to_owned(), Connection::flush)
    }

    /// No kernel has it but that of its machine, which looks when its export has ended.
    fn reread_partitions(&self) -> Result<(), Error> {
        Ok(())
    }

    fn signatures(&self, start: u64, size: u64) -> Result<Vec<Signature>, Error> {
        self.require_inside("looking for signatures in", start, size)?;
        let file = self.ends_as_file(start, size)?;
        blkid::signatures(&file, start, size).map_err(|source| Error::Device {
            device: self.name.clone(),
            action: format!("looking for signatures in {size} bytes at {start}"),
            source,
        })
    }

    fn loop_over(&self, _: u64, _: u64) -> Result<Option<LoopDevice>, Error> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
