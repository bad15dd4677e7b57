//! Finding loaders on an EFI system partition, without mounting it.
//!
//! A loader is a file that is there and a program for this firmware; what names it proves neither.

use super::csv;
use crate::machine::Machine;
use farrier_disk::fat::{Entry, Fat};
use farrier_disk::io::view::DiskView;
use farrier_disk::table::Partition;
use farrier_disk::{Error, Sectors};
use std::collections::HashMap;
use std::io::{self, Read, Seek};

/// How deep loaders lie, in folders. Vendors have them in the second one.
const DEPTH: usize = 8;
/// Most bytes of a CSV file, and most such files.
const MOST_OF_CSV: u64 = 64 * 1024;
const MOST_CSVS: usize = 32;
/// Most entries for one partition: the firmware's store is small.
const MOST_LOADERS: usize = 16;

/// Known loaders without the ending for the architecture; the first one in a folder starts the others. The last ones
/// have no such ending.
const STEMS: &[&str] = &["shim", "grub", "systemd-boot"];
const WITHOUT_SUFFIX: &[&str] = &["bootmgfw.efi", "winload.efi"];

/// A loader and what its entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// Path with backslashes, from the root.
    pub path: String,
    /// Text in the boot menu.
    pub label: String,
    /// What the loader is given; nothing for most.
    pub options: String,
}

/// What an EFI system partition has for the firmware.
#[derive(Debug, PartialEq, Eq)]
pub struct Loaders {
    /// What gets an entry, the one that firmware starts first.
    pub loaders: Vec<Loader>,
    /// Where firmware without entries starts, with backslashes, when a loader is there.
    pub removable: Option<String>,
}

/// Finds the loaders on `esp` for firmware of `machine`: those that the first fitting CSV file names, else every known
/// name.
///
/// # Errors
///
/// [`Error::UnreadableEsp`].
pub fn find_loaders(disk: &dyn Sectors, esp: &Partition, machine: Machine) -> Result<Loaders, Error> {
    let mut view = DiskView::range(disk, esp.start, esp.size).with_memory();
    search(&mut view, machine).map_err(|source| Error::UnreadableEsp {
        device: disk.path().to_owned(),
        number: esp.number,
        source,
    })
}

/// Finds the loaders in a FAT volume.
fn search(volume: &mut (impl Read + Seek), machine: Machine) -> io::Result<Loaders> {
    let mut files = Files::of(Fat::open(volume)?, machine)?;
    let removable = files.program(&machine.removable_path()).map(|file| firmware_path(&file.path));
    let mut loaders = files.by_csv()?;
    if loaders.is_empty() {
        loaders = files.by_name();
    }
    if !loaders.is_empty() && removable.is_none() {
        let path = machine.removable_path();
        tracing::warn!("no loader at {path}: should the firmware lose its entries, the disk will not boot");
    }
    Ok(Loaders { loaders, removable })
}

/// The files of a volume.
struct Files<T> {
    fat: Fat<T>,
    machine: Machine,
    files: Vec<Entry>,
    /// Places in `files` by path in lower case: FAT knows no case.
    by_path: HashMap<String, usize>,
}

impl<T: Read + Seek> Files<T> {
    fn of(mut fat: Fat<T>, machine: Machine) -> io::Result<Self> {
        let entries = fat.entries(DEPTH, &mut |path, error| {
            tracing::warn!("the folder {path} of the EFI system partition is left out: {error}");
            Ok(())
        })?;
        let files: Vec<_> =
            entries.into_iter().filter(|entry| !entry.is_folder && entry.has_plain_path).collect();
        let by_path =
            files.iter().enumerate().map(|(place, file)| (file.path.to_lowercase(), place)).collect();
        Ok(Self { fat, machine, files, by_path })
    }

    /// The file at a path, when it is a program for this firmware.
    fn program(&mut self, path: &str) -> Option<Entry> {
        let file = self.by_path.get(&path.to_lowercase()).map(|place| self.files[*place].clone())?;
        match Machine::of_program(&mut self.fat.read(&file)) {
            Ok(Some(code)) if self.machine.runs(code) => return Some(file),
            Ok(Some(code)) => {
                let (found, wanted) = (Machine::name_of(code), self.machine);
                tracing::warn!("{path} gets no boot entry: it is for {found}, and the firmware is {wanted}");
            }
            Ok(None) => tracing::warn!("{path} gets no boot entry: it is no program for firmware"),
            Err(error) => tracing::warn!("{path} gets no boot entry: it cannot be read: {error}"),
        }
        None
    }

    /// The loaders of the first CSV file that names one.
    fn by_csv(&mut self) -> io::Result<Vec<Loader>> {
        for file in self.csvs() {
            let mut content = Vec::new();
            if let Err(error) = self.fat.read(&file).take(MOST_OF_CSV).read_to_end(&mut content) {
                tracing::warn!("{} is left out: {error}", file.path);
                continue;
            }
            let folder = split(&file.path).0;
            let named = csv::parse(&content).into_iter().filter_map(|line| {
                let path = format!("{folder}{}", line.file);
                if !self.by_path.contains_key(&path.to_lowercase()) {
                    tracing::warn!("{} names {path}, which is not there", file.path);
                }
                let found = self.program(&path)?;
                Some(Loader { path: firmware_path(&found.path), label: line.label, options: line.options })
            });
            let loaders: Vec<_> = named.take(MOST_LOADERS).collect();
            if !loaders.is_empty() {
                return Ok(loaders);
            }
        }
        Ok(Vec::new())
    }

    /// CSV files by folder; in each, the one for this architecture goes first, as with shim.
    fn csvs(&self) -> Vec<Entry> {
        let own = format!("boot{}.csv", self.machine.suffix);
        let found = self.files.iter().filter(|file| csv::is_csv(split(&file.path).1));
        let mut found: Vec<_> = found.take(MOST_CSVS).cloned().collect();
        let folders: Vec<_> = found.iter().map(|file| split(&file.path).0.to_owned()).collect();
        found.sort_by_cached_key(|file| {
            let (folder, name) = split(&file.path);
            (folders.iter().position(|known| known == folder), name.to_lowercase() != own)
        });
        found
    }

    /// The best known loader of each folder, the better ones first.
    fn by_name(&mut self) -> Vec<Loader> {
        let suffix = self.machine.suffix;
        let stems = STEMS.iter().map(|stem| format!("{stem}{suffix}.efi"));
        let others = WITHOUT_SUFFIX.iter().map(|name| (*name).to_owned());
        let names = stems.chain(others).chain([format!("boot{suffix}.efi")]).collect::<Vec<_>>();
        let rank = |path: &str| names.iter().position(|name| *name == split(path).1.to_lowercase());
        let is_removable = |folder: &str| folder.eq_ignore_ascii_case("EFI/BOOT/");
        let removable = split(&self.machine.removable_path()).1.to_lowercase();
        let mut known: Vec<_> = self
            .files
            .iter()
            .filter_map(|file| Some((rank(&file.path)?, file.path.clone())))
            // What lies beside the loader for forgetful firmware is started by that one.
            .filter(|(_, path)| !is_removable(split(path).0) || split(path).1.to_lowercase() == removable)
            .collect();
        known.sort_by_key(|(rank, _)| *rank);
        let mut folders: Vec<String> = Vec::new();
        let mut loaders = Vec::new();
        for (_, path) in known {
            let folder = split(&path).0;
            if folders.iter().any(|done| done == folder) || loaders.len() == MOST_LOADERS {
                continue;
            }
            if let Some(file) = self.program(&path) {
                folders.push(folder.to_owned());
                let label = format!("ironic{}", loaders.len() + 1);
                loaders.push(Loader { path: firmware_path(&file.path), label, options: String::new() });
            }
        }
        loaders
    }
}

/// The folder of a file with the slash behind it, and its name.
fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |slash| slash + 1))
}

fn firmware_path(path: &str) -> String {
    format!(r"\{}", path.replace('/', r"\"))
}

#[cfg(test)]
mod tests;
