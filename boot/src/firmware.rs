//! The UEFI firmware of this machine. Whether there is one, and whether its variables can be written, are two
//! questions: U-Boot and kernels without runtime services have none that can (F19).

use crate::machine::Machine;
use farrier_linux::efivars::EfiVariables;
use farrier_linux::sysfs;
use std::path::Path;

/// What the kernel makes known of the firmware by which it was started.
const EFI: &str = "sys/firmware/efi";
/// Its variables in there.
const VARIABLES: &str = "efivars";

/// UEFI firmware.
#[derive(Debug, Clone)]
pub struct Firmware {
    /// For which programs are.
    pub machine: Machine,
    /// Its variables; nothing when none are seen. Those that are seen may still be read-only.
    pub variables: Option<EfiVariables>,
}

impl Firmware {
    /// The firmware that started this kernel; nothing when that was no UEFI.
    pub fn system() -> Option<Self> {
        Self::of(Path::new("/"))
    }

    /// The same of the machine whose root file system is at `root`.
    pub fn of(root: &Path) -> Option<Self> {
        let efi = root.join(EFI);
        let bits = sysfs::number(&efi, "fw_platform_size");
        let machine = Machine::of(std::env::consts::ARCH, bits).filter(|_| efi.is_dir())?;
        let variables = EfiVariables::at(efi.join(VARIABLES));
        let has_variables = variables.names().is_ok_and(|names| !names.is_empty());
        Some(Self { machine, variables: has_variables.then_some(variables) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a09_a_machine_without_variables_is_still_started_by_uefi() {
        let root = tempfile::tempdir().unwrap();
        let efi = root.path().join(EFI);
        assert!(Firmware::of(root.path()).is_none());
        fs::create_dir_all(&efi).unwrap();
        assert!(
            Firmware::of(root.path()).unwrap().variables.is_none(),
            "efi=noruntime: no folder of variables"
        );
        fs::create_dir(efi.join(VARIABLES)).unwrap();
        assert!(Firmware::of(root.path()).unwrap().variables.is_none(), "nothing is mounted there");
        fs::write(efi.join("efivars/BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c"), [7, 0, 0, 0]).unwrap();
        assert!(Firmware::of(root.path()).unwrap().variables.is_some());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a07_firmware_of_32_bits_starts_other_programs() {
        let root = tempfile::tempdir().unwrap();
        let efi = root.path().join(EFI);
        fs::create_dir_all(&efi).unwrap();
        for (bits, expected) in [("64\n", "x64"), ("32\n", "ia32")] {
            fs::write(efi.join("fw_platform_size"), bits).unwrap();
            assert_eq!(Firmware::of(root.path()).unwrap().machine.suffix, expected);
        }
    }
}
