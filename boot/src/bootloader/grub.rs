//! GRUB, as the deployed system brings it. Its programs are the system's own and run inside it (section 7.4).

use super::image_system::ImageSystem;
use crate::error::Error;
use farrier_linux::process::Program;
use std::path::Path;

/// Folders of GRUB's configuration; the first one where both are.
pub const FOLDERS: [&str; 2] = ["boot/grub2", "boot/grub"];

/// GRUB under one of its names.
pub struct Grub {
    install: Program,
    make_configuration: Program,
    folder: &'static str,
}

/// By the name of its programs: distributions once had two generations of GRUB at a time.
const GRUBS: [Grub; 2] = [
    Grub {
        install: program("grub2-install", "/usr/sbin/grub2-install"),
        make_configuration: program("grub2-mkconfig", "/usr/sbin/grub2-mkconfig"),
        folder: FOLDERS[0],
    },
    Grub {
        install: program("grub-install", "/usr/sbin/grub-install"),
        make_configuration: program("grub-mkconfig", "/usr/sbin/grub-mkconfig"),
        folder: FOLDERS[1],
    },
];

const fn program(name: &'static str, path: &'static str) -> Program {
    Program { name, path, package: "GRUB", is_optional: true }
}

impl Grub {
    /// The one that the system has.
    pub fn of(system: &ImageSystem<'_>) -> Option<Self> {
        GRUBS.into_iter().find(|grub| system.has(&grub.install))
    }

    /// Writes its configuration, which names the system's kernels and its root file system.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn configure(&self, system: &ImageSystem<'_>) -> Result<(), Error> {
        system.make_folder(self.folder)?;
        let file = format!("/{}/grub.cfg", self.folder);
        let made = system.run(&self.make_configuration, &["-o", &file]);
        made.map_err(|error| system.failed("making GRUB's configuration", error))
    }

    /// Installs it on a disk or partition, for the firmware of this machine.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn install_on(&self, system: &ImageSystem<'_>, target: &Path) -> Result<(), Error> {
        let installed = system.run(&self.install, &[&target.to_string_lossy()]);
        installed.map_err(|error| system.failed("installing GRUB", error))
    }

    /// Installs it on the mounted EFI system partition, under its own name and where firmware looks that has
    /// forgotten its entries (F16). Whether anything came of it shows when loaders are looked for.
    pub fn install_for_uefi(&self, system: &ImageSystem<'_>) {
        for arguments in [&["--no-nvram"][..], &["--no-nvram", "--removable"]] {
            if let Err(error) = system.run(&self.install, arguments) {
                tracing::warn!("{error}");
            }
        }
    }
}
