//! Entry arrays of GPTs, whatever became of the header that belongs to them.

use crate::table::gpt_field::MARK;
use crate::table::{Partition, PartitionKind};
use std::ops::Range;
use uuid::Uuid;

/// Smallest size of an entry; others are powers of two times this (UEFI 2.10, table 5.5).
pub const SMALLEST_ENTRY: u32 = 128;
/// Largest size of an entry, and most bytes of an array, that are examined.
pub const LARGEST_ENTRY: u32 = 4096;
pub const MOST_BYTES: u64 = 1 << 20;
/// Bytes of the array that nearly every table has.
pub const USUAL_BYTES: u64 = 128 * 128;

const TYPE: Range<usize> = 0..16;
const IDENTITY: Range<usize> = 16..32;
const FIRST: Range<usize> = 32..40;
const LAST: Range<usize> = 40..48;

/// Where an array lies, and how its entries are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// First byte on the disk.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Bytes of an entry.
    pub entry_size: u32,
    /// Bytes of the sectors in which entries count.
    pub sector_size: u32,
}

impl Array {
    /// Where it lies.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.length)
    }

    /// The partitions that its bytes name, as far as they lie on a disk of `size` bytes; entries that lead nowhere are
    /// left out.
    pub fn partitions(&self, bytes: &[u8], size: u64) -> Vec<Partition> {
        let entries = (1..).zip(bytes.chunks_exact(self.entry_size as usize));
        entries.filter_map(|(number, entry)| self.partition(number, entry, size)).collect()
    }

    fn partition(&self, number: u32, entry: &[u8], size: u64) -> Option<Partition> {
        // Where an array is looked for in the wrong place.
        if entry.starts_with(MARK) {
            return None;
        }
        let type_guid = Uuid::from_slice_le(entry.get(TYPE)?).ok().filter(|guid| !guid.is_nil())?;
        let guid = Uuid::from_slice_le(entry.get(IDENTITY)?).ok()?;
        let unit = u64::from(self.sector_size);
        let first = number_at(entry, FIRST)?.checked_mul(unit)?;
        let end = number_at(entry, LAST)?.checked_add(1)?.saturating_mul(unit).min(size);
        let kind = PartitionKind::Gpt { type_guid, guid };
        (first > 0 && first < end).then(|| Partition { number, start: first, size: end - first, kind })
    }
}

/// The number in these eight bytes.
pub fn number_at(bytes: &[u8], field: Range<usize>) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(field)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g06_a_header_in_the_place_of_an_entry_names_nothing() {
        let mut bytes = vec![0; SMALLEST_ENTRY as usize];
        bytes[..16].fill(7);
        bytes[FIRST].copy_from_slice(&1_u64.to_le_bytes());
        bytes[LAST].copy_from_slice(&6_u64.to_le_bytes());
        let array = Array { start: 1024, length: USUAL_BYTES, entry_size: SMALLEST_ENTRY, sector_size: 512 };
        assert_eq!(array.partitions(&bytes, 1 << 20).len(), 1);
        bytes[..8].copy_from_slice(MARK);
        assert_eq!(array.partitions(&bytes, 1 << 20), []);
    }
}
