//! Disk labels of other systems, which Linux and libblkid read as well: BSD, Solaris, Sun, SGI, and the partition map of
//! Apple. No step of Farrier makes or believes one, but what they name is there, and goes.
//!
//! Sources: Linux, `block/partitions/{msdos,sun,sgi,mac}.c`; util-linux, `libblkid/src/partitions`.

use super::copy::{CopyKind, TableCopy};
use super::tables::{Found, Window};
use crate::table::Partition;
use std::io::{self, Read, Seek};

/// In these sectors all of them count, but for maps of Apple.
const SECTOR: u64 = 512;
/// Bytes of a volume in which a label lies, and of a label.
const BEGINNING: u64 = 1024;
const LENGTH: u64 = 512;
/// Entries of a map of Apple that are looked at; the kernel reads 256.
const MOST_ENTRIES: u32 = 256;

/// What a label names, from its bytes: where partitions begin and how long they are.
type Reader = fn(&[u8]) -> Option<Vec<(u64, u64)>>;

/// A label: its name, and where in a volume it lies.
const LABELS: &[(&str, usize, Reader)] = &[
    ("BSD label", 512, bsd),
    // Where systems on Alpha have it.
    ("BSD label", 64, bsd),
    ("Solaris label", 512, solaris),
    ("Sun label", 0, sun),
    ("SGI label", 0, sgi),
];

/// Adds the labels in `window`, whose first byte is byte `start` of the disk: labels of BSD may count from the beginning
/// of the disk.
pub fn find<T: Read + Seek>(window: &mut Window<'_, T>, start: u64, found: &mut Found) -> io::Result<()> {
    let Some(beginning) = window.read(0, BEGINNING)? else { return Ok(()) };
    for (name, at, read) in LABELS {
        let Some(places) = read(&beginning[*at..*at + LENGTH as usize]) else { continue };
        let mut partitions = partitions(&places, 0, window.size());
        if start > 0 {
            partitions.extend(self::partitions(&places, start, window.size()));
        }
        add(name, *at as u64, partitions, found);
    }
    if let Some(places) = apple(window, &beginning)? {
        add("partition map of Apple", 0, partitions(&places, 0, window.size()), found);
    }
    Ok(())
}

fn add(name: &'static str, start: u64, partitions: Vec<Partition>, found: &mut Found) {
    if partitions.is_empty() {
        return;
    }
    found.areas.push(start..start + LENGTH);
    let kind = CopyKind::Foreign(name);
    found.copies.push(TableCopy { kind, sector_size: SECTOR as u32, start, fault: None, partitions });
}

/// Partitions at these places less `base`, as far as they lie in a window of `size` bytes and are not all of it.
fn partitions(places: &[(u64, u64)], base: u64, size: u64) -> Vec<Partition> {
    let partition = |(start, length): &(u64, u64)| {
        let start = start.checked_sub(base)?;
        let end = start.saturating_add(*length).min(size);
        (start < end && (start, end) != (0, size)).then(|| Partition::at(start, end - start))
    };
    places.iter().filter_map(partition).collect()
}

/// `struct bsd_disklabel`: both marks, the number of entries, and the entries with size and first sector.
fn bsd(label: &[u8]) -> Option<Vec<(u64, u64)>> {
    const MARK: u32 = 0x8256_4557;
    if little(label, 0)? != MARK || little(label, 132)? != MARK {
        return None;
    }
    let count = u16::from_le_bytes([*label.get(138)?, *label.get(139)?]).min(16);
    let entry = |number: u16| {
        let at = 148 + usize::from(number) * 16;
        Some(sectors(little(label, at + 4)?, little(label, at)?))
    };
    Some((0..count).filter_map(entry).collect())
}

/// `struct solaris_x86_vtoc`.
fn solaris(label: &[u8]) -> Option<Vec<(u64, u64)>> {
    const MARK: u32 = 0x600d_deee;
    if little(label, 12)? != MARK {
        return None;
    }
    let slice = |number: usize| {
        let at = 72 + number * 12;
        Some(sectors(little(label, at + 4)?, little(label, at + 8)?))
    };
    Some((0..16).filter_map(slice).collect())
}

/// `struct sun_disklabel`: partitions begin at cylinders.
fn sun(label: &[u8]) -> Option<Vec<(u64, u64)>> {
    const MARK: [u8; 2] = [0xda, 0xbe];
    // The mark lies in the last entry of an MBR.
    let words = label.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    if label.get(508..510)? != MARK || words.fold(0, |sum, word| sum ^ word) != 0 {
        return None;
    }
    let short = |at: usize| u64::from(u16::from_be_bytes([label[at], label[at + 1]]));
    let cylinder = short(436) * short(438) * SECTOR;
    let entry = |number: usize| {
        let at = 444 + number * 8;
        let (start, length) = (big(label, at)?, big(label, at + 4)?);
        Some((u64::from(start).saturating_mul(cylinder), u64::from(length) * SECTOR))
    };
    Some((0..8).filter_map(entry).collect())
}

/// `struct sgi_disklabel`: entries with length and first block.
fn sgi(label: &[u8]) -> Option<Vec<(u64, u64)>> {
    const MARK: u32 = 0x0be5_a941;
    if big(label, 0)? != MARK {
        return None;
    }
    let entry = |number: usize| {
        let at = 312 + number * 12;
        Some(sectors(big(label, at + 4)?, big(label, at)?))
    };
    Some((0..16).filter_map(entry).collect())
}

/// The entries of a map of Apple: each is a block of its own, and says how many there are.
fn apple<T: Read + Seek>(window: &mut Window<'_, T>, driver: &[u8]) -> io::Result<Option<Vec<(u64, u64)>>> {
    let block = u64::from(u16::from_be_bytes([driver[2], driver[3]]));
    if !driver.starts_with(b"ER") || block < SECTOR || !block.is_power_of_two() {
        return Ok(None);
    }
    let (mut places, mut count, mut number) = (Vec::new(), 1, 1);
    while number <= count {
        let Some(entry) = window.read(u64::from(number) * block, LENGTH)? else { break };
        let numbers = (big(&entry, 4), big(&entry, 8), big(&entry, 12));
        let (true, (Some(entries), Some(start), Some(length))) = (entry.starts_with(b"PM"), numbers) else {
            break;
        };
        count = entries.min(MOST_ENTRIES);
        places.push((u64::from(start) * block, u64::from(length) * block));
        number += 1;
    }
    Ok(Some(places))
}

fn sectors(start: u32, length: u32) -> (u64, u64) {
    (u64::from(start) * SECTOR, u64::from(length) * SECTOR)
}

fn little(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
