//! MBR partition tables.
//!
//! The `mbrman` crate decodes and encodes sectors of a table, whose other bytes stay as they are: boot code and
//! disk identifier (D15). The chain of logical partitions is followed here, with an end and without overflow: the
//! crate's reader of whole tables follows it for as long as it goes on, adds numbers that do not fit, and panics on
//! a table whose partitions begin at zero. A test shows these.

use super::first_sector::{self, ENTRIES, ENTRY_COUNT, ENTRY_SIZE, TYPE, entries, is_signed};
use super::gpt::place_at_end;
use super::reach::MBR_BYTES;
use super::{Geometry, NewPartition, ParseError, Partition, PartitionKind, read_exact_at, types};
use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use mbrman::{BOOT_ACTIVE, BOOT_INACTIVE, CHS, MBRHeader, MBRPartitionEntry};
use std::io::{self, Cursor, Read, Seek, Write};
use uuid::Uuid;

/// So many logical partitions are looked for; the kernel finds fewer.
const MAX_LOGICAL: usize = 256;

/// Cylinder, head and sector of a place that only LBA reaches.
const CHS_BEYOND: CHS = CHS { cylinder: 1023, head: 254, sector: 63 };

/// A valid MBR with at least one partition.
#[derive(Debug)]
pub struct Mbr {
    partitions: Vec<Partition>,
    /// What else has an entry and a place: the container of the logical partitions, which is none itself, and entries
    /// of type 0, which Linux takes for partitions all the same.
    others: Vec<Partition>,
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
        let sector = first_sector::read(source, geometry.size)?;
        if !holds_partitions(&sector) {
            return Ok(None);
        }
        let header = decode(&sector)?;
        let disk_identifier = u32::from_le_bytes(header.disk_signature);
        let mut entries: Vec<_> = (1..).zip(header.iter().map(|(_, entry)| Entry::of(entry))).collect();
        if let Some((_, extended)) = entries.iter().find(|(_, entry)| entry.is_extended()) {
            let logical = logical_entries(source, geometry, extended.start)?;
            entries.extend((ENTRY_COUNT as u32 + 1..).zip(logical));
        }
        let booted = entries.iter().find(|(_, entry)| entry.is_booted).map(|(number, _)| *number);
        let (mut partitions, mut others) = (Vec::new(), Vec::new());
        for (number, entry) in entries {
            match entry.type_id {
                0 if entry.sectors == 0 => {}
                0 => others.push(entry.place(number, geometry, disk_identifier)),
                _ if entry.is_extended() => {
                    others.push(entry.partition(number, geometry, disk_identifier)?)
                }
                _ => partitions.push(entry.partition(number, geometry, disk_identifier)?),
            }
        }
        Ok(Some(Self { partitions, others, disk_identifier, booted }))
    }

    /// The partition to boot from, if it is one for FAT.
    pub fn booted_fat(&self) -> Option<&Partition> {
        let is_fat = |kind: &PartitionKind| matches!(kind, PartitionKind::Mbr { type_id, .. } if types::mbr::FAT.contains(type_id));
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
    pub fn add_at_end(&mut self, disk: &dyn Sectors, size: u64) -> Result<Partition, Error> {
        let no_place =
            |reason: String| Error::NoPlaceForConfigDrive { device: disk.path().to_owned(), reason };
        let taken: Vec<_> = self.partitions.iter().chain(&self.others).cloned().collect();
        let is_free = |number: &u32| taken.iter().all(|partition| partition.number != *number);
        let number = (1..=ENTRY_COUNT as u32).find(is_free).ok_or_else(|| {
            no_place("the MBR has four primary partitions; use an image with at most three".to_owned())
        })?;
        let sector_size = u64::from(disk.sector_size());
        let usable = sector_size..disk.size().min(MBR_BYTES);
        let start = place_at_end(usable, size, &taken).map_err(no_place)?;
        let kind =
            PartitionKind::Mbr { type_id: types::mbr::FAT32_LBA, disk_identifier: self.disk_identifier };
        let (name, is_booted) = (String::new(), false);
        let new = NewPartition { number, start, size, kind: kind.clone(), is_booted, name };
        change(disk, |header| fill(header, &[new], disk.sector_size()))?;
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
    fn of(entry: &MBRPartitionEntry) -> Self {
        Self {
            is_booted: entry.is_active(),
            type_id: entry.sys,
            start: entry.starting_lba.into(),
            sectors: entry.sectors.into(),
        }
    }

    fn is_extended(&self) -> bool {
        types::mbr::EXTENDED.contains(&self.type_id)
    }

    fn partition(
        &self,
        number: u32,
        geometry: Geometry,
        disk_identifier: u32,
    ) -> Result<Partition, ParseError> {
        if self.type_id == types::mbr::PROTECTIVE {
            let reason = "its protective entry does not begin at sector 1, so systems differ about its GPT";
            return Err(ParseError::Invalid(reason.to_owned()));
        }
        let place = self.place(number, geometry, disk_identifier);
        if place.start == 0 || place.start + place.size > geometry.size {
            return Err(ParseError::Invalid(format!("partition {number} lies outside the disk")));
        }
        Ok(place)
    }

    fn place(&self, number: u32, geometry: Geometry, disk_identifier: u32) -> Partition {
        let sector_size = u64::from(geometry.sector_size);
        let kind = PartitionKind::Mbr { type_id: self.type_id, disk_identifier };
        Partition { number, start: self.start * sector_size, size: self.sectors * sector_size, kind }
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
        if !is_signed(&sector) {
            // An extended partition without logical ones may hold anything.
            return if found.is_empty() {
                Ok(found)
            } else {
                invalid("the chain of logical partitions is broken")
            };
        }
        // Nobody looks at other flags here, and the crate wants none.
        for flag in sector[ENTRIES..].iter_mut().step_by(ENTRY_SIZE).take(ENTRY_COUNT) {
            *flag = if *flag == BOOT_ACTIVE { BOOT_ACTIVE } else { BOOT_INACTIVE };
        }
        let header = decode(&sector)?;
        let (logical, next) = (Entry::of(&header.partition_1), Entry::of(&header.partition_2));
        found.push(Entry { start: place + logical.start, ..logical });
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
fn holds_partitions(sector: &[u8]) -> bool {
    is_signed(sector)
        && entries(sector).all(|entry| matches!(entry[0], BOOT_INACTIVE | BOOT_ACTIVE))
        && entries(sector).any(|entry| entry[TYPE] != 0)
}

/// A sector of a table.
fn decode(sector: &[u8]) -> Result<MBRHeader, ParseError> {
    MBRHeader::read_from(&mut Cursor::new(sector)).map_err(|error| ParseError::Invalid(error.to_string()))
}

/// Writes a table to a disk that has none, with an identifier of its own.
///
/// # Errors
///
/// [`Error::Device`].
pub fn write_new(disk: &dyn Sectors, partitions: &[NewPartition]) -> Result<(), Error> {
    let [a, b, c, d, ..] = *Uuid::new_v4().as_bytes();
    let mut header = MBRHeader::new([a, b, c, d]);
    fill(&mut header, partitions, disk.sector_size());
    write(disk, &mut DiskView::whole(disk), &header)
}

/// Writes the table with nothing but the primary partitions `kept`, as they are, and those `added`.
///
/// # Errors
///
/// [`Error::Device`].
pub fn rearrange(disk: &dyn Sectors, kept: &[Partition], added: &[NewPartition]) -> Result<(), Error> {
    change(disk, |header| {
        for (number, entry) in header.iter_mut() {
            if kept.iter().all(|partition| partition.number as usize != number) {
                *entry = MBRPartitionEntry::empty();
            }
        }
        fill(header, added, disk.sector_size());
    })
}

/// Puts each partition into the entry of its number.
fn fill(header: &mut MBRHeader, partitions: &[NewPartition], sector_size: u32) {
    let sectors = |bytes: u64| {
        u32::try_from(bytes / u64::from(sector_size)).expect("the place was chosen where an MBR reaches")
    };
    for partition in partitions {
        let PartitionKind::Mbr { type_id, .. } = partition.kind else { continue };
        let Some(entry) = header.get_mut(partition.number as usize) else { continue };
        *entry = MBRPartitionEntry {
            boot: if partition.is_booted { BOOT_ACTIVE } else { BOOT_INACTIVE },
            first_chs: CHS_BEYOND,
            sys: type_id,
            last_chs: CHS_BEYOND,
            starting_lba: sectors(partition.start),
            sectors: sectors(partition.size),
        };
    }
}

/// Changes entries of the table on a disk, and no other byte.
fn change(disk: &dyn Sectors, change: impl FnOnce(&mut MBRHeader)) -> Result<(), Error> {
    let mut view = DiskView::whole(disk);
    let mut header = MBRHeader::read_from(&mut view).map_err(|error| not_done(disk, "reading", error))?;
    change(&mut header);
    write(disk, &mut view, &header)
}

fn write(disk: &dyn Sectors, view: &mut DiskView<'_>, header: &MBRHeader) -> Result<(), Error> {
    let failed = |error| not_done(disk, "writing", error);
    header.write_into(view).map_err(failed)?;
    view.flush().map_err(|error| failed(error.into()))
}

fn not_done(disk: &dyn Sectors, verb: &str, error: mbrman::Error) -> Error {
    let source = match error {
        mbrman::Error::Io(source) => source,
        other => io::Error::other(other),
    };
    Error::Device { device: disk.path().to_owned(), action: format!("{verb} its MBR"), source }
}

#[cfg(test)]
mod tests {
    use super::super::first_sector::SIGNATURE;
    use super::*;
    use std::io::Cursor;

    /// The partitions (number, start and size in sectors) of a disk with 64 sectors of 512 bytes, from
    /// entries: sector and slot, type, start and length.
    fn read(entries: &[(usize, usize, u8, u32, u32)]) -> Result<Vec<(u32, u64, u64)>, String> {
        let mut disk = vec![0; 64 * 512];
        for (sector, slot, type_id, start, length) in entries {
            let entry = &mut disk[sector * 512 + ENTRIES + slot * ENTRY_SIZE..][..ENTRY_SIZE];
            entry[4] = *type_id;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&length.to_le_bytes());
            disk[sector * 512 + 510..][..2].copy_from_slice(&SIGNATURE);
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
        assert_eq!(read(&chain), Ok(vec![(5, 9, 2), (6, 20, 3)]));
        assert_eq!(read(&[(0, 0, 0x0f, 8, 50)]), Ok(vec![]), "nothing in the extended partition");
    }

    #[test]
    fn f20_a_fat_partition_flagged_to_be_booted_is_an_esp() {
        for (flag, kind, expected) in
            [(0x80, 0x0c, true), (0x80, 0x06, true), (0, 0x0c, false), (0x80, 0x83, false), (0, 0xef, false)]
        {
            let mut disk = vec![0; 64 * 512];
            disk[446..462].copy_from_slice(&[flag, 0, 0, 0, kind, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0]);
            disk[510..512].copy_from_slice(&SIGNATURE);
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
