//! UEFI boot entries for what a deployment put on the disk (section 7.3).

pub mod clean;
mod csv;
mod device_path;
mod esp;
mod load_option;
mod store;

use crate::error::Error;
use crate::firmware::Firmware;
use esp::{Loader, Loaders};
use farrier_disk::guard::{BootPartition, RootDisk};
use farrier_disk::table::{Partition, PartitionTable};
use farrier_disk::{Sectors, raid, table, wipe};
use farrier_linux::efivars::EfiVariables;
use load_option::LoadOption;
use std::path::Path;
use store::{BootStore, Refusal};

/// An entry of the firmware's boot menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootEntry {
    /// Number in the variable's name, `Boot####`.
    pub number: u16,
    /// Text in the menu.
    pub label: String,
    /// Loader on the EFI system partition, with backslashes.
    pub loader: String,
}

/// By what the firmware starts a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedBy {
    /// Boot entries, which come first in its order.
    Entries(Vec<BootEntry>),
    /// The loader at this path, with backslashes: the firmware has no boot entries that can be written.
    RemovablePath(String),
}

/// Makes the firmware boot from `root`: one entry for each loader, put first in the boot order; for a volume of
/// software RAID one for each copy of a loader (D19).
///
/// Entries of the same label are deleted first (F13); the order is read back (F24). An entry that cannot be deleted or
/// written takes no other with it. Where no entry can be written at all, the loader at the removable path counts.
/// Nothing is returned, and nothing was created, when the EFI system partition holds no loader for this firmware.
///
/// # Errors
///
/// [`Error::BiosOnly`], [`Error::BootVariable`], [`Error::NoRemovableLoader`], or [`Error::Disk`] when there is no
/// readable EFI system partition, its copies cannot be made, or the disk cannot be opened or read.
pub fn install(root: &RootDisk, firmware: &Firmware) -> Result<Option<StartedBy>, Error> {
    if root.is_array() {
        return install_mirrored(root, firmware);
    }
    install_on(&root.open()?, firmware)
}

/// As [`install`], on a disk that is held already and is none of software RAID.
///
/// # Errors
///
/// As there.
pub fn install_on(disk: &dyn Sectors, firmware: &Firmware) -> Result<Option<StartedBy>, Error> {
    let table = PartitionTable::read(disk)?;
    let esp = esp(disk, &table)?;
    let found = esp::find_loaders(disk, esp, firmware.machine)?;
    let place = Place { partition: esp.clone(), sector_size: disk.sector_size(), suffix: String::new() };
    start_by(disk.path(), found, &[place], firmware)
}

/// The EFI system partition is copied to a mirror on all disks of the volume, from which each copy of a loader
/// is started.
fn install_mirrored(root: &RootDisk, firmware: &Firmware) -> Result<Option<StartedBy>, Error> {
    let disk = root.open()?;
    let table = PartitionTable::read(&disk)?;
    let original = esp(&disk, &table)?;
    let mirror = raid::esp::Mirror::open(root)?;
    mirror.take_over(&disk, original)?;
    let whole = Partition::at(0, mirror.disk.size());
    let found = esp::find_loaders(&mirror.disk, &whole, firmware.machine)?;
    let place = |(index, copy): (usize, &BootPartition)| Place {
        partition: copy.partition.clone(),
        sector_size: copy.sector_size,
        suffix: format!(" (RAID, part{index})"),
    };
    let places: Vec<_> = mirror.copies.iter().enumerate().map(place).collect();
    let started_by = start_by(disk.path(), found, &places, firmware)?;
    if started_by.is_some() {
        // Two volumes of one identity would be mounted by chance.
        wipe::zero_signatures(&disk, original)?;
        disk.flush()?;
    }
    Ok(started_by)
}

/// The EFI system partition. A system that has none may still boot by BIOS (F21).
fn esp<'a>(disk: &dyn Sectors, table: &'a PartitionTable) -> Result<&'a Partition, Error> {
    let device = disk.path().to_owned();
    match table.esp() {
        Some(esp) => Ok(esp),
        None if table::has_boot_code(disk)? => Err(Error::BiosOnly { device }),
        None => Err(farrier_disk::Error::NoEsp { device }.into()),
    }
}

/// A partition from which loaders are started.
struct Place {
    partition: Partition,
    sector_size: u32,
    /// What the labels of its entries end with.
    suffix: String,
}

/// Has the firmware start what was found on `disk`, by entries or without.
fn start_by(
    disk: &Path,
    found: Loaders,
    places: &[Place],
    firmware: &Firmware,
) -> Result<Option<StartedBy>, Error> {
    if found.loaders.is_empty() {
        return Ok(None);
    }
    let reason = match &firmware.variables {
        Some(variables) => match enter(&found.loaders, places, variables) {
            Ok(entries) => return Ok(Some(StartedBy::Entries(entries))),
            Err(refusal) if refusal.is_of_all_variables() => refusal.to_string(),
            Err(refusal) => return Err(refusal.into()),
        },
        None => "this kernel shows no UEFI variables".to_owned(),
    };
    match found.removable {
        Some(path) => {
            tracing::warn!("{reason}, so there is no boot entry: the firmware has to find {path} by itself");
            Ok(Some(StartedBy::RemovablePath(path)))
        }
        None => Err(Error::NoRemovableLoader {
            device: disk.to_owned(),
            reason,
            path: firmware.machine.removable_path(),
        }),
    }
}

/// Writes an entry for each loader on each place, and puts them first. What fails is left out while another one
/// succeeds.
fn enter(loaders: &[Loader], places: &[Place], variables: &EfiVariables) -> Result<Vec<BootEntry>, Refusal> {
    let mut store = BootStore::read(variables)?;
    let wanted: Vec<_> =
        loaders.iter().flat_map(|loader| places.iter().map(move |place| (loader, place))).collect();
    let label = |(loader, place): &(&Loader, &Place)| format!("{}{}", loader.label, place.suffix);
    // All before the first is written: several loaders may have one label.
    for refusal in store.delete_labelled(&wanted.iter().map(label).collect::<Vec<_>>()) {
        tracing::warn!("an old boot entry stays: {refusal}");
    }
    let (mut created, mut refused) = (Vec::new(), None);
    for one @ (loader, place) in &wanted {
        let option = LoadOption::new(&label(one), loader, &place.partition, place.sector_size);
        match store.create(option.to_bytes()) {
            Ok(number) => {
                created.push(BootEntry { number, label: label(one), loader: loader.path.clone() });
            }
            Err(refusal) => {
                tracing::warn!("no boot entry for {}: {refusal}", loader.path);
                refused.get_or_insert(refusal);
            }
        }
    }
    match refused {
        Some(refusal) if created.is_empty() => return Err(refusal),
        _ => store.put_first(&created.iter().map(|entry| entry.number).collect::<Vec<_>>())?,
    }
    Ok(created)
}

#[cfg(test)]
mod tests;
