//! Recognising ISO 9660 and FAT in memory.

use crate::fat::Fat;
use std::io::Cursor;

/// Where ISO 9660 keeps its first volume descriptor.
const DESCRIPTOR: usize = 32768;
const ISO_MAGIC: &[u8] = b"CD001";

/// Bytes of a drive that tell which of the two it is, if any.
pub const BEGINNING: usize = DESCRIPTOR + 1 + ISO_MAGIC.len();

/// Whether the content is an ISO 9660 file system.
pub fn is_iso9660(content: &[u8]) -> bool {
    content.get(DESCRIPTOR + 1..).is_some_and(|rest| rest.starts_with(ISO_MAGIC))
}

/// Sector size of a FAT file system; nothing when the content is none that Linux reads.
pub fn fat_sector_size(content: &[u8]) -> Option<u32> {
    Fat::open(Cursor::new(content)).ok().map(|fat| fat.sector_size())
}
