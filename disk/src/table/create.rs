//! Writing a partition table anew.

use super::gpt::Gpt;
use super::{Geometry, Partition, PartitionKind, PartitionTable, mbr};
use crate::error::Error;
use crate::guard::WritableDisk;

/// Kind of a partition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// GUID partition table.
    Gpt,
    /// Master boot record, `msdos` to other tools.
    Mbr,
}

/// A partition to be.
#[derive(Debug, Clone)]
pub struct NewPartition {
    /// First byte on the disk.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// What the table is to say about it; of the same kind as the table.
    pub kind: PartitionKind,
    /// Whether an MBR marks it as the one to boot from.
    pub is_booted: bool,
    /// Name in a GPT, ASCII.
    pub name: &'static str,
}

impl PartitionTable {
    /// Writes a table with these partitions, numbered from 1, reads it back and shows it to the kernel.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] or [`Error::Device`].
    pub(crate) fn create(
        disk: &WritableDisk,
        kind: TableKind,
        partitions: &[NewPartition],
    ) -> Result<Self, Error> {
        match kind {
            TableKind::Gpt => {
                let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
                Gpt::new(geometry, partitions).write_new(disk)?;
            }
            TableKind::Mbr => mbr::write_new(disk, partitions)?,
        }
        disk.flush()?;
        let written = Self::read(disk)?;
        let place = |partition: &Partition| (partition.start, partition.size);
        let wanted = partitions.iter().map(|partition| (partition.start, partition.size));
        if !written.partitions().iter().map(place).eq(wanted) {
            return Err(Error::Corrupted { device: disk.path().to_owned(), what: "the partition table" });
        }
        super::rescan(disk);
        Ok(written)
    }
}
