//! Boot loaders, taken as they are from the distribution's packages.
//!
//! UEFI firmware starts shim and GRUB as Debian signs them, so that media boot under Secure Boot with the
//! keys that every server has. BIOS firmware starts isolinux: files without a tool, and the same bytes
//! every time. The stub of unified kernel images is systemd's.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::BuildError;
use crate::manifest::PackedFile;
use crate::package::describe;
use crate::role::Role;

struct BootLoader {
    architecture: &'static str,
    role: Role,
    path: &'static str,
    package: &'static str,
}

const X86: &str = "x86_64";
const ARM: &str = "aarch64";

const fn file(
    architecture: &'static str,
    role: Role,
    path: &'static str,
    package: &'static str,
) -> BootLoader {
    BootLoader { architecture, role, path, package }
}

const BOOT_LOADERS: &[BootLoader] = &[
    file(X86, Role::Isolinux, "usr/lib/ISOLINUX/isolinux.bin", "isolinux"),
    file(X86, Role::IsolinuxLibrary, "usr/lib/syslinux/modules/bios/ldlinux.c32", "syslinux-common"),
    file(X86, Role::HybridMbr, "usr/lib/ISOLINUX/isohdpfx.bin", "isolinux"),
    file(X86, Role::Shim, "usr/lib/shim/shimx64.efi.signed", "shim-signed"),
    file(X86, Role::GrubCd, "usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed", "grub-efi-amd64-signed"),
    file(X86, Role::GrubNet, "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", "grub-efi-amd64-signed"),
    file(X86, Role::Stub, "usr/lib/systemd/boot/efi/linuxx64.efi.stub", "systemd-boot-efi"),
    file(ARM, Role::Shim, "usr/lib/shim/shimaa64.efi.signed", "shim-signed"),
    file(ARM, Role::GrubCd, "usr/lib/grub/arm64-efi-signed/gcdaa64.efi.signed", "grub-efi-arm64-signed"),
    file(ARM, Role::GrubNet, "usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed", "grub-efi-arm64-signed"),
    file(ARM, Role::Stub, "usr/lib/systemd/boot/efi/linuxaa64.efi.stub", "systemd-boot-efi"),
];

/// The boot loaders of one architecture, below the folder that holds their packages.
#[derive(Debug)]
pub struct BootLoaders {
    root: PathBuf,
    architecture: &'static str,
    used: Vec<PackedFile>,
}

impl BootLoaders {
    /// The packages unpacked or installed below `root`.
    pub fn new(root: &Path, architecture: &'static str) -> Self {
        Self { root: root.to_owned(), architecture, used: Vec::new() }
    }

    /// Suffix of EFI file names: firmware looks for `BOOTX64.EFI` or `BOOTAA64.EFI`.
    pub fn efi_suffix(&self) -> &'static str {
        if self.architecture == X86 { "x64" } else { "aa64" }
    }

    /// Whether there is firmware of the BIOS kind.
    pub fn has_bios(&self) -> bool {
        self.architecture == X86
    }

    /// Path and content of a boot loader's file.
    ///
    /// # Errors
    ///
    /// [`BuildError::BootLoader`] when the package is not there.
    pub fn read(&mut self, role: Role) -> Result<(PathBuf, Vec<u8>), BuildError> {
        let known = BOOT_LOADERS.iter().find(|one| one.role == role && one.architecture == self.architecture);
        let Some(loader) = known else {
            return Err(BuildError::NoBootLoader { role, architecture: self.architecture });
        };
        let path = self.root.join(loader.path);
        let content = fs::read(&path)
            .map_err(|_| BuildError::BootLoader { path: path.clone(), package: loader.package })?;
        if !self.used.iter().any(|file| file.path == loader.path) {
            self.used.push(describe(&self.root, loader.package, loader.path, &content));
        }
        Ok((path, content))
    }

    /// The files read so far.
    pub fn into_used(self) -> Vec<PackedFile> {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_package_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut loaders = BootLoaders::new(folder.path(), X86);
        let text = loaders.read(Role::Shim).unwrap_err().to_string();
        assert!(text.contains("package shim-signed") && text.contains("shimx64.efi.signed"), "{text}");
        let text = BootLoaders::new(folder.path(), ARM).read(Role::Isolinux).unwrap_err().to_string();
        assert!(text.contains("aarch64"), "{text}");
    }

    #[test]
    fn files_come_from_the_architectures_package() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usr/lib/shim/shimaa64.efi.signed");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"MZ").unwrap();
        let mut loaders = BootLoaders::new(folder.path(), ARM);
        for _ in 0..2 {
            assert_eq!(loaders.read(Role::Shim).unwrap(), (path.clone(), b"MZ".to_vec()));
        }
        let used = loaders.into_used();
        assert_eq!((used.len(), &*used[0].package), (1, "shim-signed"));
    }
}
