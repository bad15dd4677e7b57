//! Reading back a sample of what was written.
//!
//! The digests of some chunks are remembered as they are written: evenly spaced ones, never more
//! than a fixed number however long the image is, and always the first and the last.

use crate::CHUNK;
use crate::cancel::CancelHandle;
use crate::error::Error;
use crate::progress::ProgressHandle;
use farrier_disk::WritableDisk;
use farrier_linux::aligned::AlignedBuffer;
use farrier_protocol::progress::Phase;
use sha2::{Digest, Sha256};

/// Chunks remembered at most, the last one not counted.
const LIMIT: usize = 64;

/// Digests of some chunks.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Only chunks whose number is a multiple of this are remembered.
    stride: u64,
    chunks: Vec<Chunk>,
    last: Option<Chunk>,
}

#[derive(Debug, Clone)]
struct Chunk {
    number: u64,
    length: usize,
    digest: [u8; 32],
}

impl Sample {
    /// An empty sample for an image of so many bytes, where that is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        let chunks = total.unwrap_or_default().div_ceil(CHUNK as u64);
        let stride = chunks.div_ceil(LIMIT as u64).next_power_of_two();
        Self { stride, chunks: Vec::with_capacity(LIMIT + 1), last: None }
    }

    /// Remembers a chunk, given in order of its number, if it belongs to the sample. The length is
    /// that on the disk.
    pub(crate) fn add(&mut self, number: u64, data: &[u8]) {
        // A full chunk may be followed by another; only a short one is surely the last.
        let is_last = data.len() < CHUNK;
        if !is_last && !number.is_multiple_of(self.stride) {
            return;
        }
        let chunk = Chunk { number, length: data.len(), digest: Sha256::digest(data).into() };
        if is_last {
            self.last = Some(chunk);
            return;
        }
        self.chunks.push(chunk);
        if self.chunks.len() > LIMIT {
            self.stride *= 2;
            let stride = self.stride;
            self.chunks.retain(|chunk| chunk.number.is_multiple_of(stride));
        }
    }

    /// Reads the sample back and compares. Returns the bytes that were compared.
    pub(crate) fn verify(
        &self,
        disk: &WritableDisk,
        progress: &ProgressHandle,
        cancel: &CancelHandle,
        url: &str,
    ) -> Result<u64, Error> {
        let chunks = || self.chunks.iter().chain(&self.last);
        progress.enter(Phase::Verifying, Some(chunks().map(|chunk| chunk.length as u64).sum()));
        let mut buffer = AlignedBuffer::zeroed(CHUNK);
        let mut verified = 0;
        for chunk in chunks() {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled { url: url.to_owned() });
            }
            let offset = chunk.number * CHUNK as u64;
            let data = &mut buffer[..chunk.length];
            disk.read_exact_at(data, offset)?;
            if <[u8; 32]>::from(Sha256::digest(&*data)) != chunk.digest {
                return Err(Error::ReadBack { disk: disk.path().to_owned(), offset });
            }
            verified += chunk.length as u64;
            progress.set_bytes(verified);
        }
        Ok(verified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_evenly_spaced_and_bounded() {
        let chunk = vec![7; CHUNK];
        for (total, announced) in [(1_u64, None), (64, None), (65, None), (300, None), (300, Some(300 << 20))]
        {
            let mut sample = Sample::new(announced);
            (0..total).for_each(|number| sample.add(number, &chunk));
            let numbers: Vec<_> = sample.chunks.iter().map(|chunk| chunk.number).collect();
            assert!(numbers.len() <= LIMIT, "{total}: {}", numbers.len());
            assert_eq!(numbers[0], 0);
            assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] == sample.stride), "{numbers:?}");
            assert!(numbers.last().unwrap() + sample.stride >= total);
        }
    }

    #[test]
    fn a_short_last_chunk_is_always_in_the_sample() {
        let mut sample = Sample::new(None);
        (0..101).for_each(|number| sample.add(number, &vec![0; CHUNK]));
        sample.add(101, &[1; 512]);
        assert_eq!(sample.last.unwrap().length, 512);
    }

    #[test]
    fn loop_a_disk_that_returns_other_data_is_found_out() {
        let disk = crate::disk_support::TestDisk::new(4 * CHUNK as u64, 512);
        let (progress, cancel) = (ProgressHandle::default(), CancelHandle::default());
        let mut buffer = AlignedBuffer::zeroed(CHUNK);
        buffer.fill(7);
        let mut sample = Sample::new(None);
        for number in 0..3 {
            disk.disk().write_all_at(&buffer, number * CHUNK as u64).unwrap();
            sample.add(number, &buffer);
        }
        let verify = || sample.verify(disk.disk(), &progress, &cancel, "http://x");
        assert_eq!(verify().unwrap(), 3 * CHUNK as u64);
        disk.disk().zero_out(2 * CHUNK as u64 + 4096, 4096).unwrap();
        let error = verify().unwrap_err();
        assert!(matches!(error, Error::ReadBack { offset, .. } if offset == 2 * CHUNK as u64), "{error}");
        assert!(error.to_string().contains("/dev/loop"), "{error}");
    }
}
