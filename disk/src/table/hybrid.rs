//! Hybrid tables: a GPT whose MBR has further entries beside the protective one, for boot loaders that know no GPT.

use super::first_sector::{self, FIRST_SECTOR, SECTORS, TYPE, entries};
use super::{Partition, read_at};
use crate::error::Error;
use crate::io::Sectors;
use crate::table::types::mbr::PROTECTIVE;

/// Makes sure that an MBR names nothing but what its GPT names.
///
/// # Errors
///
/// [`Error::InvalidTable`] or [`Error::Device`].
pub fn require_agreement(disk: &dyn Sectors, partitions: &[Partition]) -> Result<(), Error> {
    let mut sector = [0; first_sector::SIGNATURE_OFFSET + first_sector::SIGNATURE.len()];
    read_at(disk, 0, &mut sector)?;
    match contradiction(&sector, disk.sector_size(), partitions) {
        None => Ok(()),
        Some(entry) => Err(Error::InvalidTable {
            device: disk.path().to_owned(),
            reason: format!(
                "its MBR and its GPT contradict each other: entry {entry} of the MBR is no partition of the GPT, \
                 so systems would see different ones"
            ),
        }),
    }
}

/// Number of the first entry that is no partition of the GPT. One that begins as a partition and ends in it agrees:
/// partitions grow, and only their GPT is told.
fn contradiction(sector: &[u8], sector_size: u32, partitions: &[Partition]) -> Option<u32> {
    let number = |entry: &[u8], at: usize| {
        let sectors = u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        u64::from(sectors) * u64::from(sector_size)
    };
    let agrees = |entry: &[u8]| {
        let (start, size) = (number(entry, FIRST_SECTOR), number(entry, SECTORS));
        let is_same = |one: &Partition| one.start == start && size <= one.size;
        size == 0 || partitions.iter().any(is_same)
    };
    let mut others = (1..).zip(entries(sector)).filter(|(_, entry)| ![0, PROTECTIVE].contains(&entry[TYPE]));
    others.find(|(_, entry)| !agrees(entry)).map(|(number, _)| number)
}

/// Whether the protective entry of a sector stands alone.
pub fn is_alone(sector: &[u8]) -> bool {
    let used: Vec<_> = entries(sector).map(|entry| entry[TYPE]).collect();
    used == [PROTECTIVE, 0, 0, 0]
}
