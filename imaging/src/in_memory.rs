//! What judges and unpacks images, for fuzz targets, which have them in memory.

use crate::compression::{self, Compression};
use crate::format::{self, Declared, Format, Policy};
use std::io::{self, Read};

/// Unpacks what is compressed, at most `limit` bytes of it; nothing when no compression is recognised.
///
/// # Errors
///
/// It is damaged, or needs too much memory.
pub fn unpack(packed: &[u8], limit: u64) -> Option<io::Result<Vec<u8>>> {
    let mut content = Vec::new();
    let decoder = Compression::recognize(packed)?.decoder(compression::memory(), packed);
    Some(decoder.and_then(|decoder| decoder.take(limit).read_to_end(&mut content)).map(|_| content))
}

/// What an image that begins like this would be written as; nothing when it is refused.
pub fn judge(start: &[u8], declared: Declared, policy: &Policy) -> Option<Format> {
    format::judge(start, declared, policy, "http://image").ok()
}
