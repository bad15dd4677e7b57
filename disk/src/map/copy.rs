//! One copy of a partition table.

use crate::table::Partition;
use std::fmt;

/// Which copy of which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyKind {
    /// A GPT in the second sector.
    PrimaryGpt,
    /// A GPT elsewhere: in the last sector, or where a header refers to.
    BackupGpt,
    /// An MBR, with the logical partitions.
    Mbr,
    /// A disk label of another system, by its name.
    Foreign(&'static str),
}

/// A copy of a partition table that has its mark. What cannot be read of it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCopy {
    /// Which one.
    pub kind: CopyKind,
    /// Bytes of the sectors that it was made for.
    pub sector_size: u32,
    /// Its first byte on the disk.
    pub start: u64,
    /// What is wrong with it.
    pub fault: Option<String>,
    /// The partitions that it names, as far as they lie on the disk.
    pub partitions: Vec<Partition>,
}

impl fmt::Display for TableCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            CopyKind::PrimaryGpt => "GPT",
            CopyKind::BackupGpt => "backup GPT",
            CopyKind::Mbr => "MBR",
            CopyKind::Foreign(name) => name,
        };
        write!(f, "{name} at byte {}", self.start)?;
        self.fault.as_ref().map_or(Ok(()), |fault| write!(f, " ({fault})"))
    }
}
