//! Partition tables: what an image brought, and the small changes a deployment makes to them.

mod create;
pub mod first_sector;
mod gpt;
mod hybrid;
mod mbr;
pub mod reach;
pub mod types;

pub use create::{NewPartition, TableKind};
pub(crate) use gpt::field as gpt_field;

use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use gpt::Gpt;
use mbr::Mbr;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Length of the boot code that no table and no disk identifier reaches into, in its oldest form.
const BOOT_CODE: usize = 218;

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Number as in device names; gaps are possible.
    pub number: u32,
    /// First byte on the disk.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// What the table says about it.
    pub kind: PartitionKind,
}

impl Partition {
    /// A range of a disk that no table describes.
    pub fn at(start: u64, size: u64) -> Self {
        Self { number: 0, start, size, kind: PartitionKind::Mbr { type_id: 0, disk_identifier: 0 } }
    }

    /// Its identity, as `/dev/disk/by-partuuid` has it.
    pub fn partuuid(&self) -> String {
        match self.kind {
            PartitionKind::Gpt { guid, .. } => guid.to_string(),
            PartitionKind::Mbr { disk_identifier, .. } => {
                format!("{disk_identifier:08x}-{:02x}", self.number)
            }
        }
    }

    /// Whether firmware or a boot loader owns it: an EFI system partition, or one for GRUB's core.
    pub(crate) fn is_for_firmware(&self) -> bool {
        match self.kind {
            PartitionKind::Gpt { type_guid, .. } => {
                [types::gpt::ESP, types::gpt::BIOS_BOOT].contains(&type_guid)
            }
            PartitionKind::Mbr { type_id, .. } => type_id == types::mbr::ESP,
        }
    }
}

/// What a partition table says about the use of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionKind {
    /// An entry of a GPT.
    Gpt {
        /// Type of the content.
        type_guid: Uuid,
        /// Identity of the partition.
        guid: Uuid,
    },
    /// An entry of an MBR or of its extended partition.
    Mbr {
        /// Type of the content.
        type_id: u8,
        /// Identifier of the disk, the same for all partitions.
        disk_identifier: u32,
    },
}

/// What a table has to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of the disk.
    pub size: u64,
    /// Bytes of a logical sector.
    pub sector_size: u32,
}

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// There is one that is damaged or made for another disk.
    #[error("{0}")]
    Invalid(String),
    /// The bytes cannot be read.
    #[error("reading the partition table failed: {0}")]
    Unreadable(#[from] io::Error),
}

impl ParseError {
    /// The error of the disk at `device`.
    pub(crate) fn of(self, device: &Path) -> Error {
        let device = device.to_owned();
        match self {
            Self::Invalid(reason) => Error::InvalidTable { device, reason },
            Self::Unreadable(source) => {
                Error::Device { device, action: "reading its partition table".to_owned(), source }
            }
        }
    }
}

/// The partition table of a disk.
#[derive(Debug)]
pub struct PartitionTable(Kind);

#[derive(Debug)]
enum Kind {
    Gpt(Gpt),
    Mbr(Mbr),
    None,
}

impl PartitionTable {
    /// Reads and validates the table (D13).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`] when there is one that is damaged, or made for another sector size (F11).
    pub fn read(disk: &dyn Sectors) -> Result<Self, Error> {
        let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
        Self::parse(&mut DiskView::whole(disk), geometry).map_err(|error| error.of(disk.path()))
    }

    /// Reads and validates the table of anything that can be read like a disk.
    ///
    /// # Errors
    ///
    /// [`ParseError`].
    pub fn parse(source: &mut (impl Read + Seek), geometry: Geometry) -> Result<Self, ParseError> {
        let invalid = |reason: &str| ParseError::Invalid(reason.to_owned());
        if first_sector::announces_gpt(&first_sector::read(source, geometry.size)?) {
            let gpt = Gpt::parse(source, geometry)?;
            let gpt = gpt.ok_or_else(|| invalid("a protective MBR announces a GPT that is not there"))?;
            return Ok(Self(Kind::Gpt(gpt)));
        }
        if let Some(mbr) = Mbr::parse(source, geometry)? {
            return Ok(Self(Kind::Mbr(mbr)));
        }
        match Gpt::parse(source, geometry)? {
            Some(_) => Err(invalid(
                "the first sector has no protective entry for its GPT (type EE from sector 1), so no system \
                 believes that",
            )),
            None => Ok(Self(Kind::None)),
        }
    }

    /// What a disk without a table has.
    pub(crate) fn none() -> Self {
        Self(Kind::None)
    }

    /// One of these partitions that would be lost when others are made or removed: a logical one, whose place in the
    /// table is a chain through the others.
    pub(crate) fn unkeepable<'a>(&self, kept: &'a [Partition]) -> Option<&'a Partition> {
        match &self.0 {
            Kind::Mbr(_) => kept.iter().find(|one| one.number > first_sector::ENTRY_COUNT as u32),
            _ => None,
        }
    }

    /// Type of the table as tools name it: `gpt`, `msdos` or `none`.
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Gpt(_) => "gpt",
            Kind::Mbr(_) => "msdos",
            Kind::None => "none",
        }
    }

    /// The partitions, by number.
    pub fn partitions(&self) -> &[Partition] {
        match &self.0 {
            Kind::Gpt(gpt) => gpt.partitions(),
            Kind::Mbr(mbr) => mbr.partitions(),
            Kind::None => &[],
        }
    }

    /// The EFI system partition (section 6.4). In an MBR without one it is the FAT partition that is flagged
    /// to be booted from: older tools know no other flag (F20).
    pub fn esp(&self) -> Option<&Partition> {
        let typed = self.partitions().iter().find(|partition| match partition.kind {
            PartitionKind::Gpt { type_guid, .. } => type_guid == types::gpt::ESP,
            PartitionKind::Mbr { type_id, .. } => type_id == types::mbr::ESP,
        });
        match &self.0 {
            Kind::Mbr(mbr) => typed.or_else(|| mbr.booted_fat()),
            _ => typed,
        }
    }

    /// Adds a partition of `size` bytes at the end of the disk and tells the kernel (section 6.5).
    ///
    /// It is found again by a GUID chosen beforehand, or as the one number that was free (D12); every
    /// identifier in the table is left as it is (D15).
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`] when it does not fit, or [`Error::Device`].
    pub(crate) fn add_at_end(self, disk: &dyn Sectors, size: u64) -> Result<Partition, Error> {
        let no_place = |reason: &str| Error::NoPlaceForConfigDrive {
            device: disk.path().to_owned(),
            reason: reason.to_owned(),
        };
        let partition = match self.0 {
            Kind::Gpt(mut gpt) => gpt.add_at_end(disk, size)?,
            Kind::Mbr(mut mbr) => mbr.add_at_end(disk, size)?,
            Kind::None => return Err(no_place("the disk has no partition table; check the image")),
        };
        disk.flush()?;
        let found = Self::read(disk)?;
        if !found.partitions().contains(&partition) {
            return Err(no_place("the new partition is missing from the table that was read back"));
        }
        Ok(partition)
    }
}

/// Makes the table of a freshly written image fit its disk (section 5.2, step 5, and section 5.4).
///
/// There has to be a table with at least one partition; the backup of a GPT moves to the end (D05). A GPT whose MBR
/// names other partitions is refused: systems would see different ones. One behind an MBR without a protective entry
/// is none ([`map`](crate::map)), and stays as the image has it.
///
/// # Errors
///
/// [`Error::InvalidTable`], [`Error::NoPartitions`] or [`Error::Device`].
pub fn finish_image(disk: &dyn Sectors) -> Result<PartitionTable, Error> {
    let mut table = PartitionTable::read(disk)?;
    if table.partitions().is_empty() {
        return Err(Error::NoPartitions { device: disk.path().to_owned() });
    }
    if let Kind::Gpt(gpt) = &mut table.0 {
        hybrid::require_agreement(disk, gpt.partitions())?;
        gpt.move_backup_to_end(disk)?;
        disk.flush()?;
    }
    rescan(disk);
    Ok(table)
}

/// The disk identifier as the conductor knows it, `0x%08x` (section 5.2, step 7).
///
/// # Errors
///
/// [`Error::Device`].
pub fn disk_identifier(disk: &dyn Sectors) -> Result<String, Error> {
    let mut bytes = [0; 4];
    read_at(disk, first_sector::IDENTIFIER as u64, &mut bytes)?;
    Ok(format!("0x{:08x}", u32::from_le_bytes(bytes)))
}

/// Whether the first sector holds code that a BIOS runs.
///
/// # Errors
///
/// [`Error::Device`].
pub fn has_boot_code(disk: &dyn Sectors) -> Result<bool, Error> {
    let mut code = [0; BOOT_CODE];
    read_at(disk, 0, &mut code)?;
    Ok(code.iter().any(|byte| *byte != 0))
}

/// Device node of a partition: disks whose names end with a digit put a `p` before the number (F18).
pub fn partition_path(disk: &Path, number: u32) -> PathBuf {
    let name = disk.display().to_string();
    let separator = if name.ends_with(|letter: char| letter.is_ascii_digit()) { "p" } else { "" };
    PathBuf::from(format!("{name}{separator}{number}"))
}

/// Shows the kernel the new partitions; Farrier itself works on the disk, so a refusal is only logged.
pub(crate) fn rescan(disk: &dyn Sectors) {
    if let Err(error) = disk.reread_partitions() {
        tracing::warn!("{error}");
    }
}

/// The checksum of a GPT's header and of its entries.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Fills `buffer` from any offset.
pub(crate) fn read_at(disk: &dyn Sectors, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
    read_exact_at(&mut DiskView::whole(disk), offset, buffer).map_err(|source| Error::Device {
        device: disk.path().to_owned(),
        action: format!("reading {} bytes at {offset}", buffer.len()),
        source,
    })
}

/// Fills `buffer` from any offset of anything that can be read.
pub(crate) fn read_exact_at(
    source: &mut (impl Read + Seek),
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    source.seek(SeekFrom::Start(offset))?;
    source.read_exact(buffer)
}

#[cfg(test)]
pub(crate) mod tests;
