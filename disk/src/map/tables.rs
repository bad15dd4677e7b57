//! Every copy of a partition table on a disk, and the one that is believed.

use super::copy::{CopyKind, TableCopy};
use super::ranges::Ranges;
use super::{gpt_copies, labels, mbr_copies};
use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::md::superblock::Superblock;
use crate::table::{Geometry, ParseError, Partition, PartitionTable, read_exact_at};
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::Path;

/// Partitions that are looked at on one disk; hostile tables name more.
const MOST: usize = 4096;

/// The partition tables of a disk.
#[derive(Debug)]
pub struct Tables {
    live: Result<PartitionTable, String>,
    found: Found,
    /// The distinct partitions that a copy with its mark names.
    named: Vec<Partition>,
    /// These, and what else may have content.
    volumes: Vec<Partition>,
    size: u64,
}

/// What was found of tables.
#[derive(Debug, Default)]
pub struct Found {
    /// The copies that have their mark.
    pub copies: Vec<TableCopy>,
    /// What the others name.
    former: Vec<Partition>,
    /// The bytes of all of them.
    pub areas: Vec<Range<u64>>,
}

impl Found {
    /// Adds partitions of a table without its mark.
    pub fn add_former(&mut self, partitions: Vec<Partition>) {
        self.former.extend(partitions);
    }

    /// Adds what was found in a volume that begins at byte `start`.
    fn add_inside(&mut self, inside: Self, start: u64) {
        let moved = inside.partitions().map(|one| Partition { start: one.start + start, ..one.clone() });
        self.former.extend(moved.collect::<Vec<_>>());
        self.areas.extend(inside.areas.iter().map(|area| area.start + start..area.end + start));
    }

    /// Whatever one of them names.
    fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.copies.iter().flat_map(|copy| &copy.partitions).chain(&self.former)
    }
}

impl Tables {
    /// Reads a disk that may be written.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn read(disk: &dyn Sectors) -> Result<Self, Error> {
        let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
        Self::parse(&mut DiskView::whole(disk), geometry).map_err(|source| Error::Device {
            device: disk.path().to_owned(),
            action: "reading its partition tables".to_owned(),
            source,
        })
    }

    /// Reads anything that can be read like a disk.
    ///
    /// # Errors
    ///
    /// What reading the places of tables brings: one that cannot be read may name anything.
    pub fn parse(source: &mut (impl Read + Seek), geometry: Geometry) -> io::Result<Self> {
        let live = match PartitionTable::parse(source, geometry) {
            Ok(table) => Ok(table),
            Err(ParseError::Invalid(reason)) => Err(reason),
            Err(ParseError::Unreadable(error)) => return Err(error),
        };
        let mut found = find(source, 0, geometry.size, geometry.sector_size)?;
        let volumes = distinct(found.partitions().cloned().collect::<Vec<_>>().into_iter());
        for volume in volumes.iter().take(MOST) {
            let mut inside = Found::default();
            let mut window = Window { source, start: volume.start, size: volume.size };
            // One that cannot be read shows no system a label, and whoever wants it empty looks at it again.
            if labels::find(&mut window, volume.start, &mut inside).is_ok() {
                found.add_inside(inside, volume.start);
            }
        }
        let believed = live.iter().flat_map(|table| table.partitions()).filter(|one| one.size > 0);
        let named = believed.chain(found.copies.iter().flat_map(|copy| &copy.partitions));
        let named = distinct(named.cloned());
        for (start, size) in arrays_data(source, geometry.size, &named, &found.former) {
            // What an array holds begins on its members, and comes back with an array of the same kind.
            found.former.push(Partition::at(start, size));
            let Ok(inside) = find(source, start, size, geometry.sector_size) else { continue };
            found.add_inside(inside, start);
        }
        let volumes = distinct(named.iter().chain(&found.former).cloned());
        Ok(Self { live, found, named, volumes, size: geometry.size })
    }

    /// The table that is believed; one without partitions where there is none. `device` is for the error.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`].
    pub fn live(&self, device: &Path) -> Result<&PartitionTable, Error> {
        let invalid = |reason: String| Error::InvalidTable { device: device.to_owned(), reason };
        let table = self.live.as_ref().map_err(|reason| invalid(reason.clone()))?;
        if table.partitions().is_empty()
            && let Some(half) = self.half()
        {
            return Err(invalid(format!("only the {half} is left of it, and no system believes that alone")));
        }
        Ok(table)
    }

    /// As [`Tables::live`], with the table.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn into_live(self, device: &Path) -> Result<PartitionTable, Error> {
        self.live(device)?;
        self.live.map_err(|reason| Error::InvalidTable { device: device.to_owned(), reason })
    }

    /// The copies that have their mark, whether or not systems believe them.
    pub fn copies(&self) -> &[TableCopy] {
        &self.found.copies
    }

    /// Every distinct partition that one of the copies names, those of the table that is believed first. They may
    /// overlap.
    pub fn named(&self) -> &[Partition] {
        &self.named[..self.named.len().min(MOST)]
    }

    /// These, and what is named by tables that have lost their mark, or lies in arrays: everything in which content
    /// may be found again. Where these are too many to be examined, the rest is missing.
    pub fn volumes(&self) -> Vec<Partition> {
        self.volumes.iter().take(MOST).cloned().collect()
    }

    /// Makes sure that no volume is missing. `device` is for the error.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`].
    pub fn require_all_volumes(&self, device: &Path) -> Result<(), Error> {
        if self.volumes.len() <= MOST {
            return Ok(());
        }
        let reason = format!(
            "its copies name {} partitions, and at most {MOST} are read; erase all of the disk with \
             erase_devices",
            self.volumes.len()
        );
        Err(Error::InvalidTable { device: device.to_owned(), reason })
    }

    /// The bytes of the tables themselves, wherever they lie.
    pub fn areas(&self) -> Ranges {
        self.found.areas.iter().map(|area| area.start..area.end.min(self.size)).collect()
    }

    /// The GPT that names partitions on a disk without a table.
    fn half(&self) -> Option<&TableCopy> {
        let is_gpt = |kind: CopyKind| matches!(kind, CopyKind::PrimaryGpt | CopyKind::BackupGpt);
        self.copies().iter().find(|copy| is_gpt(copy.kind) && !copy.partitions.is_empty())
    }
}

/// Whatever is a table in `size` bytes from `start`.
fn find(source: &mut (impl Read + Seek), start: u64, size: u64, sector_size: u32) -> io::Result<Found> {
    let mut found = Found::default();
    let mut window = Window { source, start, size };
    mbr_copies::find(&mut window, sector_size, &mut found)?;
    gpt_copies::find(&mut window, &mut found)?;
    labels::find(&mut window, 0, &mut found)?;
    Ok(found)
}

/// Where arrays of software RAID have their data in the disk and in its partitions. A member that cannot be read is
/// passed over: no system starts an array of it, and whoever wants it empty looks at all of it again.
fn arrays_data(
    source: &mut (impl Read + Seek),
    size: u64,
    named: &[Partition],
    former: &[Partition],
) -> Vec<(u64, u64)> {
    let whole = Partition::at(0, size);
    let volumes = std::iter::once(&whole).chain(named).chain(former).take(MOST);
    let data = |volume: &Partition| {
        let superblock = Superblock::find(source, volume.start, volume.size).ok()??;
        let size = volume.size.checked_sub(superblock.data).filter(|size| *size > 0)?;
        Some((volume.start + superblock.data, size))
    };
    let mut found: Vec<_> = volumes.filter_map(data).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Partitions of the same place once, the first of each.
fn distinct(partitions: impl Iterator<Item = Partition>) -> Vec<Partition> {
    let mut places = std::collections::BTreeSet::new();
    partitions.filter(|one| places.insert((one.start, one.size))).collect()
}

/// A part of what is read, none of whose bytes is believed to be there.
#[derive(Debug)]
pub struct Window<'a, T> {
    source: &'a mut T,
    start: u64,
    size: u64,
}

impl<T: Read + Seek> Window<'_, T> {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// So many bytes from an offset; nothing where the part ends before.
    pub fn read(&mut self, offset: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
        if offset.checked_add(length).is_none_or(|end| end > self.size) {
            return Ok(None);
        }
        let mut bytes = vec![0; length as usize];
        read_exact_at(self.source, self.start + offset, &mut bytes)?;
        Ok(Some(bytes))
    }
}
