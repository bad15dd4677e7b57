//! MBR partition tables.
//!
//! They are read by `mbrman`. An added partition is written as its 16 bytes and nothing else, so that
//! boot code and disk identifier stay as the image brought them (D15).

use super::gpt::place_at_end;
use super::{Geometry, NewPartition, ParseError, Partition, PartitionKind, read_exact_at};
use crate::error::Error;
use crate::guard::WritableDisk;
use crate::view::DiskView;
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

/// Type of a FAT32 partition with LBA addresses, as parted gives to `fat32`.
const FAT32_LBA_TYPE: u8 = 0x0c;

/// End of what 32-bit sector numbers of 512 bytes reach, and so of every MBR partition (section 6.5).
const ADDRESSABLE: u64 = 2 << 40;

/// Cylinder, head and sector of a place that only LBA reaches.
const CHS_BEYOND: [u8; 3] = [0xfe, 0xff, 0xff];

/// A valid MBR with at least one partition.
#[derive(Debug)]
pub struct Mbr {
    partitions: Vec<Partition>,
    disk_identifier: u32,
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
        let invalid = ParseError::Invalid;
        source.rewind()?;
        let table = mbrman::MBR::read_from(source, geometry.sector_size)
            .map_err(|error| invalid(error.to_string()))?;
        let sector_size = u64::from(geometry.sector_size);
        let disk_identifier = u32::from_le_bytes(table.header.disk_signature);
        let mut partitions = Vec::new();
        for (number, entry) in table.iter().filter(|(_, entry)| entry.is_used()) {
            if entry.sys == PROTECTIVE_TYPE {
                return Err(invalid("a protective MBR announces a GPT that is not there".to_owned()));
            }
            let partition = Partition {
                number: number as u32,
                start: u64::from(entry.starting_lba) * sector_size,
                size: u64::from(entry.sectors) * sector_size,
                kind: PartitionKind::Mbr { type_id: entry.sys, disk_identifier },
            };
            if partition.start == 0 || partition.start + partition.size > geometry.size {
                return Err(invalid(format!("partition {number} lies outside the disk")));
            }
            partitions.push(partition);
        }
        Ok(Some(Self { partitions, disk_identifier }))
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
    let sector_size = u64::from(disk.sector_size());
    let mut sector = [0; 512];
    sector[IDENTIFIER_OFFSET..IDENTIFIER_OFFSET + 4].copy_from_slice(&Uuid::new_v4().as_bytes()[..4]);
    for (slot, partition) in sector[ENTRIES_OFFSET..].chunks_exact_mut(ENTRY_SIZE).zip(partitions) {
        let PartitionKind::Mbr { type_id, .. } = partition.kind else { continue };
        slot.copy_from_slice(&entry_bytes(
            type_id,
            partition.start / sector_size,
            partition.size / sector_size,
        ));
        slot[0] = if partition.is_booted { BOOTED } else { 0 };
    }
    sector[510..].copy_from_slice(&BOOT_SIGNATURE);
    let mut view = DiskView::whole(disk);
    view.write_all(&sector).and_then(|()| view.flush()).map_err(|source| Error::Device {
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
