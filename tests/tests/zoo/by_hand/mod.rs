//! What no program of Debian 12 writes without the kernel's help, from its documented format.

pub mod firmware_raid;
pub mod md;
pub mod pools;

use crate::content::Content;

/// Bytes at one place.
pub fn bytes_at(offset: u64, bytes: &[u8]) -> Content {
    let mut content = Content::default();
    content.put(offset, bytes);
    content
}

/// The sum of its words of 32 bits.
fn sum_of_words(bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(4)
        .map(|word| u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]])))
        .sum()
}
