//! UEFI boot entries for what a deployment put on the disk (section 7.3).

pub mod clean;
mod device_path;
mod esp;
mod load_option;

use crate::error::Error;
use esp::Loader;
use farrier_disk::guard::{BootPartition, RootDisk};
use farrier_disk::table::{Partition, PartitionTable};
use farrier_disk::{Sectors, raid, table, wipe};
use farrier_linux::efivars::{EfiVariables, PERSISTENT, Variable};
use load_option::LoadOption;
use std::io;

/// Vendor GUID of the variables that UEFI itself defines.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

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

/// Makes the firmware boot from `root`: one entry for each loader, put first in the boot order; for a volume of
/// software RAID one for each copy of a loader (D19).
///
/// Entries of the same label are deleted first (F13); the order is read back (F24). Nothing is created
/// when the EFI system partition holds no loader.
///
/// # Errors
///
/// [`Error::BiosOnly`], [`Error::BootVariable`], or [`Error::Disk`] when there is no readable EFI system partition, its
/// copies cannot be made, or the disk cannot be opened or read.
pub fn install(root: &RootDisk, variables: &EfiVariables) -> Result<Vec<BootEntry>, Error> {
    if root.is_array() {
        return install_mirrored(root, variables);
    }
    install_on(&root.open()?, variables)
}

/// As [`install`], on a disk that is held already and is none of software RAID.
///
/// # Errors
///
/// As there.
pub fn install_on(disk: &dyn Sectors, variables: &EfiVariables) -> Result<Vec<BootEntry>, Error> {
    let table = PartitionTable::read(disk)?;
    let esp = esp(disk, &table)?;
    let loaders = esp::find_loaders(disk, esp)?;
    let place = Place { partition: esp.clone(), sector_size: disk.sector_size(), suffix: String::new() };
    enter(&loaders, &[place], variables)
}

/// The EFI system partition is copied to a mirror on all disks of the volume, from which each copy of a loader
/// is started.
fn install_mirrored(root: &RootDisk, variables: &EfiVariables) -> Result<Vec<BootEntry>, Error> {
    let disk = root.open()?;
    let table = PartitionTable::read(&disk)?;
    let original = esp(&disk, &table)?;
    let mirror = raid::esp::Mirror::open(root)?;
    mirror.take_over(&disk, original)?;
    let loaders = esp::find_loaders(&mirror.disk, &Partition::at(0, mirror.disk.size()))?;
    let place = |(index, copy): (usize, &BootPartition)| Place {
        partition: copy.partition.clone(),
        sector_size: copy.sector_size,
        suffix: format!(" (RAID, part{index})"),
    };
    let places: Vec<_> = mirror.copies.iter().enumerate().map(place).collect();
    let entries = enter(&loaders, &places, variables)?;
    if !entries.is_empty() {
        // Two volumes of one identity would be mounted by chance.
        wipe::zero_signatures(&disk, original)?;
        disk.flush()?;
    }
    Ok(entries)
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

/// Writes an entry for each loader on each place, and puts them first.
fn enter(loaders: &[Loader], places: &[Place], variables: &EfiVariables) -> Result<Vec<BootEntry>, Error> {
    let mut store = BootStore::read(variables)?;
    let mut created = Vec::new();
    for loader in loaders {
        for place in places {
            let label = format!("{}{}", loader.label, place.suffix);
            store.delete_labelled(&label)?;
            let option = LoadOption::new(&label, &loader.path, &place.partition, place.sector_size);
            let number = store.create(option.to_bytes())?;
            created.push(BootEntry { number, label, loader: loader.path.clone() });
        }
    }
    if !created.is_empty() {
        store.put_first(&created.iter().map(|entry| entry.number).collect::<Vec<_>>())?;
    }
    Ok(created)
}

/// The boot entries of the firmware and their order.
struct BootStore<'a> {
    variables: &'a EfiVariables,
    /// Number and content of each entry, by number.
    entries: Vec<(u16, Vec<u8>)>,
}

impl<'a> BootStore<'a> {
    fn read(variables: &'a EfiVariables) -> Result<Self, Error> {
        let directory = variables.directory().display().to_string();
        let names = variables.names().map_err(|error| failed(&directory, "listing", &error))?;
        let mut entries = Vec::new();
        for number in names.iter().filter_map(|name| entry_number(name)) {
            let name = entry_name(number);
            let data = match variables.read(&name) {
                Ok(variable) => variable.map(|variable| variable.data),
                Err(error) => {
                    tracing::warn!("the boot entry is left alone: {}", failed(&name, "reading", &error));
                    None
                }
            };
            // Its number is taken, whatever it says.
            entries.push((number, data.unwrap_or_default()));
        }
        Ok(Self { variables, entries })
    }

    /// Deletes every entry of this label. What cannot be decoded is somebody else's and stays (F12).
    fn delete_labelled(&mut self, label: &str) -> Result<(), Error> {
        let has_label =
            |data: &[u8]| load_option::replaceable_label(data).is_some_and(|found| found == label);
        self.delete(has_label).map(drop)
    }

    /// Deletes the entries whose content is as said, also from the boot order, and returns them.
    fn delete(&mut self, is_doomed: impl Fn(&[u8]) -> bool) -> Result<Vec<(u16, Vec<u8>)>, Error> {
        let doomed;
        (doomed, self.entries) =
            std::mem::take(&mut self.entries).into_iter().partition(|(_, data)| is_doomed(data));
        let doomed: Vec<(u16, Vec<u8>)> = doomed;
        for (number, _) in &doomed {
            let name = entry_name(*number);
            self.variables.delete(&name).map_err(|error| failed(&name, "deleting", &error))?;
        }
        if !doomed.is_empty() {
            let is_kept = |number: &u16| doomed.iter().all(|(deleted, _)| deleted != number);
            let order: Vec<u16> = self.order()?.into_iter().filter(is_kept).collect();
            self.write_order(&order)?;
        }
        Ok(doomed)
    }

    /// Creates an entry under the lowest free number.
    fn create(&mut self, data: Vec<u8>) -> Result<u16, Error> {
        let is_free = |number: &u16| self.entries.iter().all(|(used, _)| used != number);
        let number = (0..=u16::MAX).find(is_free).ok_or_else(|| Error::BootVariable {
            name: "Boot####".to_owned(),
            reason: "every number is used".to_owned(),
        })?;
        self.write(&entry_name(number), data.clone())?;
        self.entries.push((number, data));
        Ok(number)
    }

    /// Puts `numbers` before all others in the boot order (F24).
    fn put_first(&self, numbers: &[u16]) -> Result<(), Error> {
        let others = self.order()?.into_iter().filter(|number| !numbers.contains(number));
        let order: Vec<u16> = numbers.iter().copied().chain(others).collect();
        self.write_order(&order)
    }

    fn order(&self) -> Result<Vec<u16>, Error> {
        let name = order_name();
        let variable = self.variables.read(&name).map_err(|error| failed(&name, "reading", &error))?;
        let data = variable.map_or_else(Vec::new, |variable| variable.data);
        // A stray odd byte at the end belongs to no number.
        Ok(data.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])).collect())
    }

    fn write_order(&self, order: &[u16]) -> Result<(), Error> {
        self.write(&order_name(), order.iter().flat_map(|number| number.to_le_bytes()).collect())
    }

    /// Writes a variable and reads it back, since firmware is known to forget.
    fn write(&self, name: &str, data: Vec<u8>) -> Result<(), Error> {
        let variable = Variable { attributes: PERSISTENT, data };
        self.variables.write(name, &variable).map_err(|error| failed(name, "writing", &error))?;
        let found = self.variables.read(name).map_err(|error| failed(name, "reading", &error))?;
        if found.is_some_and(|found| found.data == variable.data) {
            return Ok(());
        }
        Err(Error::BootVariable {
            name: name.to_owned(),
            reason: "it reads back differently from what was written".to_owned(),
        })
    }
}

fn entry_name(number: u16) -> String {
    format!("Boot{number:04X}-{GLOBAL}")
}

fn order_name() -> String {
    format!("BootOrder-{GLOBAL}")
}

fn entry_number(name: &str) -> Option<u16> {
    let digits = name.strip_prefix("Boot")?.strip_suffix(GLOBAL)?.strip_suffix('-')?;
    let is_number = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

fn failed(name: &str, action: &str, error: &io::Error) -> Error {
    Error::BootVariable { name: name.to_owned(), reason: format!("{action} failed: {error}") }
}

#[cfg(test)]
mod tests;
