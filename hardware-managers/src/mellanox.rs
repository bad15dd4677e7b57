//! Network cards that NVIDIA sells, formerly Mellanox (sections 9.1 and 9.13).

mod card;
mod checksum;
mod fault;
mod image;
mod query;
mod settings;
mod tools;

use crate::inventory::nics;
use crate::manager::{Argument, HardwareManager, StepDeclaration, Support};
use farrier_linux::sysfs;
use farrier_protocol::step::Phase;
use fault::Fault;
use std::path::{Path, PathBuf};
use tools::Tools;

/// The vendor of such cards, as sysfs writes it.
const VENDOR: &str = "0x15b3";

/// Updates firmware of such cards and its settings.
pub struct MellanoxDeviceHardwareManager {
    root: PathBuf,
}

impl MellanoxDeviceHardwareManager {
    /// A manager for the machine whose files lie below `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
}

impl HardwareManager for MellanoxDeviceHardwareManager {
    fn class_name(&self) -> &'static str {
        "MellanoxDeviceHardwareManager"
    }

    fn name(&self) -> &'static str {
        "MellanoxDeviceHardwareManager"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn evaluate(&self) -> Support {
        let mut devices = nics::devices(&self.root.join("sys")).into_iter();
        let is_present = devices.any(|device| sysfs::attribute(&device, "vendor").as_deref() == Some(VENDOR));
        if is_present { Support::Mainline } else { Support::None }
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[IMAGE, SETTINGS]
    }
}

/// Writes firmware to the cards that it is for. Its result has each card's version.
const IMAGE: StepDeclaration = StepDeclaration {
    step: "update_nvidia_nic_firmware_image",
    interface: "deploy",
    priorities: &[(Phase::Clean, 0), (Phase::Deploy, 0), (Phase::Service, 0)],
    reboot_requested: true,
    abortable: &[],
    arguments: &[Argument {
        name: image::ARGUMENT,
        description: "List of firmware images, each with url (file, http or https), checksum, checksumType (md5, \
                      sha256 or sha512), componentFlavor (the PSID of the card) and version",
        required: true,
    }],
    run: &|call| image::update(call, &Tools::SYSTEM, Path::new("/")),
};

/// Sets parameters of the cards' firmware. Its result has the changes of each.
const SETTINGS: StepDeclaration = StepDeclaration {
    step: "update_nvidia_nic_firmware_settings",
    arguments: &[Argument {
        name: settings::ARGUMENT,
        description: "List of settings, each with deviceID and, as objects of values by name, globalConfig, \
                      function0Config and function1Config",
        required: true,
    }],
    run: &|call| settings::update(call, &Tools::SYSTEM, Path::new("/")),
    ..IMAGE
};

#[cfg(test)]
mod fake_cards;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;

    #[test]
    fn only_cards_of_this_vendor_count() {
        for (vendor, expected) in [("0x15b3\n", Support::Mainline), ("0x8086\n", Support::None)] {
            let root = FakeRoot::new(&[("sys/class/net/ib0/device/vendor", vendor)]);
            assert_eq!(MellanoxDeviceHardwareManager::new(root.path()).evaluate(), expected, "{vendor}");
        }
        let root = FakeRoot::new(&[("sys/class/net/lo/operstate", "up\n")]);
        assert_eq!(MellanoxDeviceHardwareManager::new(root.path()).evaluate(), Support::None);
    }
}
