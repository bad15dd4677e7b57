//! Where the header of a GPT has what (UEFI 2.10, table 5.5).

use std::ops::Range;

/// How a header begins.
pub const MARK: &[u8] = b"EFI PART";
/// Fewest bytes of a header.
pub const SMALLEST: u32 = 92;

/// Bytes of the header that its checksum covers.
pub const SIZE: Range<usize> = 12..16;
/// The checksum of the header, counted as zeros in it.
pub const CRC: Range<usize> = 16..20;
/// The sector of this header, and that of the other copy.
pub const OWN_LBA: Range<usize> = 24..32;
/// See [`OWN_LBA`].
pub const OTHER_LBA: Range<usize> = 32..40;
/// The first sector that a partition may use, and the last one.
pub const FIRST_USABLE: Range<usize> = 40..48;
/// See [`FIRST_USABLE`].
pub const LAST_USABLE: Range<usize> = 48..56;
/// The first sector of the array of entries, how many there are, the bytes of each, and the checksum of all.
pub const ENTRIES_LBA: Range<usize> = 72..80;
/// See [`ENTRIES_LBA`].
pub const ENTRY_COUNT: Range<usize> = 80..84;
/// See [`ENTRIES_LBA`].
pub const ENTRY_SIZE: Range<usize> = 84..88;
/// See [`ENTRIES_LBA`].
pub const ENTRIES_CRC: Range<usize> = 88..92;
