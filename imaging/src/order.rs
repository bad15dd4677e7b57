//! What the writer is told to do.

use crate::buffers::Chunk;
use std::ops::Range;

/// One task of the writer. No two concern the same byte of the target.
pub(crate) enum Order {
    /// Parts of a chunk belong on the target.
    Data { chunk: Chunk, parts: Vec<Part> },
    /// A range of the target becomes zero.
    Zeros { offset: u64, length: u64 },
}

/// A part of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it begins in the chunk; a multiple of the sector size.
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// Where it belongs on the target; a multiple of the sector size.
    pub(crate) offset: u64,
}

impl Part {
    /// Its bytes in the chunk.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.length
    }

    /// Adds a part to others; to the last of them when it goes on where that ends, since a disk takes a few
    /// large writes faster than many small ones.
    pub(crate) fn add_to(self, parts: &mut Vec<Self>) {
        match parts.last_mut() {
            Some(last) if self.follows(last) => last.length += self.length,
            _ => parts.push(self),
        }
    }

    fn follows(&self, other: &Self) -> bool {
        other.range().end == self.start && other.offset + other.length as u64 == self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_joined_only_with_one_that_it_follows_in_both_places() {
        let part = |start, length, offset| Part { start, length, offset };
        for (second, expected) in [
            (part(4096, 512, 12288), vec![part(0, 4608, 8192)]),
            (part(4096, 512, 16384), vec![part(0, 4096, 8192), part(4096, 512, 16384)]),
            (part(8192, 512, 12288), vec![part(0, 4096, 8192), part(8192, 512, 12288)]),
            (part(0, 512, 12288), vec![part(0, 4096, 8192), part(0, 512, 12288)]),
        ] {
            let mut parts = Vec::new();
            part(0, 4096, 8192).add_to(&mut parts);
            second.add_to(&mut parts);
            assert_eq!(parts, expected);
        }
    }
}
