//! Writing a partition table anew, or again with some of its partitions.

use super::{Kind, Partition, PartitionKind, PartitionTable, gpt, mbr};
use crate::error::Error;
use crate::io::Sectors;

/// Kind of a partition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// GUID partition table.
    Gpt,
    /// Master boot record, `msdos` to other tools.
    Mbr,
}

/// A partition to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPartition {
    /// Number, from 1 on.
    pub number: u32,
    /// First byte on the disk.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Its entry in the table; of the same kind as the table.
    pub kind: PartitionKind,
    /// Whether an MBR marks it as the one to boot from.
    pub is_booted: bool,
    /// Name in a GPT, ASCII.
    pub name: String,
}

impl PartitionTable {
    /// Writes a table with these partitions, reads it back and shows it to the kernel.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] or [`Error::Device`].
    pub(crate) fn create(
        disk: &dyn Sectors,
        kind: TableKind,
        partitions: &[NewPartition],
    ) -> Result<Self, Error> {
        match kind {
            TableKind::Gpt => gpt::write_new(disk, partitions)?,
            TableKind::Mbr => mbr::write_new(disk, partitions)?,
        }
        Self::read_back(disk, &[], partitions)
    }

    /// Writes the table again with nothing but the partitions `kept`, as they are, and those `added`;
    /// reads it back and shows it to the kernel.
    ///
    /// # Errors
    ///
    /// As [`PartitionTable::create`].
    pub(crate) fn rearrange(
        self,
        disk: &dyn Sectors,
        kept: &[Partition],
        added: &[NewPartition],
    ) -> Result<Self, Error> {
        match self.0 {
            Kind::Gpt(mut gpt) => gpt.rearrange(disk, kept, added)?,
            Kind::Mbr(_) => mbr::rearrange(disk, kept, added)?,
            Kind::None => {}
        }
        Self::read_back(disk, kept, added)
    }

    fn read_back(disk: &dyn Sectors, kept: &[Partition], added: &[NewPartition]) -> Result<Self, Error> {
        disk.flush()?;
        let written = Self::read(disk)?;
        let mut wanted: Vec<_> = added.iter().map(|one| (one.number, one.start, one.size)).collect();
        wanted.extend(kept.iter().map(|one| (one.number, one.start, one.size)));
        wanted.sort_unstable();
        let found = written.partitions().iter().map(|one| (one.number, one.start, one.size));
        if !found.eq(wanted) {
            return Err(Error::Corrupted { device: disk.path().to_owned(), what: "the partition table" });
        }
        super::rescan(disk);
        Ok(written)
    }
}
