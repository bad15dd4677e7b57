//! What lies on a disk, described once for everything that chooses, keeps, makes or erases: every copy of a partition
//! table with what it names, which of them is believed, and every signature by which content is known.
//!
//! # Which table is believed
//!
//! A disk that had several lives may carry several tables. Linux, libblkid, parted, GRUB and the firmware of EDK2 agree
//! about the first question: a GPT counts only where the first sector, signed with 55 AA, has an entry of type EE.
//! Linux and EDK2 also want that entry to begin at sector 1. Without it the entries of the first sector are the table,
//! whatever lies behind them; this is what [`PartitionTable::read`] gives, and what [`DiskMap::live`] holds.
//!
//! | first sector | GPT in sector 1 | Linux | libblkid | EDK2 | here |
//! |---|---|---|---|---|---|
//! | entries, none of type EE | sound, damaged or none | MBR | MBR | MBR | MBR |
//! | EE from sector 1, also beside others (hybrid) | sound | GPT | GPT | GPT | GPT |
//! | EE from sector 1 | damaged or none | nothing | backup at the end | backup, and writes it back | damaged |
//! | EE from another sector | any | nothing | GPT | nothing | damaged |
//! | no entries | sound | nothing | nothing | nothing | damaged |
//! | no entries | none | nothing | nothing | nothing | nothing |
//!
//! Where readers differ nobody guesses: the table is damaged, and an error wherever something is chosen, kept or made.
//! A hybrid is a GPT whose MBR repeats some of its partitions for old boot loaders. One whose MBR names anything else
//! has two meanings, and [`finish_image`](crate::table::finish_image) refuses it.
//!
//! A GPT that is left behind a plain MBR stays where an image has it. Nobody reads it, its primary copy lies where boot
//! loaders for BIOS keep their code, its backup lies in the last partition, and the bytes of an image are proven:
//! removing it would change what was proven for no reader's sake. Erasing removes it with all that it names.
//!
//! # Where erasing looks
//!
//! In every copy, also one that nobody believes: primary and backup GPT, the copy to which a header refers, tables for
//! sectors of another size, headers whose mark was wiped (`wipefs` takes eight bytes, and the checksum proves the
//! rest), arrays of entries without a header, MBRs without their signature, the chains of logical partitions, and the
//! [labels] of other systems, on the disk and in its partitions. Tables of Amiga, Atari, AIX, Acorn, UnixWare and Ultrix,
//! and those of dynamic disks, go with the ends of the disk; what only they name is not looked for.
//! Ranges that are named by chance cost some zeros on a disk that is erased anyway.

mod arrays;
mod copy;
mod gpt_copies;
mod labels;
mod mbr_copies;
mod places;
mod ranges;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub use copy::{CopyKind, TableCopy};
pub use places::places;
pub(crate) use places::superblock_copies;
pub use ranges::Ranges;
pub use tables::Tables;

use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::table::{Geometry, Partition, PartitionTable};
use farrier_linux::blkid::{self, Signature};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// Content that was recognised on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// libblkid's name of its kind, such as `ext4` or `linux_raid_member`.
    pub kind: String,
    /// Label of the file system.
    pub label: Option<String>,
    /// First byte of the volume that it fills: 0 where that is the disk.
    pub volume: u64,
    /// Where on the disk its mark lies, in bytes.
    pub mark: u64,
}

/// What lies on a disk.
#[derive(Debug)]
pub struct DiskMap {
    path: PathBuf,
    tables: Tables,
    contents: Vec<Content>,
}

impl DiskMap {
    /// Reads a disk that may be written.
    ///
    /// # Errors
    ///
    /// [`Error::Device`]: what cannot be read is not empty.
    pub fn read(disk: &dyn Sectors) -> Result<Self, Error> {
        let tables = Tables::read(disk)?;
        let contents = contents(disk, &with_whole(disk.size(), &tables.volumes()))?;
        Ok(Self { path: disk.path().to_owned(), tables, contents })
    }

    /// Reads a disk at `path` that is open as `file`, by buffered access.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn read_file(file: &mut File, path: &Path, geometry: Geometry) -> Result<Self, Error> {
        let failed = |source| Error::Device {
            device: path.to_owned(),
            action: "reading what lies on it".to_owned(),
            source,
        };
        let tables = Tables::parse(file, geometry).map_err(failed)?;
        let volumes = with_whole(geometry.size, &tables.volumes());
        let look = |start, size| blkid::signatures(file, start, size).map_err(failed);
        let mut contents = recognised(&volumes, look)?;
        contents.extend(copies_in(file, &volumes).map_err(failed)?);
        Ok(Self { path: path.to_owned(), tables, contents })
    }

    /// The tables on it.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The table that kernels and firmware believe; one without partitions where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`]: it is damaged, or only a part of one is left, which may name anything.
    pub fn live(&self) -> Result<&PartitionTable, Error> {
        self.tables.live(&self.path)
    }

    /// As [`DiskMap::live`], with the table.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn into_live(self) -> Result<PartitionTable, Error> {
        self.tables.into_live(&self.path)
    }

    /// What was recognised on the disk as a whole and in everything that a table, sound or not, ever called a
    /// partition.
    pub fn contents(&self) -> &[Content] {
        &self.contents
    }

    /// Why it is not empty; nothing where no table is damaged or names a partition, and nothing is recognised. A table
    /// whose mark was wiped is no table any more, but what is recognised in its partitions counts.
    pub fn occupant(&self) -> Option<String> {
        self.occupant_beside(&[])
    }

    /// As [`DiskMap::occupant`], beside the partitions `kept`.
    pub fn occupant_beside(&self, kept: &[Partition]) -> Option<String> {
        if let Err(error) = self.live() {
            return Some(error.to_string());
        }
        let is_kept = |start: u64| kept.iter().any(|one| (one.start..one.start + one.size).contains(&start));
        if let Some(one) = self.tables.named().iter().find(|one| !is_kept(one.start)) {
            return Some(format!("a partition of {} MiB at {} MiB", one.size >> 20, one.start >> 20));
        }
        if let Some(damaged) = self.tables.copies().iter().find(|copy| copy.fault.is_some()) {
            return Some(format!("the damaged {damaged}"));
        }
        let found = self.contents.iter().find(|content| !is_kept(content.mark));
        found.map(|content| format!("{} with its mark at byte {}", content.kind, content.mark))
    }
}

/// The disk as a whole, and these partitions of it.
fn with_whole(size: u64, partitions: &[Partition]) -> Vec<Partition> {
    std::iter::once(Partition::at(0, size)).chain(partitions.iter().cloned()).collect()
}

/// What is recognised in these volumes of a disk.
///
/// # Errors
///
/// [`Error::Device`].
pub(crate) fn contents(disk: &dyn Sectors, volumes: &[Partition]) -> Result<Vec<Content>, Error> {
    let mut contents = recognised(volumes, |start, size| disk.signatures(start, size))?;
    let copies = copies_in(&mut DiskView::whole(disk), volumes);
    contents.extend(copies.map_err(|source| Error::Device {
        device: disk.path().to_owned(),
        action: "looking for copies of superblocks".to_owned(),
        source,
    })?);
    Ok(contents)
}

fn recognised(
    volumes: &[Partition],
    look: impl Fn(u64, u64) -> Result<Vec<Signature>, Error>,
) -> Result<Vec<Content>, Error> {
    let mut contents = Vec::new();
    for volume in volumes.iter().filter(|one| one.size > 0) {
        let found = look(volume.start, volume.size)?.into_iter();
        contents.extend(found.map(|found| Content {
            mark: volume.start + found.mark,
            kind: found.kind,
            label: found.label,
            volume: volume.start,
        }));
    }
    Ok(contents)
}

/// Copies of superblocks that libblkid does not look for.
fn copies_in(source: &mut (impl Read + Seek), volumes: &[Partition]) -> io::Result<Vec<Content>> {
    let mut contents = Vec::new();
    for volume in volumes {
        for (kind, mark) in places::copies_in(source, volume.start, volume.size)? {
            contents.push(Content { kind: kind.to_owned(), label: None, volume: volume.start, mark });
        }
    }
    Ok(contents)
}
