//! MBR partition tables.
//!
//! Whatever an image brought may be in them: numbers are added without overflow, and chains end. An
//! added partition is written as its 16 bytes and nothing else, so that boot code and disk identifier
//! stay as they are (D15).

use super::gpt::place_at_end;
use super::{Geometry, NewPartition, ParseError, Partition, PartitionKind, read_at, read_exact_at};
use crate::error::Error;
use crate::io::WritableDisk;
use crate::io::view::DiskView;
use std::io::{Read, Seek, SeekFrom, Write};
use uuid::Uuid;

const BOOT_SIGNATURE: [u8; 2] = [0x55, 0xaa];
const IDENTIFIER_OFFSET: usize = 440;
const ENTRIES_OFFSET: usize = 446;
const ENTRY_SIZE: usize = 16;
const PRIMARIES: usize = 4;

/// Flag of the partition to boot from.
const BOOTED: u8 = 0x80;

/// Type that announces a GPT.
const PROTECTIVE_TYPE: u8 = 0xee;

/// Types of a partition that holds logical ones.
const EXTENDED_TYPES: [u8; 3] = [0x05, 0x0f, 0x85];

/// So many logical partitions are looked for; the kernel finds fewer.
const MAX_LOGICAL: usize = 256;

/// Type of a FAT32 partition with LBA addresses, as parted gives to `fat32`.
const FAT32_LBA_TYPE: u8 = 0x0c;

/// Types of FAT partitions.
const FAT_TYPES: [u8; 6] = [0x01, 0x04, 0x06, 0x0b, 0x0c, 0x0e];

/// End of what 32-bit sector numbers of 512 bytes reach, and so of every MBR partition (section 6.5).
const ADDRESSABLE: u64 = 2 << 40;

/// Cylinder, head and sector of a place that only LBA reaches.
const CHS_BEYOND: [u8; 3] = [0xfe, 0xff, 0xff];

/// A valid MBR with at least one partition.
#[derive(Debug)]
pub struct Mbr {
    partitions: Vec<Partition>,
    disk_identifier: u32,
    /// Number of the partition to boot from.
    booted: Option<u32>,
}

impl Mbr {
    /// Reads the table; nothing when the first sector holds no partitions.
    ///
    /// # Errors
    ///
    /// [`ParseError`].
    pub fn parse(source: &mut (impl Read + Seek), geometry: Geometry) -> Result<Option<Self>, ParseError> {
        let mut sector = [0; 512];
        if geometry.size < sector.len() as u64 {
            return Ok(None);
        }
        read_exact_at(source, 0, &mut sector)?;
        if !holds_partitions(&sector) {
            return Ok(None);
        }
        let [.., a, b, c, d] = sector[..IDENTIFIER_OFFSET + 4] else { return Ok(None) };
        let disk_identifier = u32::from_le_bytes([a, b, c, d]);
        let mut entries: Vec<_> = (1..).zip(Entry::of_sector(&sector)).collect();
        if let Some((_, extended)) = entries.iter().find(|(_, entry)| entry.is_extended()) {
            let logical = logical_entries(source, geometry, extended.start)?;
            entries.extend((PRIMARIES as u32 + 1..).zip(logical));
        }
        let booted = entries.iter().find(|(_, entry)| entry.is_booted).map(|(number, _)| *number);
        let used = entries.into_iter().filter(|(_, entry)| entry.type_id != 0);
        let partitions = used.map(|(number, entry)| entry.partition(number, geometry, disk_identifier));
        Ok(Some(Self { partitions: partitions.collect::<Result<_, _>>()?, disk_identifier, booted }))
    }

    /// The partition to boot from, if it is one for FAT.
    pub fn booted_fat(&self) -> Option<&Partition> {
        let is_fat = |kind: &PartitionKind| matches!(kind, PartitionKind::Mbr { type_id, .. } if FAT_TYPES.contains(type_id));
        self.partitions.iter().find(|one| Some(one.number) == self.booted && is_fat(&one.kind))
    }

    /// The partitions, by number; logical ones from 5 on.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// Adds a primary partition of `size` bytes at the end of the disk, or below 2 TiB.
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`] or [`Error::Device`].
    pub fn add_at_end(&mut self, disk: &WritableDisk, size: u64) -> Result<Partition, Error> {
        let no_place =
            |reason: String| Error::NoPlaceForConfigDrive { device: disk.path().to_owned(), reason };
        let is_free = |number: &u32| self.partitions.iter().all(|partition| partition.number != *number);
        let number = (1..=PRIMARIES as u32).find(is_free).ok_or_else(|| {
            no_place("the MBR has four primary partitions; use an image with at most three".to_owned())
        })?;
        let sector_size = u64::from(disk.sector_size());
        let usable = sector_size..disk.size().min(ADDRESSABLE);
        let start = place_at_end(usable, size, &self.partitions).map_err(no_place)?;
        let entry = entry_bytes(FAT32_LBA_TYPE, start / sector_size, size / sector_size);
        let offset = ENTRIES_OFFSET + (number as usize - 1) * ENTRY_SIZE;
        let mut view = DiskView::whole(disk);
        view.seek(SeekFrom::Start(offset as u64))
            .and_then(|_| view.write_all(&entry))
            .and_then(|()| view.flush())
            .map_err(|source| Error::Device {
                device: disk.path().to_owned(),
                action: "writing its MBR".to_owned(),
                source,
            })?;
        let kind = PartitionKind::Mbr { type_id: FAT32_LBA_TYPE, disk_identifier: self.disk_identifier };
        Ok(Partition { number, start, size, kind })
    }
}

/// What 16 bytes of a table say; start and length in sectors.
struct Entry {
    is_booted: bool,
    type_id: u8,
    start: u64,
    sectors: u64,
}

impl Entry {
    fn of_sector(sector: &[u8; 512]) -> impl Iterator<Item = Self> {
        sector[ENTRIES_OFFSET..].chunks_exact(ENTRY_SIZE).take(PRIMARIES).map(|entry| {
            let number = |bytes: &[u8]| bytes.iter().rfold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let is_booted = entry[0] == BOOTED;
            Self {
                is_booted,
                type_id: entry[4],
                start: number(&entry[8..12]),
                sectors: number(&entry[12..16]),
            }
        })
    }

    fn is_extended(&self) -> bool {
        EXTENDED_TYPES.contains(&self.type_id)
    }

    fn partition(
        self,
        number: u32,
        geometry: Geometry,
        disk_identifier: u32,
    ) -> Result<Partition, ParseError> {
        if self.type_id == PROTECTIVE_TYPE {
            let reason = "a protective MBR announces a GPT that is not there";
            return Err(ParseError::Invalid(reason.to_owned()));
        }
        let sector_size = u64::from(geometry.sector_size);
        let (start, size) = (self.start * sector_size, self.sectors * sector_size);
        if start == 0 || start + size > geometry.size {
            return Err(ParseError::Invalid(format!("partition {number} lies outside the disk")));
        }
        let kind = PartitionKind::Mbr { type_id: self.type_id, disk_identifier };
        Ok(Partition { number, start, size, kind })
    }
}

/// Follows the chain of sectors in an extended partition: each has one logical partition, placed from
/// that sector, and the next sector, placed from the first one.
fn logical_entries(
    source: &mut (impl Read + Seek),
    geometry: Geometry,
    first: u64,
) -> Result<Vec<Entry>, ParseError> {
    let invalid = |reason: &str| Err(ParseError::Invalid(reason.to_owned()));
    let mut found = Vec::new();
    let mut place = first;
    while found.len() < MAX_LOGICAL {
        let mut sector = [0; 512];
        let offset = place * u64::from(geometry.sector_size);
        if offset + sector.len() as u64 > geometry.size {
            return invalid("the chain of logical partitions leaves the disk");
        }
        read_exact_at(source, offset, &mut sector)?;
        let mut entries = Entry::of_sector(&sector);
        let (Some(logical), Some(next)) = (entries.next(), entries.next()) else { break };
        match sector.ends_with(&BOOT_SIGNATURE) {
            true => found.push(Entry { start: place + logical.start, ..logical }),
            // An extended partition without logical ones may hold anything.
            false if found.is_empty() => break,
            false => return invalid("the chain of logical partitions is broken"),
        }
        if next.start == 0 {
            break;
        }
        if first + next.start <= place {
            return invalid("the chain of logical partitions goes backwards");
        }
        place = first + next.start;
    }
    Ok(found)
}

/// A boot sector of a file system has the same signature, but code where the boot flags would be.
fn holds_partitions(sector: &[u8; 512]) -> bool {
    let entries = || sector[ENTRIES_OFFSET..].chunks_exact(ENTRY_SIZE).take(PRIMARIES);
    sector.ends_with(&BOOT_SIGNATURE)
        && entries().all(|entry| matches!(entry[0], 0x00 | 0x80))
        && entries().any(|entry| entry[4] != 0)
}

/// Writes a table to a disk that has none, with an identifier of its own.
///
/// # Errors
///
/// [`Error::Device`].
pub fn write_new(disk: &WritableDisk, partitions: &[NewPartition]) -> Result<(), Error> {
    let mut sector = [0; 512];
    sector[IDENTIFIER_OFFSET..IDENTIFIER_OFFSET + 4].copy_from_slice(&Uuid::new_v4().as_bytes()[..4]);
    sector[510..].copy_from_slice(&BOOT_SIGNATURE);
    fill_entries(&mut sector, partitions, disk.sector_size());
    write_sector(disk, &sector)
}

/// Writes the table with nothing but the primary partitions `kept`, as they are, and those `added`.
///
/// # Errors
///
/// [`Error::Device`].
pub fn rearrange(disk: &WritableDisk, kept: &[Partition], added: &[NewPartition]) -> Result<(), Error> {
    let mut sector = [0; 512];
    read_at(disk, 0, &mut sector)?;
    let entries = sector[ENTRIES_OFFSET..].chunks_exact_mut(ENTRY_SIZE).take(PRIMARIES);
    for (number, entry) in (1..).zip(entries) {
        if kept.iter().all(|partition| partition.number != number) {
            entry.fill(0);
        }
    }
    fill_entries(&mut sector, added, disk.sector_size());
    write_sector(disk, &sector)
}

/// Puts each partition into the entry of its number.
fn fill_entries(sector: &mut [u8; 512], partitions: &[NewPartition], sector_size: u32) {
    let sector_size = u64::from(sector_size);
    for partition in partitions {
        let PartitionKind::Mbr { type_id, .. } = partition.kind else { continue };
        let mut slots = sector[ENTRIES_OFFSET..].chunks_exact_mut(ENTRY_SIZE).take(PRIMARIES);
        let Some(slot) = slots.nth(partition.number as usize - 1) else { continue };
        slot.copy_from_slice(&entry_bytes(
            type_id,
            partition.start / sector_size,
            partition.size / sector_size,
        ));
        slot[0] = if partition.is_booted { BOOTED } else { 0 };
    }
}

fn write_sector(disk: &WritableDisk, sector: &[u8]) -> Result<(), Error> {
    let mut view = DiskView::whole(disk);
    view.write_all(sector).and_then(|()| view.flush()).map_err(|source| Error::Device {
        device: disk.path().to_owned(),
        action: "writing its MBR".to_owned(),
        source,
    })
}

fn entry_bytes(type_id: u8, first_sector: u64, sectors: u64) -> [u8; ENTRY_SIZE] {
    let number = |value: u64| u32::try_from(value).expect("the place was chosen below 2 TiB").to_le_bytes();
    let mut entry = [0; ENTRY_SIZE];
    entry[1..4].copy_from_slice(&CHS_BEYOND);
    entry[4] = type_id;
    entry[5..8].copy_from_slice(&CHS_BEYOND);
    entry[8..12].copy_from_slice(&number(first_sector));
    entry[12..16].copy_from_slice(&number(sectors));
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// The partitions (number, start and size in sectors) of a disk with 64 sectors of 512 bytes, from
    /// entries: sector and slot, type, start and length.
    fn read(entries: &[(usize, usize, u8, u32, u32)]) -> Result<Vec<(u32, u64, u64)>, String> {
        let mut disk = vec![0; 64 * 512];
        for (sector, slot, type_id, start, length) in entries {
            let entry = &mut disk[sector * 512 + ENTRIES_OFFSET + slot * ENTRY_SIZE..][..ENTRY_SIZE];
            entry[4] = *type_id;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&length.to_le_bytes());
            disk[sector * 512 + 510..][..2].copy_from_slice(&BOOT_SIGNATURE);
        }
        let geometry = Geometry { size: disk.len() as u64, sector_size: 512 };
        let table = Mbr::parse(&mut Cursor::new(disk), geometry).map_err(|error| error.to_string())?;
        let found = table.ok_or("no table")?.partitions;
        Ok(found.iter().map(|found| (found.number, found.start / 512, found.size / 512)).collect())
    }

    #[test]
    fn primary_and_logical_partitions_are_found() {
        assert_eq!(read(&[(0, 0, 0x83, 1, 4), (0, 2, 0x0c, 5, 59)]), Ok(vec![(1, 1, 4), (3, 5, 59)]));
        let chain = [(0, 1, 0x05, 8, 50), (8, 0, 0x83, 1, 2), (8, 1, 0x05, 10, 8), (18, 0, 0x83, 2, 3)];
        assert_eq!(read(&chain), Ok(vec![(2, 8, 50), (5, 9, 2), (6, 20, 3)]));
        assert_eq!(read(&[(0, 0, 0x0f, 8, 50)]), Ok(vec![(1, 8, 50)]), "nothing in the extended partition");
    }

    #[test]
    fn f20_a_fat_partition_flagged_to_be_booted_is_an_esp() {
        for (flag, kind, expected) in
            [(0x80, 0x0c, true), (0x80, 0x06, true), (0, 0x0c, false), (0x80, 0x83, false), (0, 0xef, false)]
        {
            let mut disk = vec![0; 64 * 512];
            disk[446..462].copy_from_slice(&[flag, 0, 0, 0, kind, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0]);
            disk[510..512].copy_from_slice(&BOOT_SIGNATURE);
            let geometry = Geometry { size: disk.len() as u64, sector_size: 512 };
            let table = Mbr::parse(&mut Cursor::new(disk), geometry).unwrap().unwrap();
            assert_eq!(table.booted_fat().is_some(), expected, "{flag:#x} {kind:#x}");
        }
    }

    #[test]
    fn d13_hostile_tables_are_refused() {
        let outside = |number: u32| Err(format!("partition {number} lies outside the disk"));
        let chain = |fault: &str| Err(format!("the chain of logical partitions {fault}"));
        assert_eq!(read(&[(0, 0, 0x7e, 0, 8)]), outside(1), "a start of zero");
        assert_eq!(read(&[(0, 3, 0x83, u32::MAX, u32::MAX)]), outside(4));
        assert_eq!(read(&[(0, 0, 0x05, 8, 50), (8, 0, 0x83, u32::MAX, 1)]), outside(5));
        assert_eq!(read(&[(0, 0, 0x05, u32::MAX, 50)]), chain("leaves the disk"));
        let with_next = |next| [(0, 0, 0x05, 8, 50), (8, 0, 0x83, 1, 2), (8, 1, 0x05, next, 8)];
        assert_eq!(read(&with_next(u32::MAX)), chain("leaves the disk"));
        assert_eq!(read(&with_next(20)), chain("is broken"));
        let back = [(28, 0, 0x83, 1, 1), (28, 1, 0x05, 20, 8)];
        assert_eq!(read(&[&with_next(20)[..], &back].concat()), chain("goes backwards"));
    }
}
