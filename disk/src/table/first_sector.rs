//! Where things lie in the first sector of a disk with an MBR, or with the one that protects a GPT.

use super::read_exact_at;
use super::types::mbr::PROTECTIVE;
use std::io::{self, Read, Seek};

/// Where the disk identifier is, four bytes.
pub const IDENTIFIER: usize = 440;

/// Where the entries begin.
pub const ENTRIES: usize = 446;
/// How many there are.
pub const ENTRY_COUNT: usize = 4;
/// Bytes of one.
pub const ENTRY_SIZE: usize = 16;

/// Where an entry has the type of its partition.
pub const TYPE: usize = 4;
/// Where it has the partition's first sector, four bytes.
pub const FIRST_SECTOR: usize = 8;
/// Where it has how many sectors there are, four bytes.
pub const SECTORS: usize = 12;

/// The end of a sector that firmware starts.
pub const SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// Where it ends so, whatever the bytes of a sector.
pub const SIGNATURE_OFFSET: usize = 510;

/// Sector at which the entry begins that protects a GPT: that of its header.
const PROTECTED: [u8; 4] = 1_u32.to_le_bytes();

/// Whether the sector says that the table is a GPT, as Linux and EDK2 want it: signed, and with an entry of type EE
/// from sector 1 on, alone or beside others.
pub fn announces_gpt(sector: &[u8]) -> bool {
    is_signed(sector)
        && entries(sector).any(|entry| entry[TYPE] == PROTECTIVE && entry[FIRST_SECTOR..SECTORS] == PROTECTED)
}

/// Whether the sector ends like one that firmware starts.
pub fn is_signed(sector: &[u8]) -> bool {
    sector.get(SIGNATURE_OFFSET..SIGNATURE_OFFSET + SIGNATURE.len()) == Some(&SIGNATURE)
}

/// The bytes of the first sector that hold a table, of anything of `size` bytes; nothing of a smaller one.
pub(super) fn read(source: &mut (impl Read + Seek), size: u64) -> io::Result<Vec<u8>> {
    let mut sector = vec![0; SIGNATURE_OFFSET + SIGNATURE.len()];
    if size < sector.len() as u64 {
        return Ok(Vec::new());
    }
    read_exact_at(source, 0, &mut sector)?;
    Ok(sector)
}

/// The entries of a sector; none of one that is too short.
pub fn entries(sector: &[u8]) -> impl Iterator<Item = &[u8]> {
    let entries = sector.get(ENTRIES..ENTRIES + ENTRY_COUNT * ENTRY_SIZE).unwrap_or_default();
    entries.chunks_exact(ENTRY_SIZE)
}
