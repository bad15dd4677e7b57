//! What a disk holds, as the blocks of it that are not zero: disks of a thousand GiB take a few MiB.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use nix::unistd::{Whence, lseek};
use std::os::fd::AsFd;

/// Bytes of a block.
const BLOCK: usize = 4096;
/// Bytes read at once.
const CHUNK: usize = 1 << 20;
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Bytes that give something away, and where they lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// Blocks by their number; none is one of zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content(BTreeMap<u64, Vec<u8>>);

impl Content {
    /// Reads a sparse file.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn of(file: &File) -> Result<Self> {
        let mut content = Self::default();
        let size = file.metadata()?.len();
        let mut buffer = vec![0; CHUNK];
        for range in data(file, size)? {
            let mut offset = range.start - range.start % BLOCK as u64;
            while offset < range.end {
                let length = CHUNK.min((size - offset) as usize);
                file.read_exact_at(&mut buffer[..length], offset)
                    .with_context(|| format!("{length} bytes at {offset} of file {}", file.as_raw_fd()))?;
                content.put(offset, &buffer[..length]);
                offset += length as u64;
            }
        }
        Ok(content)
    }

    /// Writes it into a file that reads as zeros.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, file: &File) -> Result<()> {
        self.0.iter().try_for_each(|(number, block)| file.write_all_at(block, number * BLOCK as u64))?;
        Ok(())
    }

    /// Changes bytes; zeros among them are written as well.
    pub fn put(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let within = (offset % BLOCK as u64) as usize;
            let (part, rest) = bytes.split_at(bytes.len().min(BLOCK - within));
            let number = offset / BLOCK as u64;
            if part.len() < BLOCK || part != ZEROS {
                let block = self.0.entry(number).or_insert_with(|| ZEROS.to_vec());
                block[within..within + part.len()].copy_from_slice(part);
            }
            if self
                .0
                .get(&number)
                .is_some_and(|block| part.len() == BLOCK && part == ZEROS || **block == ZEROS)
            {
                self.0.remove(&number);
            }
            (bytes, offset) = (rest, offset + part.len() as u64);
        }
    }

    /// Puts what another content has in its blocks `offset` bytes further back, a multiple of a block.
    pub fn overlay(&mut self, other: &Self, offset: u64) {
        other.0.iter().for_each(|(number, block)| self.put(number * BLOCK as u64 + offset, block));
    }

    /// Makes a range zero.
    pub fn clear(&mut self, range: Range<u64>) {
        let numbers: Vec<_> = self
            .0
            .range(range.start / BLOCK as u64..range.end.div_ceil(BLOCK as u64))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            let start = (number * BLOCK as u64).max(range.start);
            let end = ((number + 1) * BLOCK as u64).min(range.end);
            self.put(start, &vec![0; (end - start) as usize]);
        }
    }

    /// `length` bytes from `offset`.
    pub fn get(&self, mut offset: u64, mut length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        while length > 0 {
            let within = (offset % BLOCK as u64) as usize;
            let count = length.min(BLOCK - within);
            let block = self.0.get(&(offset / BLOCK as u64)).map_or(&ZEROS[..], Vec::as_slice);
            bytes.extend_from_slice(&block[within..within + count]);
            (offset, length) = (offset + count as u64, length - count);
        }
        bytes
    }

    /// The first byte of a range that is not the one of another content.
    pub fn difference(&self, other: &Self, range: &Range<u64>) -> Option<u64> {
        let numbers = range.start / BLOCK as u64..range.end.div_ceil(BLOCK as u64);
        let mut numbers: Vec<_> =
            self.0.range(numbers.clone()).chain(other.0.range(numbers)).map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.into_iter().find_map(|number| {
            let start = (number * BLOCK as u64).max(range.start);
            let length = (((number + 1) * BLOCK as u64).min(range.end) - start) as usize;
            let (ours, theirs) = (self.get(start, length), other.get(start, length));
            if ours == theirs {
                return None;
            }
            let first = ours.iter().zip(&theirs).position(|(one, other)| one != other)?;
            Some(start + first as u64)
        })
    }
}

/// The ranges of a file that are no holes.
fn data(file: &File, size: u64) -> Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut offset = 0;
    while offset < size {
        let start = match lseek(file.as_fd(), offset as i64, Whence::SeekData) {
            Err(nix::Error::ENXIO) => break,
            start => start? as u64,
        };
        let end = lseek(file.as_fd(), start as i64, Whence::SeekHole)? as u64;
        ranges.push(start..end);
        offset = end;
    }
    Ok(ranges)
}

#[test]
fn a_content_keeps_what_is_put_into_it_and_nothing_of_zeros() {
    let mut content = Content::default();
    content.put(5000, b"one");
    content.put(8190, b"two");
    assert_eq!(content.get(4999, 5), *b"\0one\0");
    assert_eq!(content.get(8190, 3), *b"two");
    let before = content.clone();
    content.put(5001, b"\0");
    assert_eq!(content.difference(&before, &(0..10_000)), Some(5001));
    assert_eq!(content.difference(&before, &(6000..10_000)), None);
    content.clear(0..20_000);
    assert_eq!(content, Content::default());
}
