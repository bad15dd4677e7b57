//! The media that this ramdisk came from, among the disks of the machine: a stick that is its ISO or holds what that has,
//! virtual media of a BMC that appear as disks, and a stick from which firmware started a unified kernel image.
//!
//! What a disk holds proves nothing: tenants write labels and copy images. Such a medium is a disk on USB, and the
//! kernel command line of this boot, or the firmware, says that there is one. An internal disk is never one.

mod copied;
mod ventoy;

use crate::device::BlockDevice;
use crate::probe::ReadableDisk;
use crate::table::Partition;
use farrier_linux::drive::{self, Drive};
use farrier_linux::efivars::{EfiVariables, Variable};
use farrier_linux::kernel_line::{self, Parameters};
use farrier_media::ramdisk_media::{BOOT_MEDIUM, ISO, Inserted, Purpose};
use farrier_media::volume::Volume;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::path::Path;
use ventoy::VentoyDisk;

/// The variable in which systemd's stub and boot loader leave the partition that firmware started them from (Boot
/// Loader Interface).
const LOADER_PARTITION: &str = "LoaderDevicePartUUID-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Attribute of variables that outlive a reboot: whoever had the machine before may have left such a one.
const NON_VOLATILE: u32 = 1;

/// What of a machine belongs to the ramdisk that runs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootMedium {
    /// The ramdisk was booted from it.
    Ramdisk,
    /// The agent has parameters from it.
    Parameters,
    /// It looks like such a medium, and so does another disk.
    Doubtful,
}

impl fmt::Display for BootMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ramdisk => "the medium that this ramdisk was booted from",
            Self::Parameters => "the medium with the agent's parameters",
            Self::Doubtful => {
                "one of several disks that look like the medium that this ramdisk was booted from; \
                 disconnect that medium, or put it on skip_block_devices"
            }
        })
    }
}

/// What firmware and boot loaders tell of the disk that they started this boot from.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// The identity of the partition with the loader.
    loader_partition: Option<String>,
    ventoy: Option<VentoyDisk>,
}

impl Signs {
    fn of_this_boot() -> Self {
        let variables = EfiVariables::system();
        Self {
            loader_partition: variables.as_ref().and_then(partition_in),
            ventoy: VentoyDisk::of_this_boot(Path::new("/sys"), variables.as_ref()),
        }
    }

    fn is_none(&self) -> bool {
        self.loader_partition.is_none() && self.ventoy.is_none()
    }

    /// Whether they tell of the disk in this drive.
    fn tell_of(&self, sysfs: &Path, drive: &Drive) -> bool {
        self.ventoy.as_ref().is_some_and(|ventoy| ventoy.is_in(drive))
            || self.loader_partition.as_ref().is_some_and(|identity| has_partition(sysfs, drive, identity))
    }
}

/// The media, by the kernel names of their disks.
#[derive(Debug, Clone, Default)]
pub(super) struct BootMedia(Vec<(String, BootMedium)>);

impl BootMedia {
    /// Those of this boot.
    pub fn of_this_boot() -> Self {
        Self::find(Path::new("/sys"), &kernel_line::of_running_kernel(), &Signs::of_this_boot())
    }

    /// Those of a boot with these kernel parameters, of which these signs are left.
    pub fn find(sysfs: &Path, kernel: &Parameters, signs: &Signs) -> Self {
        if !Purpose::Ramdisk.is_expected(kernel) && signs.is_none() {
            return Self::default();
        }
        let drives = drive::list(sysfs);
        let mut media = Self::default();
        let read = |drive: &Drive| Volume::read(&mut File::open(&drive.device).ok()?).ok().flatten();
        let volumes: Vec<_> = drives.iter().filter_map(|drive| Some((drive, read(drive)?))).collect();
        let inserted: Vec<_> = volumes
            .iter()
            .map(|(drive, volume)| Inserted {
                volume,
                model: &drive.model,
                is_optical: drive.is_optical,
                may_be_virtual: drive.may_be_virtual(),
            })
            .collect();
        let serving = |purpose: Purpose| -> Vec<&Drive> {
            purpose.served_by(&inserted, kernel).into_iter().map(|number| volumes[number].0).collect()
        };
        let on_disks = |is_it: &dyn Fn(&Drive) -> bool| -> Vec<&Drive> {
            drives.iter().filter(|drive| !drive.is_optical && is_it(drive)).collect()
        };
        media.add(&serving(Purpose::Parameters), BootMedium::Parameters);
        let (whole, told) = (serving(Purpose::Ramdisk), on_disks(&|drive| signs.tell_of(sysfs, drive)));
        media.add(&whole, BootMedium::Ramdisk);
        media.add(&told, BootMedium::Ramdisk);
        let is_from_iso = kernel.get(BOOT_MEDIUM).is_some_and(|kind| kind == ISO);
        if is_from_iso && whole.is_empty() && told.is_empty() {
            media.add(&on_disks(&|drive| copied::is_on(sysfs, drive)), BootMedium::Ramdisk);
        }
        media
    }

    /// Notes the disks that serve as one medium.
    fn add(&mut self, serving: &[&Drive], medium: BootMedium) {
        let medium = if serving.len() > 1 { BootMedium::Doubtful } else { medium };
        for drive in serving.iter().filter(|drive| !drive.is_optical) {
            if medium == BootMedium::Doubtful {
                tracing::warn!("{} is {medium}", drive.device.display());
            }
            self.0.push((drive.kernel_name.clone(), medium));
        }
    }

    /// What a disk is of them. One that certainly is a medium is not doubtful for another purpose.
    pub fn medium(&self, device: &BlockDevice) -> Option<BootMedium> {
        let found = self.0.iter().filter(|(name, _)| name == device.kernel_name());
        let found: Vec<_> = found.map(|(_, medium)| *medium).collect();
        found.iter().find(|medium| **medium != BootMedium::Doubtful).or(found.first()).copied()
    }
}

/// Whether a variable was written since the machine was switched on.
fn passes_with_reboot(variable: &Variable) -> bool {
    variable.attributes & NON_VOLATILE == 0
}

/// The identity of the partition from which firmware started the loader of this boot.
fn partition_in(variables: &EfiVariables) -> Option<String> {
    let variable = variables.read(LOADER_PARTITION).ok()?.filter(passes_with_reboot)?;
    let units: Vec<_> =
        variable.data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let text = String::from_utf16(&units).ok()?;
    let text = text.trim_end_matches('\0');
    (!text.is_empty()).then(|| text.to_lowercase())
}

fn has_partition(sysfs: &Path, drive: &Drive, identity: &str) -> bool {
    let device = BlockDevice::describe(sysfs, &drive.kernel_name);
    let table = device.and_then(|device| ReadableDisk::open(&device)?.table());
    let is_it = |partition: &Partition| partition.partuuid().eq_ignore_ascii_case(identity);
    table.is_ok_and(|table| table.partitions().iter().any(is_it))
}

#[cfg(test)]
mod tests;
