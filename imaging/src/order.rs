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
}
