//! Firmware: QEMU's own BIOS, or UEFI, where distributions put that, and each machine's own variables.

use super::QemuError;
use super::architecture::Architecture;
use farrier_conductor::interfaces::InterfaceError;
use std::path::{Path, PathBuf};

/// Code and empty variables of OVMF, as Debian and Ubuntu, Fedora, Arch and QEMU itself place them.
const PLACES: &[(&str, &str)] = &[
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
    ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
    ("/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/edk2/x64/OVMF_VARS.4m.fd"),
    ("/usr/share/edk2-ovmf/x64/OVMF_CODE.fd", "/usr/share/edk2-ovmf/x64/OVMF_VARS.fd"),
    ("/usr/share/qemu/edk2-x86_64-code.fd", "/usr/share/qemu/edk2-i386-vars.fd"),
];

/// The same of AAVMF, the firmware for aarch64.
const PLACES_AARCH64: &[(&str, &str)] = &[
    ("/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"),
    ("/usr/share/AAVMF/AAVMF_CODE.no-secboot.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"),
    ("/usr/share/edk2/aarch64/QEMU_EFI-pflash.raw", "/usr/share/edk2/aarch64/vars-template-pflash.raw"),
    ("/usr/share/edk2/aarch64/QEMU_CODE.fd", "/usr/share/edk2/aarch64/QEMU_VARS.fd"),
    ("/usr/share/qemu/edk2-aarch64-code.fd", "/usr/share/qemu/edk2-arm-vars.fd"),
];

/// The firmware of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Firmware {
    /// The BIOS that QEMU brings.
    Bios,
    /// UEFI.
    Uefi(Uefi),
}

/// UEFI firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Uefi {
    /// Code, never written.
    pub(super) code: PathBuf,
    /// Empty variables, copied once for each machine.
    pub(super) vars_template: PathBuf,
}

impl Firmware {
    /// The kind that `qemu_firmware` names, with the files of [`Uefi::find`].
    pub(super) fn read(
        architecture: Architecture,
        kind: Option<&str>,
        code: Option<PathBuf>,
        vars_template: Option<PathBuf>,
    ) -> Result<Self, InterfaceError> {
        match kind.unwrap_or("uefi") {
            "bios" if architecture == Architecture::Aarch64 => {
                Err(InterfaceError::driver_info("qemu_firmware", "must be uefi: aarch64 has no BIOS"))
            }
            "bios" => Ok(Self::Bios),
            "uefi" => Uefi::find(architecture, code, vars_template).map(Self::Uefi),
            _ => Err(InterfaceError::driver_info("qemu_firmware", "must be uefi or bios")),
        }
    }
}

impl Uefi {
    /// Whether it is where distributions put theirs.
    pub(super) fn is_installed(&self) -> bool {
        let is_own = |(code, vars): &(&str, &str)| {
            self.code == Path::new(code) && self.vars_template == Path::new(vars)
        };
        PLACES.iter().chain(PLACES_AARCH64).any(is_own)
    }

    /// The firmware given, or the first that is installed. Code and variables fit only as a pair.
    fn find(
        architecture: Architecture,
        code: Option<PathBuf>,
        vars_template: Option<PathBuf>,
    ) -> Result<Self, InterfaceError> {
        let (places, name, package) = match architecture {
            Architecture::X86_64 => (PLACES, "OVMF", "ovmf"),
            Architecture::Aarch64 => (PLACES_AARCH64, "AAVMF", "qemu-efi-aarch64"),
        };
        match (code, vars_template) {
            (Some(code), Some(vars_template)) => Ok(Self { code, vars_template }),
            (None, None) => {
                let installed =
                    |(code, vars): &&(&str, &str)| Path::new(code).exists() && Path::new(vars).exists();
                let (code, vars) = places.iter().find(installed).ok_or_else(|| {
                    InterfaceError::driver_info(
                        "qemu_firmware_code",
                        format!(
                            "is missing, and no {name} is installed; install it (Debian: {package}) or give both files"
                        ),
                    )
                })?;
                Ok(Self { code: code.into(), vars_template: vars.into() })
            }
            (Some(_), None) => Err(InterfaceError::driver_info(
                "qemu_firmware_vars_template",
                "is missing; it goes together with qemu_firmware_code",
            )),
            (None, Some(_)) => Err(InterfaceError::driver_info(
                "qemu_firmware_code",
                "is missing; it goes together with qemu_firmware_vars_template",
            )),
        }
    }
}

/// The variables of the machine whose folder this is.
pub(super) fn variables_file(folder: &Path) -> PathBuf {
    folder.join("vars.fd")
}

/// The machine's own variables. They are made once, so that boot entries outlive power cycles.
pub(super) fn own_variables(firmware: &Uefi, folder: &Path) -> Result<PathBuf, QemuError> {
    let own = variables_file(folder);
    if !own.exists() {
        let template = &firmware.vars_template;
        let content = std::fs::read(template).map_err(QemuError::file(template))?;
        // Written again instead of copied, because the template is often read-only.
        std::fs::write(&own, content).map_err(QemuError::file(&own))?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_outlive_power_cycles() {
        let folder = tempfile::tempdir().unwrap();
        let template = folder.path().join("template");
        std::fs::write(&template, "empty").unwrap();
        let firmware = Uefi { code: "/c".into(), vars_template: template };
        let own = own_variables(&firmware, folder.path()).unwrap();
        std::fs::write(&own, "boot entry").unwrap();
        assert_eq!(own_variables(&firmware, folder.path()).unwrap(), own);
        assert_eq!(std::fs::read_to_string(own).unwrap(), "boot entry");
    }

    #[test]
    fn code_and_variables_come_together() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            assert!(Uefi::find(architecture, Some("/c".into()), Some("/v".into())).is_ok());
            assert!(Uefi::find(architecture, Some("/c".into()), None).is_err());
            assert!(Uefi::find(architecture, None, Some("/v".into())).is_err());
        }
    }
}
