//! Zeroing ranges of a disk (write zeroes, discard, TRIM) with as little transferred as the disk allows.
//!
//! Success is what the disk promises or keeps, not what it shows at the moment: a block that was discarded may
//! read as zeros now and as old data later.

use crate::error::Error;
use crate::io::Sectors;
use farrier_linux::aligned::AlignedBuffer;

/// Bytes that are looked at in one piece.
const PIECE: u64 = 1 << 20;

/// Bytes that a disk gets in one command: some that drop all they have at once fail for want of power (P16).
const COMMAND: u64 = 1 << 30;

/// How zeros come to a disk where it has no command that ends in them by its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// It drops blocks and promises that those read as zeros. What reads otherwise afterwards is written.
    Discard,
    /// It drops nothing, so what it shows it keeps: what is zero already is not written again.
    Look,
    /// It drops blocks, now or for somebody before, and what those show may change.
    Write,
}

/// Makes ranges of one disk zero, one after the other.
#[derive(Debug, Default)]
pub struct Zeroing {
    means: Option<Means>,
    /// For disks that have to be looked at.
    buffer: Option<AlignedBuffer>,
}

impl Zeroing {
    /// Makes `length` bytes from `offset` zero and returns how many of them had to be transferred.
    ///
    /// A disk with a command for it gets that command. One that promises that discarded blocks read as zeros
    /// may drop what it has (F08). Any other gets zeros, but for those that one without a discard has already.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn make(&mut self, disk: &dyn Sectors, offset: u64, length: u64) -> Result<u64, Error> {
        let mut transferred = 0;
        for (offset, length) in pieces(offset, length, COMMAND) {
            if !disk.zero_by_command(offset, length)? {
                transferred += self.make_without_command(disk, offset, length)?;
            }
        }
        Ok(transferred)
    }

    /// As [`Zeroing::make`], for a disk without a command that ends in zeros.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn make_without_command(
        &mut self,
        disk: &dyn Sectors,
        offset: u64,
        length: u64,
    ) -> Result<u64, Error> {
        let means =
            *self.means.get_or_insert_with(|| Means::of(disk.discards(), || disk.keeps_discarded_zero()));
        match means {
            Means::Discard => {
                let is_discarded = disk.discard(offset, length)?;
                self.fill_up(disk, offset, length, is_discarded)
            }
            Means::Look => self.fill_up(disk, offset, length, false),
            Means::Write => disk.zero_out(offset, length).map(|()| length),
        }
    }

    /// Writes zeros over what is none, and tells how many. After a discard that is a piece here and there;
    /// otherwise old content goes on for long, and reading on would only take time.
    fn fill_up(
        &mut self,
        disk: &dyn Sectors,
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
            let is_zero = is_zero(found);
            let count = if is_zero || is_discarded { piece } else { end - position };
            if !is_zero {
                disk.zero_out(position, count)?;
                transferred += count;
            }
            position += count;
        }
        Ok(transferred)
    }
}

impl Means {
    /// By whether the disk discards, and what it promises then.
    fn of(discards: bool, keeps_discarded_zero: impl FnOnce() -> bool) -> Self {
        match discards {
            false => Self::Look,
            true if keeps_discarded_zero() => Self::Discard,
            true => Self::Write,
        }
    }
}

/// A range in pieces of at most `most` bytes, each an offset and a length.
fn pieces(offset: u64, length: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..length.div_ceil(most)).map(move |index| (offset + index * most, most.min(length - index * most)))
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
    fn x05_f08_only_a_promise_lets_a_discard_stand_for_zeros() {
        for (discards, promises, expected) in
            [(true, true, Means::Discard), (true, false, Means::Write), (false, false, Means::Look)]
        {
            assert_eq!(Means::of(discards, || promises), expected, "{discards} {promises}");
        }
        assert_eq!(Means::of(false, || panic!("nobody asks")), Means::Look);
    }

    #[test]
    fn p16_no_command_is_for_more_than_its_share() {
        for (offset, length) in [(0, 0), (512, 1), (0, COMMAND), (4096, COMMAND + 1), (7, 5 * COMMAND - 512)]
        {
            let mut end = offset;
            for (start, piece) in pieces(offset, length, COMMAND) {
                assert!(start == end && piece > 0 && piece <= COMMAND, "{offset} {length}");
                end = start + piece;
            }
            assert_eq!(end, offset + length);
        }
    }

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
