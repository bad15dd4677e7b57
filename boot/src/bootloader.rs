//! Boot loaders for systems that bring none where their firmware looks (sections 7.2, 7.4 and 7.5).
//!
//! ```text
//! disk ─ site ─▶ where root and boot partitions are
//!                 └ image_system: the deployed system, mounted for one thread alone
//!                    ├ loader_tree: its loaders, copied onto the EFI system partition
//!                    ├ grub: its own programs make a boot loader, when they may be run (S10)
//!                    └ fstab: the EFI system partition, for the system itself
//! ```
//!
//! Boot entries for what was installed are written by [`entry`], never by a program.

mod fstab;
mod grub;
mod image_system;
mod loader_tree;
mod site;

use crate::entry::{self, StartedBy};
use crate::error::Error;
use crate::firmware::Firmware;
use crate::machine::Machine;
use farrier_disk::RootDisk;
use farrier_linux::private_mounts::{Use, with_private_mounts};
use grub::Grub;
use image_system::ImageSystem;
use site::{Site, Volume};
use std::path::{Path, PathBuf};

/// Where the system mounts its EFI system partition, and where images keep its files.
const ESP_FOLDER: &str = "boot/efi";
/// The loaders in it.
const LOADERS: &str = "EFI";

/// What a conductor says about a deployed system (section 7.1).
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Identity of the root file system or of its partition; nothing for a whole-disk image.
    pub root_uuid: Option<&'a str>,
    /// Identity of the PReP partition of a POWER machine.
    pub prep_uuid: Option<&'a str>,
    /// Whether programs of the image may be run, as root of this ramdisk (S10).
    pub may_run_programs: bool,
}

/// What makes the system bootable now.
#[derive(Debug, PartialEq, Eq)]
pub enum Installed {
    /// UEFI firmware, by what is on the EFI system partition.
    Uefi(StartedBy),
    /// The system's own GRUB, on these devices.
    Grub(Vec<PathBuf>),
    /// A boot loader that the image brought.
    Present,
}

/// Makes the system on `root` bootable: by boot entries for the loaders that are there, or by a loader that it is given.
/// `firmware` is that of a machine that was started by UEFI (F19).
///
/// # Errors
///
/// [`Error::NoLoader`] when nothing can be installed without running the image's programs, and they may not be
/// run, or when it brings none; [`Error::BootLoader`] with the last words of the program that failed; or what
/// reading the disk and writing boot entries bring.
pub fn install(
    root: &RootDisk,
    request: &Request<'_>,
    firmware: Option<&Firmware>,
) -> Result<Installed, Error> {
    match firmware {
        Some(firmware) => install_for_uefi(root, request, firmware),
        None => install_for_bios(root, request),
    }
}

fn install_for_bios(root: &RootDisk, request: &Request<'_>) -> Result<Installed, Error> {
    // What is in a whole-disk image is the image's own matter.
    let Some(root_uuid) = request.root_uuid else { return Ok(Installed::Present) };
    let site = Site::survey(root, root_uuid, request.prep_uuid, false)?;
    if site.has_boot_code && request.prep_uuid.is_none() {
        return Ok(Installed::Present);
    }
    make_boot_code(&site, request)?;
    Ok(Installed::Grub(site.targets))
}

fn install_for_uefi(root: &RootDisk, request: &Request<'_>, firmware: &Firmware) -> Result<Installed, Error> {
    if let Some(started_by) = entry::install(root, firmware)? {
        return Ok(Installed::Uefi(started_by));
    }
    let machine = firmware.machine;
    let Some(root_uuid) = request.root_uuid else {
        return Err(Error::NoLoader {
            device: PathBuf::from(&root.device().disk.name),
            firmware: format!("UEFI ({machine})"),
            advice: format!(
                "use an image whose EFI system partition has one, such as {}",
                machine.removable_path()
            ),
        });
    };
    let site = Site::survey(root, root_uuid, request.prep_uuid, true)?;
    provide_loaders(&site, request, machine)?;
    match entry::install(root, firmware)? {
        Some(started_by) => Ok(Installed::Uefi(started_by)),
        None => Err(nothing_to_start(&site, Some(machine))),
    }
}

/// The configuration first: boot code makes a disk count as bootable, and stands for success when this is
/// tried again.
fn make_boot_code(site: &Site, request: &Request<'_>) -> Result<(), Error> {
    if !request.may_run_programs {
        return Err(nothing_to_start(site, None));
    }
    in_image_system(site, Use::Programs, |system| {
        let grub = Grub::of(system).ok_or_else(|| nothing_to_start(site, None))?;
        system.provide_for_programs()?;
        grub.configure(system)?;
        site.targets.iter().try_for_each(|target| grub.install_on(system, target))
    })
}

/// An image that carries its loaders as files needs no program to be run.
fn provide_loaders(site: &Site, request: &Request<'_>, machine: Machine) -> Result<(), Error> {
    let esp = site.esp.as_ref().ok_or_else(|| farrier_disk::Error::NoEsp { device: site.disk.clone() })?;
    let usage = if request.may_run_programs { Use::Programs } else { Use::Files };
    in_image_system(site, usage, |system| {
        let grub = Grub::of(system).filter(|_| request.may_run_programs);
        if grub.is_some() {
            system.provide_for_programs()?;
        }
        let loaders =
            system.folder(&format!("{ESP_FOLDER}/{LOADERS}")).filter(|path| loader_tree::is_filled(path));
        match (loaders, grub) {
            (Some(loaders), grub) => {
                grub.map_or(Ok(()), |grub| grub.configure(system))?;
                copy_loaders(system, esp, &loaders, machine)?;
            }
            (None, Some(grub)) => {
                let target = system.mount(esp, ESP_FOLDER)?;
                grub.install_for_uefi(system);
                loader_tree::ensure_fallback(&target, machine)
                    .map_err(|error| system.failed("adding a fallback", error))?;
                system.unmount_last()?;
                grub.configure(system)?;
            }
            (None, None) => return Err(nothing_to_start(site, Some(machine))),
        }
        fstab::add_esp(system, esp)
    })
}

fn copy_loaders(
    system: &mut ImageSystem<'_>,
    esp: &Volume,
    loaders: &Path,
    machine: Machine,
) -> Result<(), Error> {
    let target = system.mount(esp, "mnt")?;
    let configurations = grub::FOLDERS.iter().filter_map(|folder| system.folder(folder)).collect::<Vec<_>>();
    loader_tree::copy(loaders, &configurations, &target)
        .and_then(|()| loader_tree::ensure_fallback(&target, machine))
        .map_err(|error| system.failed("copying its loaders to the EFI system partition", error))?;
    system.unmount_last()
}

/// Does `work` with the deployed system mounted, and unmounts it whatever comes of it.
fn in_image_system(
    site: &Site,
    usage: Use,
    work: impl FnOnce(&mut ImageSystem<'_>) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let outcome = with_private_mounts(|mounts| {
        let mut system = ImageSystem::mount_root(site, mounts, usage)?;
        let outcome = work(&mut system);
        outcome.and(system.unmount())
    });
    outcome.unwrap_or_else(|error| {
        Err(Error::BootLoader {
            device: site.disk.clone(),
            action: "having mounts of its own".to_owned(),
            reason: error.to_string(),
        })
    })
}

/// Why nothing is installed. A disk that a BIOS would start is for the other mode (F21).
fn nothing_to_start(site: &Site, uefi: Option<Machine>) -> Error {
    if uefi.is_some() && site.has_boot_code {
        return Error::BiosOnly { device: site.disk.clone() };
    }
    Error::NoLoader {
        device: site.disk.clone(),
        firmware: uefi.map_or_else(|| "BIOS".to_owned(), |machine| format!("UEFI ({machine})")),
        advice: "use an image that does, or one with the packages of GRUB and let its own programs run with \
                 enable_bios_bootloader_install"
            .to_owned(),
    }
}
