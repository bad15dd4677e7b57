//! The entries of L1 and L2 tables.

use super::header::{Header, be64};

/// Bits of an entry that are an offset in the file.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
/// Bit of a standard entry: the cluster reads as zeros.
const ZERO: u64 = 1;
const COMPRESSED: u64 = 1 << 62;
/// Parts of a cluster under extended entries.
const PARTS: u32 = 32;

/// What a stretch of the guest's disk holds. Numbers are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stretch {
    /// Nothing: it reads as zeros.
    Hole { guest: u64, length: u64 },
    /// The bytes from `host` on.
    Data { host: u64, guest: u64, length: u64 },
    /// One cluster, compressed into the sectors from `host` to `end`.
    Packed { host: u64, end: u64, guest: u64 },
}

/// Offset of the L2 table that an L1 entry names; nothing when there is none.
pub(super) fn l1_entry(header: &Header, entry: u64) -> Result<Option<u64>, String> {
    match entry & OFFSET {
        0 => Ok(None),
        offset if offset % header.cluster_size() == 0 => Ok(Some(offset)),
        offset => Err(format!("an L2 table lies at {offset}, which is no cluster")),
    }
}

/// Offset of the cluster of refcounts that an entry of their table names; nothing when there is none.
pub(super) fn count_entry(header: &Header, entry: u64) -> Result<Option<u64>, String> {
    match entry & !511 {
        0 => Ok(None),
        offset if offset % header.cluster_size() == 0 && offset < 1 << 62 => Ok(Some(offset)),
        offset => Err(format!("refcounts lie at {offset}, which is no cluster")),
    }
}

/// Tells what an L2 table maps, in the order of the guest's disk and cut at its end. `index` is that
/// of the L1 entry which names the table.
pub(super) fn read_l2(
    header: &Header,
    index: u64,
    table: &[u8],
    mut found: impl FnMut(Stretch) -> Result<(), super::Fault>,
) -> Result<(), super::Fault> {
    let entry_bytes = if header.is_extended { 16 } else { 8 };
    let mut guest = index * header.l2_coverage();
    for entry in table.chunks_exact(entry_bytes) {
        if guest >= header.virtual_size {
            break;
        }
        let length = header.cluster_size().min(header.virtual_size - guest);
        let descriptor = be64(entry, 0);
        if descriptor & COMPRESSED != 0 {
            let (host, end) = packed(header, descriptor);
            found(Stretch::Packed { host, end, guest })?;
        } else if header.is_extended {
            let data = data_offset(header, descriptor)?;
            parts(header, data, be64(entry, 8), guest, length, &mut found)?;
        } else {
            found(standard(header, descriptor, guest, length)?)?;
        }
        guest += header.cluster_size();
    }
    Ok(())
}

fn standard(header: &Header, descriptor: u64, guest: u64, length: u64) -> Result<Stretch, String> {
    let is_zero = descriptor & ZERO != 0;
    if is_zero && header.version < 3 {
        return Err(format!("the entry {descriptor:#x} is none of version 2"));
    }
    Ok(match data_offset(header, descriptor)? {
        0 => Stretch::Hole { guest, length },
        _ if is_zero => Stretch::Hole { guest, length },
        host => Stretch::Data { host, guest, length },
    })
}

fn data_offset(header: &Header, descriptor: u64) -> Result<u64, String> {
    match descriptor & OFFSET {
        offset if offset % header.cluster_size() == 0 => Ok(offset),
        offset => Err(format!("a cluster lies at {offset}, which is no place for one")),
    }
}

/// First byte of a compressed cluster, and the end of its last sector.
fn packed(header: &Header, descriptor: u64) -> (u64, u64) {
    let count_bits = header.cluster_bits - 8;
    let offset_bits = 62 - count_bits;
    let host = descriptor & ((1 << offset_bits) - 1);
    let more_sectors = (descriptor >> offset_bits) & ((1 << count_bits) - 1);
    (host, (host & !511) + (more_sectors + 1) * 512)
}

/// The parts of a cluster that are there are joined, and so are the others.
fn parts(
    header: &Header,
    host: u64,
    bitmap: u64,
    guest: u64,
    length: u64,
    found: &mut impl FnMut(Stretch) -> Result<(), super::Fault>,
) -> Result<(), super::Fault> {
    let (there, zero) = (bitmap as u32, (bitmap >> 32) as u32);
    if there & zero != 0 || (there != 0 && host == 0) {
        return Err(format!("the part bitmap {bitmap:#x} of a cluster contradicts itself").into());
    }
    let grain = 1_u64 << header.grain_bits();
    let is_there = |part: u32| there >> part & 1 == 1;
    let mut first = 0;
    while first < PARTS && u64::from(first) * grain < length {
        let joined = (first..PARTS).take_while(|part| is_there(*part) == is_there(first)).count() as u32;
        let start = u64::from(first) * grain;
        let (guest, length) = (guest + start, (u64::from(joined) * grain).min(length - start));
        found(if is_there(first) {
            Stretch::Data { host: host + start, guest, length }
        } else {
            Stretch::Hole { guest, length }
        })?;
        first += joined;
    }
    Ok(())
}
