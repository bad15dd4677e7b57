//! Maker, firmware and boot mode of the machine (section 9.6).

use farrier_boot::firmware as efi;
use farrier_linux::sysfs;
use farrier_protocol::inventory::{Firmware, SystemVendor};
use std::path::Path;

/// Who made the machine whose root file system is at `root`. The serial number is readable for
/// root only.
pub fn vendor(root: &Path) -> SystemVendor {
    let id = |name: &str| sysfs::attribute(&root.join("sys/class/dmi/id"), name).unwrap_or_default();
    SystemVendor {
        product_name: id("product_name"),
        serial_number: id("product_serial"),
        manufacturer: id("sys_vendor"),
        firmware: Firmware {
            vendor: id("bios_vendor"),
            version: id("bios_version"),
            build_date: id("bios_date"),
        },
    }
}

/// `uefi` or `bios`, as the running kernel was started.
pub fn boot_mode(root: &Path) -> &'static str {
    if efi::Firmware::of(root).is_some() { "uefi" } else { "bios" }
}

/// The kernel's default host name, and the name of such a machine for programs.
const UNNAMED: &str = "(none)";
const LOCAL: &str = "localhost.localdomain";

/// The kernel's host name.
pub fn host_name(root: &Path) -> String {
    let name = sysfs::attribute(&root.join("proc/sys/kernel"), "hostname").unwrap_or_default();
    if name == UNNAMED { LOCAL.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;

    #[test]
    fn what_is_not_known_is_empty_text() {
        let root = FakeRoot::new(&[
            ("sys/class/dmi/id/product_name", "Example R1\n"),
            ("sys/class/dmi/id/bios_version", "2.4.7\n"),
            ("sys/firmware/efi/fw_platform_size", "64\n"),
            ("proc/sys/kernel/hostname", "node7\n"),
        ]);
        let found = vendor(root.path());
        assert_eq!((found.product_name.as_str(), found.serial_number.as_str()), ("Example R1", ""));
        assert_eq!((found.firmware.version.as_str(), found.firmware.vendor.as_str()), ("2.4.7", ""));
        assert_eq!((boot_mode(root.path()), host_name(root.path())), ("uefi", "node7".to_owned()));
        assert_eq!(boot_mode(FakeRoot::new(&[]).path()), "bios");
    }

    #[test]
    fn a09_a_machine_without_variables_was_booted_by_uefi() {
        for folder in ["sys/firmware/efi/efivars", "sys/firmware/efi"] {
            let root = FakeRoot::new(&[]);
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
            assert_eq!(boot_mode(root.path()), "uefi", "{folder}");
        }
    }

    #[test]
    fn x37_a_machine_that_nobody_named_is_the_local_host() {
        let root = FakeRoot::new(&[("proc/sys/kernel/hostname", "(none)\n")]);
        assert_eq!(host_name(root.path()), "localhost.localdomain");
    }
}
