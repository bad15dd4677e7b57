//! Every copy of a GPT on a disk, sound or not, for sectors of every size.

use super::arrays::{Array, LARGEST_ENTRY, MOST_BYTES, SMALLEST_ENTRY, USUAL_BYTES, number_at};
use super::copy::{CopyKind, TableCopy};
use super::tables::{Found, Window};
use crate::table::crc32;
use crate::table::gpt_field as field;
use std::io::{self, Read, Seek};
use std::ops::Range;

/// Sector sizes for which tables are made.
const SECTOR_SIZES: [u32; 4] = [512, 1024, 2048, 4096];

/// Headers that are followed with sectors of one size; each leads to another one at most.
const MOST_HEADERS: usize = 16;

/// Adds every copy in `window`, and what arrays without a header name.
pub fn find<T: Read + Seek>(window: &mut Window<'_, T>, found: &mut Found) -> io::Result<()> {
    let mut known = Vec::new();
    for sector_size in SECTOR_SIZES {
        let last = last_sector(window.size(), sector_size);
        let (mut looked_at, mut open) = (Vec::new(), vec![1, last]);
        while let Some(lba) = open.pop().filter(|lba| *lba > 0 && looked_at.len() < MOST_HEADERS) {
            looked_at.push(lba);
            let Some(header) = Header::read(window, lba, sector_size)? else { continue };
            let next = [header.other_lba(), header.own_lba()].into_iter().flatten();
            open.extend(next.filter(|lba| (1..=last).contains(lba) && !looked_at.contains(lba)));
            known.extend(add(window, &header, found)?);
        }
    }
    let size = window.size();
    for array in SECTOR_SIZES.into_iter().flat_map(|sector_size| usual_arrays(size, sector_size)) {
        let is_known = |known: &Range<u64>| known.start < array.range().end && array.start < known.end;
        // Read with other sectors a sound array names places where nothing was.
        if known.iter().any(is_known) {
            continue;
        }
        if let Some(bytes) = window.read(array.start, array.length)? {
            found.add_former(array.partitions(&bytes, size));
        }
    }
    Ok(())
}

fn last_sector(size: u64, sector_size: u32) -> u64 {
    (size / u64::from(sector_size)).saturating_sub(1)
}

/// Where the arrays of nearly every table lie: behind the first header, and before the last one.
fn usual_arrays(size: u64, sector_size: u32) -> impl Iterator<Item = Array> {
    let unit = u64::from(sector_size);
    let backup = last_sector(size, sector_size).checked_sub(USUAL_BYTES.div_ceil(unit));
    [Some(2), backup].into_iter().flatten().map(move |lba| Array {
        start: lba * unit,
        length: USUAL_BYTES,
        entry_size: SMALLEST_ENTRY,
        sector_size,
    })
}

/// Adds a header with what it names in its array. Gives the place of that where it is proven by both checksums.
fn add<T: Read + Seek>(
    window: &mut Window<'_, T>,
    header: &Header,
    found: &mut Found,
) -> io::Result<Option<Range<u64>>> {
    found.areas.push(header.range());
    let mut fault = header.fault.clone();
    let (mut partitions, mut proven) = (Vec::new(), None);
    if let Some(array) = header.array() {
        match window.read(array.start, array.length)? {
            Some(bytes) => {
                found.areas.push(array.range());
                if fault.is_none() && crc32(&bytes) != header.entries_crc() {
                    fault = Some("the checksum of its entries is wrong".to_owned());
                }
                proven = fault.is_none().then(|| array.range());
                partitions = array.partitions(&bytes, window.size());
            }
            None => fault = fault.or_else(|| Some("its entries lie outside the disk".to_owned())),
        }
    }
    if header.is_marked {
        let kind = if header.lba == 1 { CopyKind::PrimaryGpt } else { CopyKind::BackupGpt };
        let (sector_size, start) = (header.sector_size, header.range().start);
        found.copies.push(TableCopy { kind, sector_size, start, fault, partitions });
    } else {
        found.add_former(partitions);
    }
    Ok(proven)
}

/// What may be a header: it has its mark, or the checksum of one whose mark was wiped.
struct Header {
    sector: Vec<u8>,
    sector_size: u32,
    lba: u64,
    is_marked: bool,
    fault: Option<String>,
}

impl Header {
    fn read<T: Read + Seek>(
        window: &mut Window<'_, T>,
        lba: u64,
        sector_size: u32,
    ) -> io::Result<Option<Self>> {
        let Some(start) = lba.checked_mul(sector_size.into()) else { return Ok(None) };
        let Some(mut sector) = window.read(start, sector_size.into())? else { return Ok(None) };
        let is_marked = sector.starts_with(field::MARK);
        sector[..field::MARK.len()].copy_from_slice(field::MARK);
        let mut header = Self { sector, sector_size, lba, is_marked, fault: None };
        let is_sealed = header.is_sealed();
        if !is_sealed {
            header.fault = Some("the checksum of its header is wrong".to_owned());
        } else if header.own_lba() != Some(lba) {
            header.fault = Some("its header belongs to another sector".to_owned());
        } else if header.array().is_none() {
            header.fault = Some("its header names no array of entries that can be read".to_owned());
        }
        Ok((is_marked || is_sealed).then_some(header))
    }

    fn is_sealed(&self) -> bool {
        let size = self.u32(field::SIZE);
        if !(field::SMALLEST..=self.sector_size).contains(&size) {
            return false;
        }
        let mut header = self.sector[..size as usize].to_vec();
        header[field::CRC].fill(0);
        crc32(&header) == self.u32(field::CRC)
    }

    /// Its array; nothing when the numbers about it cannot be true. One that is damaged may still have them.
    fn array(&self) -> Option<Array> {
        let entry_size = self.u32(field::ENTRY_SIZE);
        let is_size = entry_size.is_power_of_two() && (SMALLEST_ENTRY..=LARGEST_ENTRY).contains(&entry_size);
        let length = u64::from(self.u32(field::ENTRY_COUNT)) * u64::from(entry_size);
        let start = number_at(&self.sector, field::ENTRIES_LBA)?.checked_mul(self.sector_size.into())?;
        let sector_size = self.sector_size;
        (is_size && (1..=MOST_BYTES).contains(&length)).then_some(Array {
            start,
            length,
            entry_size,
            sector_size,
        })
    }

    fn own_lba(&self) -> Option<u64> {
        number_at(&self.sector, field::OWN_LBA)
    }

    fn other_lba(&self) -> Option<u64> {
        number_at(&self.sector, field::OTHER_LBA)
    }

    fn entries_crc(&self) -> u32 {
        self.u32(field::ENTRIES_CRC)
    }

    fn range(&self) -> Range<u64> {
        let start = self.lba * u64::from(self.sector_size);
        start..start + u64::from(self.sector_size)
    }

    fn u32(&self, field: Range<usize>) -> u32 {
        let bytes = &self.sector[field];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}
