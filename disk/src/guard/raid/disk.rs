//! A disk that gets and loses members of arrays, beside those that stay.

use crate::device::BlockDevice;
use crate::error::Error;
use crate::guard::shared;
use crate::io::{Sectors, WritableDisk};
use crate::map::DiskMap;
use crate::md::MemberDevice;
use crate::table::{self, NewPartition, Partition, PartitionTable, TableKind};
use crate::wipe;
use std::path::Path;

/// A disk that is open to have partitions made and removed, but for those of kept volumes.
#[derive(Debug)]
pub struct RaidDisk {
    pub(super) disk: WritableDisk,
    pub(super) map: DiskMap,
    pub(super) kept: Vec<Partition>,
    /// Names of the arrays that it or its partitions have superblocks of.
    pub(super) members_of: Vec<String>,
    /// The disk, and what other machines may be using of what does not stay on it.
    pub(super) device: BlockDevice,
    pub(super) shared: Option<String>,
}

impl RaidDisk {
    /// Path of the device node.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The partitions that stay.
    pub fn kept(&self) -> &[Partition] {
        &self.kept
    }

    /// Names of the arrays that it or its partitions are members of.
    pub fn members_of(&self) -> &[String] {
        &self.members_of
    }

    /// What keeps it from getting partitions, in words: a table that is damaged or half gone, a partition that does
    /// not stay, content of any kind. Nothing where only what stays is on it.
    pub fn occupant(&self) -> Option<String> {
        let member = || "a member of an array".to_owned();
        self.map
            .occupant_beside(&self.kept)
            .or_else(|| (self.kept.is_empty() && !self.members_of.is_empty()).then(member))
    }

    /// Whether nothing but what stays is on it.
    pub fn is_free(&self) -> bool {
        self.occupant().is_none()
    }

    /// Makes sure that it is free for partitions beside those that stay. What cannot be read, is damaged, or is of a
    /// kind that has nothing to do with arrays still has an owner.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`], [`Error::Raid`] or [`Error::InvalidTable`].
    pub fn require_free(&self) -> Result<(), Error> {
        self.require_unshared()?;
        if let Some(occupant) = self.occupant() {
            return Err(Error::Raid {
                device: self.path().to_owned(),
                reason: format!(
                    "it holds {occupant}; run delete_configuration or erase_devices_metadata first, or leave it out \
                     with physical_disks"
                ),
            });
        }
        match self.map.live()?.unkeepable(&self.kept) {
            Some(logical) => Err(not_rearrangeable(self.path(), logical)),
            None => Ok(()),
        }
    }

    /// Makes sure that nothing is lost with it that other machines may be using.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`].
    pub fn require_unshared(&self) -> Result<(), Error> {
        shared::refuse(&self.device, self.shared.clone())
    }

    /// Removes all partitions but those that stay, with everything by which they could be revived; a disk
    /// on which nothing stays loses its table too (D20), and one on which all stays is not written.
    ///
    /// # Errors
    ///
    /// [`Error::Protected`]; [`Error::Raid`] when a table cannot be
    /// changed without what stays; what [`wipe::erase_metadata`] brings.
    pub fn clear(self) -> Result<(), Error> {
        self.require_unshared()?;
        if self.kept.is_empty() {
            return wipe::erase_metadata(&self.disk);
        }
        let table = self.map.live()?;
        if doomed(table, &self.kept).is_empty() {
            return Ok(());
        }
        require_rearrangeable(self.path(), table, &self.kept)?;
        wipe::erase_volumes(&self.disk, &self.map.tables().volumes(), &self.kept)?;
        self.map.into_live()?.rearrange(&self.disk, &self.kept, &[]).map(drop)
    }

    /// Makes these partitions, empties their ends, and gives the device nodes in the same order. A disk
    /// without partitions gets a new table of this kind.
    ///
    /// # Errors
    ///
    /// Those of [`RaidDisk::require_free`], [`Error::Corrupted`], [`Error::SignatureLeft`] or [`Error::Device`].
    pub fn add(self, kind: TableKind, partitions: &[NewPartition]) -> Result<Vec<MemberDevice>, Error> {
        self.require_free()?;
        let path = self.path().to_owned();
        let table = self.map.into_live()?;
        if self.kept.is_empty() {
            wipe::wipe_ends(&self.disk)?;
        }
        let volumes: Vec<_> = partitions.iter().map(|one| Partition::at(one.start, one.size)).collect();
        wipe::erase_volumes(&self.disk, &volumes, &self.kept)?;
        if self.kept.is_empty() {
            PartitionTable::create(&self.disk, kind, partitions)?;
        } else {
            table.rearrange(&self.disk, &self.kept, partitions)?;
        }
        let node = |one: &NewPartition| MemberDevice::at(table::partition_path(&path, one.number));
        Ok(partitions.iter().map(node).collect())
    }
}

/// Whether two partitions have a byte in common.
pub(super) fn overlap(one: &Partition, other: &Partition) -> bool {
    one.start < other.start + other.size && other.start < one.start + one.size
}

/// What of a table goes, when these partitions stay.
fn doomed<'a>(table: &'a PartitionTable, kept: &[Partition]) -> Vec<&'a Partition> {
    let overlap = |one: &Partition, two: &Partition| {
        one.start < two.start + two.size && two.start < one.start + one.size
    };
    let stays = |one: &&Partition| kept.iter().any(|kept| overlap(one, kept));
    table.partitions().iter().filter(|one| !stays(one)).collect()
}

/// Refuses a table from which others cannot be removed without the kept ones.
///
/// # Errors
///
/// [`Error::Raid`].
pub(super) fn require_rearrangeable(
    device: &Path,
    table: &PartitionTable,
    kept: &[Partition],
) -> Result<(), Error> {
    match table.unkeepable(kept) {
        Some(logical) if !doomed(table, kept).is_empty() => Err(not_rearrangeable(device, logical)),
        _ => Ok(()),
    }
}

fn not_rearrangeable(device: &Path, logical: &Partition) -> Error {
    Error::Raid {
        device: device.to_owned(),
        reason: format!(
            "partition {}, which skip_block_devices keeps, is a logical one, and its table cannot be changed without \
             it; nothing was written: name the disk itself in skip_block_devices, or give the volume up",
            logical.number
        ),
    }
}
