//! Proving that a disk was erased.
//!
//! A sample of a disk that is mostly empty says nothing: there was nothing to find before. So random
//! markers are written to places all over the disk first, and none may be left afterwards.

use super::error::EraseError;
use super::medium::Medium;
use farrier_linux::aligned::AlignedBuffer;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

/// How many places are looked at.
const SAMPLES: u64 = 64;
/// Bytes of each, or one sector where that is more.
const SAMPLE_BYTES: u64 = 4096;
/// The smallest piece of a marker that counts as a survivor.
const PIECE_BYTES: usize = 512;

/// What a disk must read as once it is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Anything but what it held.
    Changed,
    /// Zeros, everywhere.
    Zero,
}

/// Markers on a disk.
#[derive(Debug)]
pub struct Proof {
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    offset: u64,
    marker: AlignedBuffer,
}

impl Proof {
    /// Writes markers to the first and the last sectors and to random places in between, and sees
    /// that the disk holds them.
    ///
    /// # Errors
    ///
    /// [`EraseError::Disk`], or [`EraseError::NotKept`] when it does not.
    pub fn plant(medium: &dyn Medium) -> Result<Self, EraseError> {
        let mut random = StdRng::from_os_rng();
        let length = sample_bytes(medium);
        let samples = offsets(medium, &mut random).into_iter().map(|offset| {
            let mut marker = AlignedBuffer::zeroed(length as usize);
            random.fill_bytes(&mut marker);
            Sample { offset, marker }
        });
        let proof = Self { samples: samples.collect() };
        for sample in &proof.samples {
            medium.write(&sample.marker, sample.offset)?;
        }
        medium.flush()?;
        let mut found = AlignedBuffer::zeroed(length as usize);
        for sample in &proof.samples {
            medium.read(&mut found, sample.offset)?;
            if found[..] != sample.marker[..] {
                return Err(EraseError::NotKept { offset: sample.offset });
            }
        }
        Ok(proof)
    }

    /// Looks at the same places again, and for zeros at others too. Returns how many it looked at.
    ///
    /// # Errors
    ///
    /// [`EraseError::StillThere`], or [`EraseError::Disk`] when a place cannot be read: what cannot be
    /// read is not proven.
    pub fn verify(&self, medium: &dyn Medium, expectation: Expectation) -> Result<usize, EraseError> {
        let mut found = AlignedBuffer::zeroed(sample_bytes(medium) as usize);
        for sample in &self.samples {
            medium.read(&mut found, sample.offset)?;
            let survives = match expectation {
                Expectation::Changed => has_survivor(&found, &sample.marker),
                Expectation::Zero => found.iter().any(|byte| *byte != 0),
            };
            if survives {
                return Err(EraseError::StillThere { offset: sample.offset });
            }
        }
        if expectation == Expectation::Changed {
            return Ok(self.samples.len());
        }
        let others = offsets(medium, &mut StdRng::from_os_rng());
        for offset in &others {
            medium.read(&mut found, *offset)?;
            if found.iter().any(|byte| *byte != 0) {
                return Err(EraseError::StillThere { offset: *offset });
            }
        }
        Ok(self.samples.len() + others.len())
    }
}

fn has_survivor(found: &[u8], marker: &[u8]) -> bool {
    found.chunks(PIECE_BYTES).zip(marker.chunks(PIECE_BYTES)).any(|(found, marker)| found == marker)
}

/// Offsets of samples, one in each of equal parts of the disk; the first and the last are fixed.
fn offsets(medium: &dyn Medium, random: &mut StdRng) -> Vec<u64> {
    let length = sample_bytes(medium);
    let blocks = medium.size() / length;
    let Some(last) = blocks.checked_sub(1) else { return Vec::new() };
    let parts = SAMPLES.min(blocks);
    let mut offsets: Vec<_> = (0..parts)
        .map(|part| random.random_range(part * blocks / parts..(part + 1) * blocks / parts) * length)
        .collect();
    offsets[0] = 0;
    offsets[parts as usize - 1] = last * length;
    offsets
}

/// A disk smaller than a sample has one of a sector.
fn sample_bytes(medium: &dyn Medium) -> u64 {
    let sector = u64::from(medium.sector_size());
    if medium.size() < SAMPLE_BYTES { sector } else { SAMPLE_BYTES.max(sector) }
}
