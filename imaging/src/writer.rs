//! Putting an image on its target, past the page cache, without transferring zeros.
//!
//! Both ends of the target are held back until the image is proven: they carry boot code, partition
//! table and backup table, or what makes a file system valid.

use crate::error::Error;
use crate::order::Order;
use crate::readback::Readback;
use crate::target::{END, Target};
use farrier_linux::aligned::{ALIGNMENT, AlignedBuffer};

/// Unit in which zeros are looked for, in bytes; a multiple of every sector size.
const BLOCK: usize = 64 * 1024;
/// Bytes zeroed by one request at most: a disk may take seconds for it, and nobody can interrupt.
const MAX_ZEROS: u64 = 64 << 20;

/// Writes what it is told and holds the ends back.
pub(crate) struct Writer<'a> {
    target: Target<'a>,
    url: &'a str,
    head: End,
    tail: End,
    /// Zeros not yet put on the disk: offset and length.
    zeros: (u64, u64),
    /// For what is no whole number of sectors.
    sector: AlignedBuffer,
    pub(crate) readback: Readback,
    pub(crate) bytes_written: u64,
    pub(crate) bytes_zeroed: u64,
}

/// An end of the target as it will be. It was made zero when the write began.
struct End {
    start: u64,
    content: AlignedBuffer,
    length: usize,
    /// Bytes of it that the image fills.
    used: usize,
}

impl End {
    fn new(start: u64, end: u64) -> Self {
        let length = (end - start) as usize;
        Self { start, content: AlignedBuffer::zeroed(END as usize), length, used: 0 }
    }

    fn end(&self) -> u64 {
        self.start + self.length as u64
    }

    /// Keeps the part of `data` that belongs here; `offset` lies here too.
    fn keep<'d>(&mut self, offset: u64, data: &'d [u8]) -> &'d [u8] {
        let within = (offset - self.start) as usize;
        let (mine, others) = data.split_at(data.len().min(self.length - within));
        self.content[within..within + mine.len()].copy_from_slice(mine);
        self.used = self.used.max(within + mine.len());
        others
    }
}

impl<'a> Writer<'a> {
    /// A writer to a target that was begun.
    pub(crate) fn new(target: Target<'a>, url: &'a str, readback: Readback) -> Self {
        let head = target.size().min(END);
        Self {
            target,
            url,
            head: End::new(0, head),
            tail: End::new(target.size().saturating_sub(END).max(head), target.size()),
            zeros: (0, 0),
            sector: AlignedBuffer::zeroed(ALIGNMENT),
            readback,
            bytes_written: 0,
            bytes_zeroed: 0,
        }
    }

    /// Does what an order says.
    pub(crate) fn obey(&mut self, order: &Order) -> Result<(), Error> {
        match order {
            Order::Zeros { offset, length } => {
                self.require_room(offset + length)?;
                let end = (offset + length).min(self.tail.start);
                let start = (*offset).max(self.head.end()).min(end);
                self.zero(start, end - start)
            }
            Order::Data { chunk, parts } => {
                for part in parts {
                    self.require_room(part.offset + part.length as u64)?;
                    self.put(part.offset, &chunk[part.start..part.start + part.length])?;
                }
                Ok(())
            }
        }
    }

    /// Puts the ends down, now that the rest is proven, and waits for the disk's own cache.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        self.require_fitting_sectors()?;
        self.flush_zeros()?;
        self.target.flush()?;
        self.readback.keep_all();
        for end in [&self.tail, &self.head] {
            let length = end.used.next_multiple_of(self.target.sector_size() as usize);
            if length > 0 {
                self.target.write_all_at(&end.content[..length], end.start)?;
                self.readback.add_data(end.start, &end.content[..length]);
                self.bytes_written += length as u64;
            }
        }
        self.target.flush()
    }

    /// An image whose table was made for other sectors cannot boot from this disk (F11).
    fn require_fitting_sectors(&self) -> Result<(), Error> {
        crate::format::require_fitting_sectors(&self.head.content[..self.head.length], &self.target, self.url)
    }

    fn put(&mut self, mut offset: u64, mut data: &[u8]) -> Result<(), Error> {
        if offset < self.head.end() {
            let rest = self.head.keep(offset, data);
            offset += (data.len() - rest.len()) as u64;
            data = rest;
        }
        if offset + data.len() as u64 > self.tail.start && !data.is_empty() {
            let here = self.tail.start.saturating_sub(offset) as usize;
            self.tail.keep(offset + here as u64, &data[here..]);
            data = &data[..here];
        }
        for (start, run) in runs(data) {
            let position = offset + start as u64;
            match run {
                Run::Zeros(length) => self.zero(position, length as u64)?,
                Run::Data(data) => self.write(position, data)?,
            }
        }
        Ok(())
    }

    /// Writes data; the last sector is filled up with zeros.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.flush_zeros()?;
        let sector_size = self.target.sector_size() as usize;
        let (whole, rest) = data.split_at(data.len() / sector_size * sector_size);
        if !whole.is_empty() {
            self.target.write_all_at(whole, offset)?;
            self.readback.add_data(offset, whole);
        }
        if !rest.is_empty() {
            let sector = &mut self.sector[..sector_size];
            sector.fill(0);
            sector[..rest.len()].copy_from_slice(rest);
            self.target.write_all_at(sector, offset + whole.len() as u64)?;
            self.readback.add_data(offset + whole.len() as u64, sector);
        }
        self.bytes_written += data.len().next_multiple_of(sector_size) as u64;
        Ok(())
    }

    /// Joins runs of zeros, so that the disk gets few and large requests.
    fn zero(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        if length == 0 {
            return Ok(());
        }
        let length = length.next_multiple_of(self.target.sector_size().into());
        let (start, pending) = self.zeros;
        if start + pending == offset {
            self.zeros.1 += length;
        } else {
            self.flush_zeros()?;
            self.zeros = (offset, length);
        }
        if self.zeros.1 >= MAX_ZEROS {
            self.flush_zeros()?;
        }
        Ok(())
    }

    fn flush_zeros(&mut self) -> Result<(), Error> {
        let (mut offset, mut length) = std::mem::take(&mut self.zeros);
        while length > 0 {
            let count = length.min(MAX_ZEROS);
            self.target.zero_out(offset, count)?;
            self.readback.add_zeros(offset, count);
            self.bytes_zeroed += count;
            (offset, length) = (offset + count, length - count);
        }
        Ok(())
    }

    fn require_room(&self, end: u64) -> Result<(), Error> {
        if end <= self.target.size() {
            return Ok(());
        }
        Err(Error::too_large(self.url, end, &self.target))
    }
}

/// A stretch of a chunk.
#[derive(Debug, PartialEq, Eq)]
enum Run<'a> {
    Zeros(usize),
    Data(&'a [u8]),
}

/// Cuts a chunk into stretches of zeros and of data, each with its offset in the chunk.
fn runs(chunk: &[u8]) -> Vec<(usize, Run<'_>)> {
    let mut runs = Vec::new();
    let mut start = 0;
    while start < chunk.len() {
        let is_zero = block_is_zero(&chunk[start..]);
        let mut end = start;
        while end < chunk.len() && block_is_zero(&chunk[end..]) == is_zero {
            end = (end + BLOCK).min(chunk.len());
        }
        let run = if is_zero { Run::Zeros(end - start) } else { Run::Data(&chunk[start..end]) };
        runs.push((start, run));
        start = end;
    }
    runs
}

fn block_is_zero(bytes: &[u8]) -> bool {
    let block = &bytes[..BLOCK.min(bytes.len())];
    // Words are compared several times faster than bytes.
    let (words, rest) = block.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_are_cut_at_block_borders() {
        let mut chunk = vec![0; 5 * BLOCK + 512];
        chunk[2 * BLOCK + 17] = 1;
        chunk[5 * BLOCK + 511] = 1;
        let lengths: Vec<_> = runs(&chunk)
            .into_iter()
            .map(|(start, run)| match run {
                Run::Zeros(length) => (start, 'z', length),
                Run::Data(data) => (start, 'd', data.len()),
            })
            .collect();
        assert_eq!(
            lengths,
            [
                (0, 'z', 2 * BLOCK),
                (2 * BLOCK, 'd', BLOCK),
                (3 * BLOCK, 'z', 2 * BLOCK),
                (5 * BLOCK, 'd', 512)
            ]
        );
        assert_eq!(runs(&[]), []);
    }

    proptest! {
        #[test]
        fn runs_put_together_are_the_chunk(marks in proptest::collection::vec(0..8 * BLOCK, 0..12), tail in 0..BLOCK) {
            let mut chunk = vec![0; 8 * BLOCK + tail];
            marks.iter().for_each(|mark| chunk[*mark] = 1);
            let mut joined = Vec::new();
            for (start, run) in runs(&chunk) {
                prop_assert_eq!(start, joined.len());
                match run {
                    Run::Zeros(length) => joined.resize(joined.len() + length, 0),
                    Run::Data(data) => joined.extend_from_slice(data),
                }
            }
            prop_assert_eq!(joined, chunk);
        }
    }
}
