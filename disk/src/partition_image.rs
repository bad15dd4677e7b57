//! Everything around a partition image: the table, and what the other partitions hold (section 6.2).
//!
//! The table is written last, so that nothing on the disk can be booted, or be taken for a system,
//! before the image in its root partition is proven.

use crate::config_drive::ConfigDrive;
use crate::error::Error;
use crate::filesystem;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::layout::{Layout, Place, Role};
use crate::table::{self, Partition, PartitionTable};
use crate::wipe;
use std::io;
use std::path::PathBuf;

/// Labels by which deployed systems and operators know these file systems.
const ESP_LABEL: &str = "efi-part";
const SWAP_LABEL: &str = "swap1";

/// What a conductor asks about a deployed partition image (section 5.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifiers {
    /// Each partition and its device node.
    pub partitions: Vec<(Role, PathBuf)>,
    /// Identity of the file system in root, else of the partition.
    pub root: String,
    /// Identity of the file system in the EFI system partition.
    pub esp: Option<String>,
    /// Identity of the PReP partition.
    pub prep: Option<String>,
}

/// Makes the disk ready for the image: without any old metadata, or, when `keeps_table` is set, with the
/// very partitions of the layout, whose ephemeral one stays as it is.
///
/// # Errors
///
/// [`Error::NoRoom`] before anything is written: the partitions to keep are other ones.
/// [`Error::Protected`], [`Error::Corrupted`] or [`Error::Device`].
pub fn prepare(disk: &dyn Sectors, layout: &Layout, keeps_table: bool) -> Result<(), Error> {
    if keeps_table {
        let found = PartitionTable::read(disk)?;
        let place = |partition: &Partition| (partition.number, partition.start, partition.size);
        let wanted = layout.places.iter().map(|place| (place.number, place.start, place.size));
        if found.partitions().iter().map(place).eq(wanted) {
            return Ok(());
        }
        return Err(Error::NoRoom {
            device: disk.path().to_owned(),
            reason: "preserve_ephemeral is set and the disk has other partitions than are asked for; \
                     ask for the same sizes as before, or give the ephemeral partition up"
                .to_owned(),
        });
    }
    wipe::erase_metadata(disk)
}

/// Fills the partitions around the image, writes the table, and returns the role of each partition. The image is in its
/// place already.
///
/// # Errors
///
/// [`Error::NoPlaceForConfigDrive`], [`Error::InvalidConfigDrive`], [`Error::Corrupted`] or
/// [`Error::Device`].
pub fn finish(
    disk: &dyn Sectors,
    layout: &Layout,
    keeps_table: bool,
    config_drive: Option<&ConfigDrive>,
) -> Result<Identifiers, Error> {
    for place in &layout.places {
        match (place.role, config_drive) {
            (Role::Root, _) => {}
            (Role::Ephemeral, _) if keeps_table => {}
            (Role::ConfigDrive, Some(drive)) => drive.write_into(disk, &as_partition(place))?,
            _ => fill(disk, layout, place).map_err(|source| Error::Device {
                device: disk.path().to_owned(),
                action: format!("making the {} partition", place.role.name()),
                source,
            })?,
        }
    }
    disk.flush()?;
    let table = if keeps_table {
        PartitionTable::read(disk)?
    } else {
        PartitionTable::create(disk, layout.table, &layout.partitions())?
    };
    identify(disk, layout, &table)
}

fn fill(disk: &dyn Sectors, layout: &Layout, place: &Place) -> io::Result<()> {
    wipe::zero_signatures(disk, &as_partition(place)).map_err(io::Error::other)?;
    let mut volume = DiskView::range(disk, place.start, place.size);
    match place.role {
        Role::Esp => filesystem::make_vfat(&mut volume, ESP_LABEL, disk.sector_size()),
        Role::Ephemeral => layout.ephemeral_format.make(disk, place.start, place.size),
        Role::Swap => filesystem::make_swap(&mut volume, SWAP_LABEL, place.size),
        Role::BiosBoot | Role::PrepBoot | Role::ConfigDrive | Role::Root => Ok(()),
    }
}

/// A place as code that knows partitions wants it.
fn as_partition(place: &Place) -> Partition {
    Partition { number: place.number, ..Partition::at(place.start, place.size) }
}

/// Reads the identities back from the disk, where they are what a boot loader will find (D17).
fn identify(disk: &dyn Sectors, layout: &Layout, table: &PartitionTable) -> Result<Identifiers, Error> {
    let identity = |role: Role| -> Result<Option<String>, Error> {
        let Some(place) = layout.places.iter().find(|place| place.role == role) else { return Ok(None) };
        let signatures = disk.signatures(place.start, place.size)?;
        let uuid = signatures.into_iter().find_map(|signature| signature.uuid);
        Ok(uuid.or_else(|| {
            table.partitions().iter().find(|one| one.number == place.number).map(Partition::partuuid)
        }))
    };
    let path = |place: &Place| (place.role, table::partition_path(disk.path(), place.number));
    Ok(Identifiers {
        partitions: layout.places.iter().map(path).collect(),
        root: identity(Role::Root)?.unwrap_or_default(),
        esp: identity(Role::Esp)?,
        prep: identity(Role::PrepBoot)?,
    })
}

#[cfg(test)]
mod tests;
