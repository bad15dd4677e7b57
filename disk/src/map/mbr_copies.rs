//! The MBR of a disk with its chain of logical partitions, as far as these can be read.

use super::copy::{CopyKind, TableCopy};
use super::tables::{Found, Window};
use crate::table::first_sector::{self, FIRST_SECTOR, IDENTIFIER, SECTORS, TYPE, entries};
use crate::table::types::mbr::{EXTENDED, PROTECTIVE};
use crate::table::{Partition, PartitionKind};
use std::io::{self, Read, Seek};

/// Sectors in which an MBR counts: it does not say so.
const SECTOR_SIZES: [u32; 2] = [512, 4096];

/// Bytes of a sector that hold entries, whatever the sectors of the disk.
const LENGTH: u64 = 512;

/// Sectors of a chain that are followed; the kernel stops sooner.
const LONGEST_CHAIN: usize = 256;

/// Number of the first logical partition.
const FIRST_LOGICAL: u32 = 5;

/// The flags that an entry may have: the kernel takes a sector with others for none of a table.
const FLAGS: [u8; 2] = [0, 0x80];

/// Adds the table in `window`, and what one names that has lost its signature. A disk with sectors of
/// `sector_size` bytes may have a table for others.
pub fn find<T: Read + Seek>(
    window: &mut Window<'_, T>,
    sector_size: u32,
    found: &mut Found,
) -> io::Result<()> {
    let Some(sector) = window.read(0, LENGTH)? else { return Ok(()) };
    if !entries(&sector).all(|entry| FLAGS.contains(&entry[0])) {
        return Ok(());
    }
    let others = SECTOR_SIZES.into_iter().filter(|other| *other != sector_size);
    for (is_own, unit) in [(true, sector_size)].into_iter().chain(others.map(|other| (false, other))) {
        let mut chain =
            Chain { unit, identifier: identifier(&sector), window, found, partitions: Vec::new() };
        chain.add_primary(&sector)?;
        let partitions = chain.partitions;
        if is_own && first_sector::is_signed(&sector) {
            let copy =
                TableCopy { kind: CopyKind::Mbr, sector_size: unit, start: 0, fault: None, partitions };
            found.areas.push(0..LENGTH);
            found.copies.push(copy);
        } else {
            found.add_former(partitions);
        }
    }
    Ok(())
}

fn identifier(sector: &[u8]) -> u32 {
    number(sector, IDENTIFIER)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A table that is followed with sectors of one size.
struct Chain<'a, 'b, T> {
    unit: u32,
    identifier: u32,
    window: &'a mut Window<'b, T>,
    found: &'a mut Found,
    partitions: Vec<Partition>,
}

impl<T: Read + Seek> Chain<'_, '_, T> {
    fn add_primary(&mut self, sector: &[u8]) -> io::Result<()> {
        let mut logical = FIRST_LOGICAL;
        for (number, entry) in (1..).zip(entries(sector)) {
            if EXTENDED.contains(&entry[TYPE]) {
                self.follow(number_in(entry, FIRST_SECTOR), &mut logical)?;
            } else {
                self.add(number, entry, 0);
            }
        }
        Ok(())
    }

    /// The chain of sectors in an extended partition that begins at sector `first`: each has logical partitions,
    /// placed from that sector, and leads to the next sector, placed from the first one.
    fn follow(&mut self, first: u64, logical: &mut u32) -> io::Result<()> {
        let (mut looked_at, mut open) = (Vec::new(), vec![first]);
        while let Some(place) = open.pop() {
            looked_at.push(place);
            let Some(start) = place.checked_mul(self.unit.into()) else { continue };
            let Some(sector) = self.window.read(start, LENGTH)? else { continue };
            if place == 0 || !first_sector::is_signed(&sector) {
                continue;
            }
            self.found.areas.push(start..start + LENGTH);
            for entry in entries(&sector) {
                if !EXTENDED.contains(&entry[TYPE]) {
                    if self.add(*logical, entry, place) {
                        *logical += 1;
                    }
                    continue;
                }
                let next = first.saturating_add(number_in(entry, FIRST_SECTOR));
                if looked_at.len() < LONGEST_CHAIN && !looked_at.contains(&next) {
                    open.push(next);
                }
            }
        }
        Ok(())
    }

    /// Adds what an entry names, counted from sector `base`, as far as that lies on the disk. The kernel asks for a
    /// size alone, so one of type 0 counts, too.
    fn add(&mut self, number: u32, entry: &[u8], base: u64) -> bool {
        let unit = u64::from(self.unit);
        let start = base.saturating_add(number_in(entry, FIRST_SECTOR)).saturating_mul(unit);
        let end = start.saturating_add(number_in(entry, SECTORS) * unit).min(self.window.size());
        let is_partition = entry[TYPE] != PROTECTIVE && start > 0 && start < end;
        if is_partition {
            let kind = PartitionKind::Mbr { type_id: entry[TYPE], disk_identifier: self.identifier };
            self.partitions.push(Partition { number, start, size: end - start, kind });
        }
        is_partition
    }
}

fn number_in(entry: &[u8], at: usize) -> u64 {
    number(entry, at).into()
}
