//! Where the partitions of a partition image lie (section 6.2).
//!
//! One after the other from the first MiB on, in a fixed order; root is last, so that a deployed system
//! can make it larger.

use crate::config_drive::ConfigDrive;
use crate::ephemeral;
use crate::error::Error;
use crate::table::reach::{MBR_PARTITIONS, MBR_SECTORS, MIB, TAIL};
use crate::table::types::{gpt, mbr};
use crate::table::{Geometry, NewPartition, PartitionKind, TableKind};
use std::path::Path;
use uuid::Uuid;

/// Size of the deprecated PReP partition, in MiB.
const PREP_MIB: u64 = 8;

/// What a partition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The EFI system partition.
    Esp,
    /// Where GRUB keeps its core on a GPT without UEFI.
    BiosBoot,
    /// Where firmware of POWER machines finds its loader.
    PrepBoot,
    /// Scratch space that may outlive a rebuild.
    Ephemeral,
    /// Swap space.
    Swap,
    /// The config drive.
    ConfigDrive,
    /// The image.
    Root,
}

impl Role {
    /// The key by which conductors know it (section 5.9).
    pub fn name(self) -> &'static str {
        match self {
            Self::Esp => "efi system partition",
            Self::BiosBoot => "BIOS Boot partition",
            Self::PrepBoot => "PReP Boot partition",
            Self::Ephemeral => "ephemeral",
            Self::Swap => "swap",
            Self::ConfigDrive => "configdrive",
            Self::Root => "root",
        }
    }

    /// Type in a GPT and in an MBR.
    fn types(self) -> (Uuid, u8) {
        match self {
            Self::Esp => (gpt::ESP, mbr::ESP),
            Self::BiosBoot => (gpt::BIOS_BOOT, mbr::LINUX),
            Self::PrepBoot => (gpt::PREP, mbr::PREP),
            Self::Swap => (gpt::SWAP, mbr::SWAP),
            Self::Ephemeral | Self::ConfigDrive | Self::Root => (gpt::LINUX, mbr::LINUX),
        }
    }
}

/// What a partition image asks for. Sizes are MiB; 0 means none.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Whether the system will boot by UEFI.
    pub is_uefi: bool,
    /// Whether the machine is a POWER one.
    pub is_power: bool,
    /// Kind of the table; UEFI has GPT alone (D32).
    pub table: TableKind,
    /// Size of the root partition.
    pub root_mib: u64,
    /// Size of the swap partition.
    pub swap_mib: u64,
    /// Size of the ephemeral partition.
    pub ephemeral_mib: u64,
    /// Its file system.
    pub ephemeral_format: ephemeral::Format,
    /// Size of an EFI system partition.
    pub esp_mib: u64,
    /// Size of a BIOS boot partition.
    pub bios_boot_mib: u64,
    /// The drive that gets a partition.
    pub config_drive: Option<&'a ConfigDrive>,
}

/// A place on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// What it is for.
    pub role: Role,
    /// Number of the partition.
    pub number: u32,
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub size: u64,
}

/// The partitions of a partition image.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Kind of the table.
    pub table: TableKind,
    /// The partitions, by number.
    pub places: Vec<Place>,
    /// File system of the ephemeral partition.
    pub ephemeral_format: ephemeral::Format,
    has_boot_flag: bool,
}

impl Layout {
    /// Computes the layout for the disk at `device`.
    ///
    /// # Errors
    ///
    /// [`Error::NoRoom`].
    pub fn plan(request: &Request<'_>, device: &Path, geometry: Geometry) -> Result<Self, Error> {
        let no_room = |reason: String| Error::NoRoom { device: device.to_owned(), reason };
        let table = if request.is_uefi { TableKind::Gpt } else { request.table };
        let mut places = Vec::new();
        let mut start = MIB;
        for (role, size) in sizes(request, table, geometry.sector_size) {
            places.push(Place { role, number: places.len() as u32 + 1, start, size });
            start = start
                .checked_add(size)
                .ok_or_else(|| no_room(format!("the {} partition is larger than any disk", role.name())))?;
        }
        if start > geometry.size.saturating_sub(TAIL) {
            let (wanted, size) = ((start + TAIL) / MIB, geometry.size / MIB);
            return Err(no_room(format!(
                "the partitions need {wanted} MiB and the disk has {size}; ask for less or use a larger disk"
            )));
        }
        if table == TableKind::Mbr {
            if places.len() > MBR_PARTITIONS {
                return Err(no_room(
                    "an MBR has four partitions and more are wanted; set the capability disk_label:gpt"
                        .to_owned(),
                ));
            }
            if start > MBR_SECTORS * u64::from(geometry.sector_size) {
                return Err(no_room(
                    "an MBR does not reach that far; set the capability disk_label:gpt".to_owned(),
                ));
            }
        }
        let has_boot_flag = !request.is_uefi && !request.is_power;
        Ok(Self { table, places, ephemeral_format: request.ephemeral_format, has_boot_flag })
    }

    /// Where the image goes.
    pub fn root(&self) -> Place {
        *self.places.last().expect("every layout ends with root")
    }

    /// The partitions as a new table has them, each with an identity of its own.
    pub fn partitions(&self) -> Vec<NewPartition> {
        let partition = |place: &Place| {
            let (type_guid, type_id) = place.role.types();
            let is_booted = match place.role {
                Role::Root => self.has_boot_flag,
                Role::PrepBoot => true,
                _ => false,
            };
            let kind = match self.table {
                TableKind::Gpt => PartitionKind::Gpt { type_guid, guid: Uuid::new_v4() },
                TableKind::Mbr => PartitionKind::Mbr { type_id, disk_identifier: 0 },
            };
            let Place { number, start, size, .. } = *place;
            NewPartition { number, start, size, kind, is_booted, name: place.role.name().to_owned() }
        };
        self.places.iter().map(partition).collect()
    }
}

/// Which partitions there are, in order, with their sizes in bytes.
fn sizes(request: &Request<'_>, table: TableKind, sector_size: u32) -> Vec<(Role, u64)> {
    let boot = if request.is_uefi {
        Some((Role::Esp, request.esp_mib))
    } else if request.is_power {
        Some((Role::PrepBoot, PREP_MIB))
    } else if table == TableKind::Gpt {
        Some((Role::BiosBoot, request.bios_boot_mib))
    } else {
        None
    };
    let drive = request.config_drive.map(|drive| (Role::ConfigDrive, drive.partition_size(sector_size)));
    let in_mib = |(role, mib): (Role, u64)| (role, mib.saturating_mul(MIB));
    let scratch = [(Role::Ephemeral, request.ephemeral_mib), (Role::Swap, request.swap_mib)];
    let scratch = scratch.into_iter().filter(|(_, mib)| *mib > 0).map(in_mib);
    let root = in_mib((Role::Root, request.root_mib));
    boot.map(in_mib).into_iter().chain(scratch).chain(drive).chain([root]).collect()
}

#[cfg(test)]
mod tests;
