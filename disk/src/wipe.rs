//! Wiping metadata, as `wipefs` and `sgdisk --zap-all` do: removing the tables, superblocks and signatures that would
//! let old content be taken for a valid disk.
//!
//! Where they may lie the [`map`] of the disk says; and when all is done, it has to show nothing.

use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::io::zero::is_zero;
use crate::map::{self, Ranges, Tables, places};
use crate::table::{self, Partition, PartitionTable};
use farrier_linux::aligned::AlignedBuffer;
use std::ops::Range;

/// Bytes at either end that hold boot code, partition tables and their backups on every common layout.
const TABLES: u64 = 1 << 20;

/// How often what is still recognised is removed where it is; after that something brings it back.
const ATTEMPTS: usize = 4;

/// Zeros the first and the last MiB, so that no partition table is left (section 6.3). The first sector
/// goes before all others: whatever interrupts this, the old table leads to everything it did, or is gone.
///
/// # Errors
///
/// [`Error::Device`].
pub fn wipe_ends(disk: &dyn Sectors) -> Result<(), Error> {
    wipe_ends_and(disk, || {})
}

/// As [`wipe_ends`], before an image is written: what the old partitions were known by goes as well, because a new
/// system may make partitions in the same places behind the end of its image (A20).
///
/// Nothing depends on that part of it: what cannot be read or removed there is logged.
///
/// # Errors
///
/// [`Error::Device`].
pub fn wipe_for_image(disk: &dyn Sectors) -> Result<(), Error> {
    let warn = |error: &Error| tracing::warn!("signatures in old partitions may stay: {error}");
    let places = Tables::read(disk).and_then(|tables| {
        let copies = copies_in(std::slice::from_ref(&Partition::at(0, disk.size())), disk)?;
        Ok(in_sectors(places_in(&tables.volumes(), disk)?.iter().chain(copies).collect(), disk))
    });
    let places = places.inspect_err(warn).unwrap_or_default();
    wipe_ends_and(disk, || {
        zero(disk, &places).inspect_err(warn).ok();
    })
}

fn wipe_ends_and(disk: &dyn Sectors, between: impl FnOnce()) -> Result<(), Error> {
    disk.zero_out(0, disk.sector_size().into())?;
    disk.flush()?;
    between();
    let length = TABLES.min(disk.size());
    disk.zero_out(0, length)?;
    disk.zero_out(disk.size() - length, length)?;
    disk.flush()
}

/// Removes every signature from a disk: those inside everything that a table on it ever called a partition first,
/// because no tool finds them any more once the tables are gone, and a later partition in the same place would revive
/// them (D20). The tables follow. Success is proven: libblkid recognises nothing any more, on the disk and in each of
/// these places.
///
/// # Errors
///
/// [`Error::Device`]; [`Error::Corrupted`] or [`Error::SignatureLeft`] when the disk still shows old content.
pub fn erase_metadata(disk: &dyn Sectors) -> Result<(), Error> {
    let tables = Tables::read(disk)?;
    tables.require_all_volumes(disk.path())?;
    let (volumes, areas) = (tables.volumes(), in_sectors(tables.areas(), disk));
    let whole = Partition::at(0, disk.size());
    let (inside, around) = (places_in(&volumes, disk)?, places_in(std::slice::from_ref(&whole), disk)?);
    zero(disk, &inside.without(&areas))?;
    disk.flush()?;
    zero(disk, &around)?;
    zero(disk, &areas)?;
    disk.flush()?;
    require_blank(disk)?;
    let everywhere: Vec<_> = std::iter::once(whole).chain(volumes).collect();
    require_unrecognised(disk, &everywhere)?;
    table::rescan(disk);
    Ok(())
}

/// Removes every signature from volumes of a disk, and changes no byte of the partitions `kept`, nor of the table that
/// leads to them: a volume that overlaps one of them is left as it is.
///
/// # Errors
///
/// As [`erase_metadata`].
pub(crate) fn erase_volumes(
    disk: &dyn Sectors,
    volumes: &[Partition],
    kept: &[Partition],
) -> Result<(), Error> {
    // What a damaged table is taken to name may lie anywhere, also where a sound one is.
    let table = (!kept.is_empty()).then(|| before_partitions(disk));
    let kept: Ranges = kept.iter().map(range).chain(table).collect();
    let doomed: Vec<_> = volumes.iter().filter(|volume| !kept.overlap(&range(volume))).cloned().collect();
    zero(disk, &places_in(&doomed, disk)?.without(&kept))?;
    disk.flush()?;
    require_unrecognised(disk, &doomed)
}

/// Zeros whatever a volume may be known by: its ends, and the places of copies.
///
/// # Errors
///
/// [`Error::Device`].
pub fn zero_signatures(disk: &dyn Sectors, volume: &Partition) -> Result<(), Error> {
    zero(disk, &places_in(std::slice::from_ref(volume), disk)?)
}

/// What lies before the first partition that systems see: the table that leads to it, and code of a boot loader.
fn before_partitions(disk: &dyn Sectors) -> Range<u64> {
    let table = PartitionTable::read(disk).ok();
    let first = table.and_then(|table| table.partitions().iter().map(|one| one.start).min());
    0..first.unwrap_or(disk.sector_size().into())
}

fn range(volume: &Partition) -> Range<u64> {
    volume.start..volume.start.saturating_add(volume.size)
}

/// The sectors in which volumes of a disk may have signatures. Some are found by what the volumes hold, so this comes
/// before anything is removed.
fn places_in(volumes: &[Partition], disk: &dyn Sectors) -> Result<Ranges, Error> {
    let places = volumes.iter().flat_map(|volume| places(volume.start, volume.size));
    Ok(in_sectors(places.chain(copies_in(volumes, disk)?).collect(), disk))
}

fn copies_in(volumes: &[Partition], disk: &dyn Sectors) -> Result<Vec<Range<u64>>, Error> {
    let mut source = DiskView::whole(disk);
    let mut copies = Vec::new();
    for volume in volumes {
        let found = map::superblock_copies(&mut source, volume.start, volume.size);
        copies.extend(found.map_err(|source| Error::Device {
            device: disk.path().to_owned(),
            action: "looking for copies of superblocks".to_owned(),
            source,
        })?);
    }
    Ok(copies)
}

fn in_sectors(ranges: Ranges, disk: &dyn Sectors) -> Ranges {
    ranges.in_sectors(disk.sector_size(), disk.size())
}

fn zero(disk: &dyn Sectors, ranges: &Ranges) -> Result<(), Error> {
    ranges.iter().try_for_each(|range| disk.zero_out(range.start, range.end - range.start))
}

fn require_blank(disk: &dyn Sectors) -> Result<(), Error> {
    let length = TABLES.min(disk.size());
    let mut content = AlignedBuffer::zeroed(length as usize);
    for offset in [0, disk.size() - length] {
        disk.read_exact_at(&mut content, offset)?;
        if !is_zero(&content) {
            return Err(Error::Corrupted { device: disk.path().to_owned(), what: "the erased end" });
        }
    }
    Ok(())
}

/// Makes sure that nothing is recognised in volumes whose known places are zero already. What a format has elsewhere
/// goes by the byte that shows it.
fn require_unrecognised(disk: &dyn Sectors, volumes: &[Partition]) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let left = map::contents(disk, volumes)?;
        if left.is_empty() {
            return Ok(());
        }
        let marks = left.iter().map(|content| content.mark..content.mark.saturating_add(1));
        zero(disk, &in_sectors(marks.collect(), disk))?;
        disk.flush()?;
    }
    match map::contents(disk, volumes)?.into_iter().next() {
        None => Ok(()),
        Some(left) => Err(Error::SignatureLeft {
            device: disk.path().to_owned(),
            content: left.kind,
            offset: left.mark,
        }),
    }
}

#[cfg(test)]
mod tests;
