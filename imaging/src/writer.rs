//! Putting chunks on the disk, past the page cache, without transferring zeros.

use crate::CHUNK;
use crate::buffers::Chunk;
use crate::error::Error;
use crate::sample::Sample;
use farrier_disk::{WritableDisk, wipe};

/// Unit in which zeros are looked for, in bytes; a multiple of every sector size.
const BLOCK: usize = 64 * 1024;
/// Bytes zeroed by one request at most: a disk may take seconds for it, and nobody can interrupt.
const MAX_ZEROS: u64 = 64 << 20;

/// Writes chunks in order and holds the first one back.
pub(crate) struct Writer<'a> {
    disk: &'a WritableDisk,
    url: &'a str,
    held_back: Option<Chunk>,
    chunks: u64,
    /// Zeros not yet put on the disk: offset and length.
    zeros: (u64, u64),
    pub(crate) sample: Sample,
    pub(crate) bytes_written: u64,
    pub(crate) bytes_zeroed: u64,
}

impl<'a> Writer<'a> {
    /// Begins: whatever table the disk carries is gone before the first byte is written.
    pub(crate) fn begin(disk: &'a WritableDisk, url: &'a str, total: Option<u64>) -> Result<Self, Error> {
        wipe::wipe_ends(disk)?;
        Ok(Self {
            disk,
            url,
            held_back: None,
            chunks: 0,
            zeros: (0, 0),
            sample: Sample::new(total),
            bytes_written: 0,
            bytes_zeroed: 0,
        })
    }

    /// Takes the next chunk: a full one, except for the last. The last sector is padded with zeros.
    pub(crate) fn write(&mut self, mut chunk: Chunk) -> Result<(), Error> {
        let offset = self.chunks * CHUNK as u64;
        let length = chunk.length;
        let padded = length.next_multiple_of(self.disk.sector_size() as usize);
        chunk[length..padded].fill(0);
        chunk.length = padded;
        if offset + padded as u64 > self.disk.size() {
            return Err(self.too_large(offset + length as u64));
        }
        self.sample.add(self.chunks, chunk.filled());
        self.chunks += 1;
        if offset == 0 {
            self.held_back = Some(chunk);
            return Ok(());
        }
        for (start, run) in runs(chunk.filled()) {
            let position = offset + start as u64;
            match run {
                Run::Zeros(length) => self.zero(position, length as u64)?,
                Run::Data(data) => {
                    self.flush_zeros()?;
                    self.disk.write_all_at(data, position)?;
                    self.bytes_written += data.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Puts the first MiB down, now that the rest is proven, and waits for the disk's own cache.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        self.flush_zeros()?;
        self.disk.flush()?;
        let Some(chunk) = self.held_back.take() else {
            return Err(Error::Empty { url: self.url.to_owned() });
        };
        self.disk.write_all_at(chunk.filled(), 0)?;
        self.bytes_written += chunk.length as u64;
        self.disk.flush()?;
        Ok(())
    }

    /// Joins runs of zeros across chunks, so that the disk gets few and large requests.
    fn zero(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        let (start, pending) = self.zeros;
        if start + pending != offset || pending + length > MAX_ZEROS {
            self.flush_zeros()?;
            self.zeros = (offset, 0);
        }
        self.zeros.1 += length;
        Ok(())
    }

    fn flush_zeros(&mut self) -> Result<(), Error> {
        let (offset, length) = std::mem::take(&mut self.zeros);
        if length > 0 {
            self.disk.zero_out(offset, length)?;
            self.bytes_zeroed += length;
        }
        Ok(())
    }

    fn too_large(&self, image_bytes: u64) -> Error {
        Error::TooLarge {
            url: self.url.to_owned(),
            image_bytes,
            disk: self.disk.path().to_owned(),
            disk_bytes: self.disk.size(),
        }
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
