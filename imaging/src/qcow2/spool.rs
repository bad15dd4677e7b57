//! Bytes of the file that arrived before it was known where they belong, kept on the target itself,
//! behind the disk that the image describes and before the last MiB.

use super::Fault;
use super::map::Budget;
use crate::CHUNK;
use farrier_disk::Sectors;
use farrier_linux::aligned::{ALIGNMENT, AlignedBuffer};
use std::ops::Range;

/// The bytes in waiting.
pub(super) struct Spool<'a> {
    space: &'a dyn Sectors,
    free: Range<u64>,
    runs: Vec<Run>,
    /// Made when it is needed: most images are in order.
    buffer: Option<AlignedBuffer>,
    /// What of the last sector is used; it is on the target too.
    last: Vec<u8>,
    start: u64,
}

/// Bytes that follow each other in the file and in the spool.
#[derive(Debug)]
struct Run {
    host: u64,
    length: u64,
    at: u64,
}

impl<'a> Spool<'a> {
    /// A spool behind the first `used` bytes of the target.
    pub(super) fn new(space: &'a dyn Sectors, used: u64) -> Self {
        let start = used.next_multiple_of(CHUNK as u64).max(CHUNK as u64);
        let end = space.size().saturating_sub(CHUNK as u64) / CHUNK as u64 * CHUNK as u64;
        Self { space, free: start..end.max(start), runs: Vec::new(), buffer: None, last: Vec::new(), start }
    }

    /// Keeps bytes that lie at `host` in the file.
    pub(super) fn keep(&mut self, host: u64, mut bytes: &[u8], budget: &mut Budget) -> Result<(), Fault> {
        match self.runs.last_mut() {
            Some(run) if run.host + run.length == host => run.length += bytes.len() as u64,
            _ => {
                budget.take(size_of::<Run>() as u64)?;
                self.free.start = self.used().end;
                self.last.clear();
                self.runs.push(Run { host, length: bytes.len() as u64, at: self.free.start });
            }
        }
        while !bytes.is_empty() {
            let count = bytes.len().min(CHUNK - self.last.len());
            self.write(&bytes[..count])?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Writes bytes behind the last ones, and zeros to the end of their sector.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let sector = self.space.sector_size() as usize;
        let filled = self.last.len() + bytes.len();
        let (whole, padded) = (filled / sector * sector, filled.next_multiple_of(sector));
        if self.free.end.saturating_sub(self.free.start) < padded as u64 {
            return Err(Fault::NoRoom { bytes: self.free.end - self.start });
        }
        let buffer = self.buffer.get_or_insert_with(|| AlignedBuffer::zeroed(CHUNK));
        buffer[..self.last.len()].copy_from_slice(&self.last);
        buffer[self.last.len()..filled].copy_from_slice(bytes);
        buffer[filled..padded].fill(0);
        self.space.write_all_at(&buffer[..padded], self.free.start)?;
        self.free.start += whole as u64;
        self.last.clear();
        self.last.extend_from_slice(&buffer[whole..filled]);
        Ok(())
    }

    /// Hands the bytes from `host` to `end` on, in order and in parts.
    pub(super) fn read(
        &mut self,
        mut host: u64,
        end: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let buffer = self.buffer.get_or_insert_with(|| AlignedBuffer::zeroed(CHUNK));
        while host < end {
            let after = self.runs.partition_point(|run| run.host <= host);
            let run = after.checked_sub(1).map(|index| &self.runs[index]);
            let Some(run) = run.filter(|run| host < run.host + run.length) else {
                return Err(format!("the cluster at {host} overlaps another one").into());
            };
            let within = host - run.host;
            let start = (run.at + within) / ALIGNMENT as u64 * ALIGNMENT as u64;
            let skipped = (run.at + within - start) as usize;
            let count = (end - host).min(run.length - within).min((CHUNK - skipped) as u64) as usize;
            let length = (skipped + count).next_multiple_of(ALIGNMENT);
            self.space.read_exact_at(&mut buffer[..length], start)?;
            take(&buffer[skipped..skipped + count])?;
            host += count as u64;
        }
        Ok(())
    }

    /// The range of the target that was used.
    pub(super) fn used(&self) -> Range<u64> {
        let sector = u64::from(self.space.sector_size());
        self.start..self.free.start + (self.last.len() as u64).next_multiple_of(sector)
    }
}
