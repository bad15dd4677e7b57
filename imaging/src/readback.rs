//! Verifying the image on the disk: reading back what was written.
//!
//! Digests of what is written are remembered, and of what was made zero the place. A sample is evenly
//! spaced and small however long the image is; the ends, which are written last, are always in it as a
//! whole. Without sampling everything is compared.

use crate::CHUNK;
use crate::cancel::CancelHandle;
use crate::error::Error;
use crate::progress::ProgressHandle;
use crate::target::Target;
use farrier_disk::io::zero::is_zero;
use farrier_linux::aligned::AlignedBuffer;
use farrier_protocol::progress::Phase;
use sha2::{Digest, Sha256};

/// Pieces of a sample at most.
const SAMPLE: usize = 64;
/// Bytes of such a piece at most; a multiple of every sector size.
const PIECE: usize = 128 << 10;
/// Pieces remembered at most when everything is compared; more are compared while writing goes on.
const EVERYTHING: usize = 128 * 1024;

/// How much is read back (`farrier-verify`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verify {
    /// Everything.
    On,
    /// Some, up to 8 MiB, and both ends.
    #[default]
    Sample,
    /// Nothing.
    Off,
}

impl Verify {
    const ALL: [Self; 3] = [Self::On, Self::Sample, Self::Off];

    /// Reads the value of the parameter; nothing when it is none of `on`, `sample` and `off`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == text)
    }

    /// Value of the parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Sample => "sample",
            Self::Off => "off",
        }
    }
}

/// What there is to compare.
#[derive(Debug)]
pub(crate) struct Readback {
    verify: Verify,
    /// Of a sample, every so many pieces is remembered.
    stride: u64,
    seen: u64,
    /// Whether everything is remembered from here on.
    is_ending: bool,
    pieces: Vec<Piece>,
    pub(crate) bytes_verified: u64,
}

#[derive(Debug, Clone)]
struct Piece {
    number: u64,
    offset: u64,
    length: u64,
    /// Digest of the data; nothing for zeros.
    digest: Option<[u8; 32]>,
}

impl Readback {
    /// Nothing to compare yet, for an image of so many bytes, where that is known.
    pub(crate) fn new(verify: Verify, total: Option<u64>) -> Self {
        let chunks = total.unwrap_or_default().div_ceil(CHUNK as u64);
        let stride = match verify {
            Verify::Sample => chunks.div_ceil(SAMPLE as u64).next_power_of_two(),
            Verify::On | Verify::Off => 1,
        };
        Self { verify, stride, seen: 0, is_ending: false, pieces: Vec::new(), bytes_verified: 0 }
    }

    /// Remembers data that was written, at most one chunk.
    pub(crate) fn add_data(&mut self, offset: u64, data: &[u8]) {
        let data = &data[..self.looked_at(data.len() as u64) as usize];
        self.add(offset, data.len() as u64, || Some(Sha256::digest(data).into()));
    }

    /// Remembers a range that was made zero.
    pub(crate) fn add_zeros(&mut self, offset: u64, length: u64) {
        self.add(offset, self.looked_at(length), || None);
    }

    /// How many of so many bytes are compared if they are.
    fn looked_at(&self, length: u64) -> u64 {
        match self.verify {
            Verify::On => length,
            _ if self.is_ending => length,
            Verify::Sample | Verify::Off => length.min(PIECE as u64),
        }
    }

    fn add(&mut self, offset: u64, length: u64, digest: impl FnOnce() -> Option<[u8; 32]>) {
        let number = self.seen;
        self.seen += 1;
        let is_chosen = self.is_ending || number.is_multiple_of(self.stride);
        if self.verify == Verify::Off || !is_chosen {
            return;
        }
        self.pieces.push(Piece { number, offset, length, digest: digest() });
        if self.verify == Verify::Sample && !self.is_ending && self.pieces.len() > SAMPLE {
            self.stride *= 2;
            let stride = self.stride;
            self.pieces.retain(|piece| piece.number.is_multiple_of(stride));
        }
    }

    /// From here on everything is remembered: what is written last counts most.
    pub(crate) fn keep_all(&mut self) {
        self.is_ending = true;
    }

    /// Whether no more can be remembered, so that it is time to compare.
    pub(crate) fn is_full(&self) -> bool {
        self.pieces.len() >= EVERYTHING
    }

    /// Reads back what is remembered, compares, and forgets it.
    pub(crate) fn verify(
        &mut self,
        target: &Target<'_>,
        progress: &ProgressHandle,
        cancel: &CancelHandle,
        url: &str,
    ) -> Result<(), Error> {
        let pieces = std::mem::take(&mut self.pieces);
        progress.enter(Phase::Verifying, Some(pieces.iter().map(|piece| piece.length).sum()));
        let mut buffer = AlignedBuffer::zeroed(CHUNK);
        let before = self.bytes_verified;
        for piece in &pieces {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled { url: url.to_owned() });
            }
            compare(piece, target, &mut buffer)?;
            self.bytes_verified += piece.length;
            progress.set_bytes(self.bytes_verified - before);
        }
        Ok(())
    }
}

fn compare(piece: &Piece, target: &Target<'_>, buffer: &mut AlignedBuffer) -> Result<(), Error> {
    let end = piece.offset + piece.length;
    for offset in (piece.offset..end).step_by(CHUNK) {
        let data = &mut buffer[..CHUNK.min((end - offset) as usize)];
        target.sectors().read_exact_at(data, offset)?;
        let is_same = match piece.digest {
            Some(digest) => <[u8; 32]>::from(Sha256::digest(&*data)) == digest,
            None => is_zero(data),
        };
        if !is_same {
            return Err(Error::ReadBack { disk: target.path().to_owned(), offset });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_support::TestDisk;
    use farrier_disk::Sectors;

    #[test]
    fn samples_are_evenly_spaced_and_bounded() {
        for (total, announced) in [(1_u64, None), (64, None), (65, None), (300, None), (300, Some(300 << 20))]
        {
            let mut sample = Readback::new(Verify::Sample, announced);
            (0..total).for_each(|number| sample.add_data(number, &[7; 512]));
            let numbers: Vec<_> = sample.pieces.iter().map(|piece| piece.number).collect();
            assert!(numbers.len() <= SAMPLE, "{total}: {}", numbers.len());
            assert_eq!(numbers[0], 0);
            assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] == sample.stride), "{numbers:?}");
            assert!(numbers.last().unwrap() + sample.stride >= total);
        }
    }

    #[test]
    fn the_parameter_has_three_values() {
        for (text, expected) in [
            ("on", Some(Verify::On)),
            ("sample", Some(Verify::Sample)),
            ("off", Some(Verify::Off)),
            ("", None),
        ] {
            assert_eq!(Verify::parse(text), expected);
        }
    }

    #[test]
    fn loop_a_disk_that_returns_other_data_is_found_out() {
        let disk = TestDisk::new(4 * CHUNK as u64, 512);
        let target = Target::whole(disk.disk());
        let (progress, cancel) = (ProgressHandle::default(), CancelHandle::default());
        let mut buffer = AlignedBuffer::zeroed(CHUNK);
        buffer.fill(7);
        let spoiled = |length: u64, data: &[u8]| {
            let mut readback = Readback::new(Verify::On, None);
            for number in 0..3 {
                disk.disk().write_all_at(&buffer, number * CHUNK as u64).unwrap();
                readback.add_data(number * CHUNK as u64, &buffer);
            }
            disk.disk().zero_out(3 * CHUNK as u64, CHUNK as u64).unwrap();
            readback.add_zeros(3 * CHUNK as u64, CHUNK as u64);
            disk.disk().write_all_at(data, length).unwrap();
            readback.verify(&target, &progress, &cancel, "http://x").map(|()| readback.bytes_verified)
        };
        assert_eq!(spoiled(0, &buffer).unwrap(), 4 * CHUNK as u64);
        let zeros = AlignedBuffer::zeroed(4096);
        for (place, data) in [(2 * CHUNK as u64, &zeros), (3 * CHUNK as u64, &buffer)] {
            let error = spoiled(place, &data[..4096]).unwrap_err();
            assert!(matches!(error, Error::ReadBack { offset, .. } if offset == place), "{error}");
            assert!(error.to_string().contains("/dev/loop"), "{error}");
        }
    }
}
