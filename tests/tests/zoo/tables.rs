//! Partition tables, byte by byte, so that they can be as wrong as disks have them. None of it is the code under test.

use crate::content::Content;
use std::ops::Range;

const MIB: u64 = 1 << 20;
/// Type of Linux file systems, as the disk has it.
const LINUX: [u8; 16] =
    [0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4];
const ENTRIES: usize = 128;
const ENTRY: usize = 128;

/// A GPT of 128 entries for a disk of `size` bytes.
#[derive(Debug, Clone)]
pub struct Gpt {
    pub sector: u64,
    pub size: u64,
    pub partitions: Vec<Range<u64>>,
}

/// One of the two copies of a GPT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    Primary,
    Backup,
}

impl Gpt {
    /// Writes both copies and the protective MBR.
    pub fn write(&self, content: &mut Content) {
        write_protective(content, self.sector, self.size);
        self.write_copy(content, Copy::Primary);
        self.write_copy(content, Copy::Backup);
    }

    /// Writes one copy.
    pub fn write_copy(&self, content: &mut Content, copy: Copy) {
        let entries = self.entries();
        content.put(self.entries_at(copy), &entries);
        content.put(self.header_at(copy), &self.header(copy, crc32(&entries)));
    }

    /// Where the header of a copy is.
    pub fn header_at(&self, copy: Copy) -> u64 {
        match copy {
            Copy::Primary => self.sector,
            Copy::Backup => self.size - self.sector,
        }
    }

    /// Where its entries are.
    pub fn entries_at(&self, copy: Copy) -> u64 {
        match copy {
            Copy::Primary => 2 * self.sector,
            Copy::Backup => self.size - self.sector - self.entries_length(),
        }
    }

    fn entries_length(&self) -> u64 {
        ((ENTRIES * ENTRY) as u64).next_multiple_of(self.sector)
    }

    fn entries(&self) -> Vec<u8> {
        let mut entries = vec![0; ENTRIES * ENTRY];
        for (number, (entry, range)) in entries.chunks_mut(ENTRY).zip(&self.partitions).enumerate() {
            entry[..16].copy_from_slice(&LINUX);
            entry[16..32].copy_from_slice(&[0x5a + number as u8; 16]);
            entry[32..40].copy_from_slice(&(range.start / self.sector).to_le_bytes());
            entry[40..48].copy_from_slice(&(range.end / self.sector - 1).to_le_bytes());
        }
        entries
    }

    fn header(&self, copy: Copy, entries_crc: u32) -> Vec<u8> {
        let last = self.size / self.sector - 1;
        let array = self.entries_length() / self.sector;
        let (own, other) = match copy {
            Copy::Primary => (1, last),
            Copy::Backup => (last, 1),
        };
        let mut header = vec![0; 92];
        header[..8].copy_from_slice(b"EFI PART");
        header[8..12].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        header[12..16].copy_from_slice(&92_u32.to_le_bytes());
        for (offset, value) in [(24, own), (32, other), (40, 2 + array), (48, last - array - 1)] {
            header[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        }
        header[56..72].fill(0x33);
        header[72..80].copy_from_slice(&(self.entries_at(copy) / self.sector).to_le_bytes());
        header[80..84].copy_from_slice(&(ENTRIES as u32).to_le_bytes());
        header[84..88].copy_from_slice(&(ENTRY as u32).to_le_bytes());
        header[88..92].copy_from_slice(&entries_crc.to_le_bytes());
        let crc = crc32(&header);
        header[16..20].copy_from_slice(&crc.to_le_bytes());
        header
    }
}

/// Flips a bit.
pub fn flip(content: &mut Content, offset: u64) {
    let byte = content.get(offset, 1)[0];
    content.put(offset, &[byte ^ 0x10]);
}

/// Writes the MBR of a GPT: one entry of type 0xEE.
fn write_protective(content: &mut Content, sector: u64, size: u64) {
    let sectors = u32::try_from(size / sector - 1).unwrap_or(u32::MAX);
    write_entries(content, 0, &[(0xee, 1, sectors)]);
}

/// Writes an MBR with these primary partitions over whatever is there.
pub fn write_mbr(content: &mut Content, sector: u64, partitions: &[Range<u64>]) {
    let entries: Vec<_> = partitions.iter().map(|range| entry(0x83, range, 0, sector)).collect();
    write_entries(content, 0, &entries);
}

/// Writes the MBR of a GPT that also names partitions itself.
pub fn write_hybrid(content: &mut Content, sector: u64, partitions: &[Range<u64>]) {
    let mut entries = vec![(0xee, 1, (MIB / sector - 1) as u32)];
    entries.extend(partitions.iter().map(|range| entry(0x83, range, 0, sector)));
    write_entries(content, 0, &entries);
}

/// Writes an MBR with primary partitions and an extended one, which has its logical ones each behind a MiB of its own.
pub fn write_logical(
    content: &mut Content,
    sector: u64,
    primary: &[Range<u64>],
    extended: &Range<u64>,
    logical: &[Range<u64>],
) {
    let mut entries: Vec<_> = primary.iter().map(|range| entry(0x83, range, 0, sector)).collect();
    entries.push(entry(0x0f, extended, 0, sector));
    write_entries(content, 0, &entries);
    let place = |number: usize| if number == 0 { extended.start } else { logical[number].start - MIB };
    for (number, range) in logical.iter().enumerate() {
        let mut entries = vec![entry(0x83, range, place(number), sector)];
        if let Some(next) = logical.get(number + 1) {
            entries.push(entry(0x05, &(place(number + 1)..next.end), extended.start, sector));
        }
        write_entries(content, place(number), &entries);
    }
}

/// Type, first sector as seen from `base`, and number of sectors.
fn entry(kind: u8, range: &Range<u64>, base: u64, sector: u64) -> (u8, u32, u32) {
    (kind, ((range.start - base) / sector) as u32, ((range.end - range.start) / sector) as u32)
}

fn write_entries(content: &mut Content, place: u64, entries: &[(u8, u32, u32)]) {
    let mut table = vec![0; 66];
    for (bytes, (kind, start, count)) in table.chunks_mut(16).zip(entries) {
        bytes[1..8].copy_from_slice(&[0xfe, 0xff, 0xff, *kind, 0xfe, 0xff, 0xff]);
        bytes[8..12].copy_from_slice(&start.to_le_bytes());
        bytes[12..16].copy_from_slice(&count.to_le_bytes());
    }
    table[64..].copy_from_slice(&[0x55, 0xaa]);
    content.put(place + 440, b"zoo!");
    content.put(place + 446, &table);
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
