//! Making ranges of a disk zero with as little transferred as the disk allows.
//!
//! Success is what the disk shows, not what it was asked for: a disk without a command that ends in zeros
//! by its definition is read.

use crate::error::Error;
use crate::guard::WritableDisk;
use farrier_linux::aligned::AlignedBuffer;

/// Bytes that are looked at in one piece.
const PIECE: u64 = 1 << 20;

/// Makes ranges zero, one after the other.
#[derive(Debug, Default)]
pub struct Zeroing {
    /// For disks that have to be looked at.
    buffer: Option<AlignedBuffer>,
}

impl Zeroing {
    /// Makes `length` bytes from `offset` zero and tells how many of them had to be transferred.
    ///
    /// A disk with a command for it gets that command. From any other, zeros that are there already are
    /// not written again, once it was told that it may drop what it has: disks that discard mostly show
    /// zeros afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn make(&mut self, disk: &WritableDisk, offset: u64, length: u64) -> Result<u64, Error> {
        if disk.zero_by_command(offset, length)? {
            return Ok(0);
        }
        let is_discarded = disk.discard(offset, length)?;
        self.fill_up(disk, offset, length, is_discarded)
    }

    /// Writes zeros over what is none, and tells how many. After a discard that is a piece here and there;
    /// otherwise old content goes on for long, and reading on would only take time.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn fill_up(
        &mut self,
        disk: &WritableDisk,
        offset: u64,
        length: u64,
        is_discarded: bool,
    ) -> Result<u64, Error> {
        let buffer = self.buffer.get_or_insert_with(|| AlignedBuffer::zeroed(PIECE as usize));
        let end = offset + length;
        let mut transferred = 0;
        let mut position = offset;
        while position < end {
            let piece = PIECE.min(end - position);
            let found = &mut buffer[..piece as usize];
            disk.read_exact_at(found, position)?;
            let is_done = is_zero(found);
            let count = if is_done || is_discarded { piece } else { end - position };
            if !is_done {
                disk.zero_out(position, count)?;
                transferred += count;
            }
            position += count;
        }
        Ok(transferred)
    }
}

/// Whether there is nothing but zeros.
#[inline]
pub fn is_zero(bytes: &[u8]) -> bool {
    // Words are compared several times faster than bytes.
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_anywhere_is_seen() {
        for length in [0, 1, 7, 8, 9, 64, 67] {
            let mut bytes = vec![0; length];
            assert!(is_zero(&bytes));
            for place in 0..length {
                bytes[place] = 1;
                assert!(!is_zero(&bytes), "{place} of {length}");
                bytes[place] = 0;
            }
        }
    }
}
