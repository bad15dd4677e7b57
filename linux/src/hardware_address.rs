//! Hardware addresses of network cards by which a machine cannot be told from others.

use crate::sysfs;
use std::fmt;
use std::fs;
use std::path::Path;

/// Bits of the first byte (IEEE 802, section 8.2): the address is one of a group; whoever made the card did not get it
/// from the registry.
const GROUP: u8 = 1;
const LOCAL: u8 = 2;
/// With this begin addresses on the way to BMCs.
const TO_BMC: u8 = 0xfa;
/// Addresses that stand in documentation and in the memory of cards that nobody gave one.
const PLACEHOLDERS: [[u8; 6]; 3] = [
    [0x00, 0x11, 0x22, 0x33, 0x44, 0x55],
    [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc],
    [0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff],
];

/// Why many machines have an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// It is all of one byte, such as zeros, or another placeholder.
    Placeholder,
    /// It is that of a group of cards.
    Group,
    /// It is on the way to the BMC.
    ToBmc,
    /// It is locally administered, and the card is on USB: the network cards of BMCs have one for a whole model range.
    LocalOnUsb,
}

impl Shared {
    /// Why the address of an interface is no identity; nothing when it is one. Cards on PCI may have locally
    /// administered addresses: virtual functions and virtual machines have.
    pub fn of(sysfs: &Path, interface: &str, address: &[u8]) -> Option<Self> {
        let address: &[u8; 6] = address.try_into().ok()?;
        let [first, ..] = *address;
        if address.iter().all(|byte| *byte == first) || PLACEHOLDERS.contains(address) {
            Some(Self::Placeholder)
        } else if first & GROUP != 0 {
            Some(Self::Group)
        } else if first == TO_BMC {
            Some(Self::ToBmc)
        } else {
            (first & LOCAL != 0 && is_on_usb(sysfs, interface)).then_some(Self::LocalOnUsb)
        }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Placeholder => "it stands for no address",
            Self::Group => "it is that of a group of cards",
            Self::ToBmc => "addresses that start with fa: are shared between machines",
            Self::LocalOnUsb => "cards on USB share locally administered addresses between machines",
        })
    }
}

/// Whether the device behind an interface is on USB.
fn is_on_usb(sysfs: &Path, interface: &str) -> bool {
    let device = sysfs.join("class/net").join(interface).join("device");
    let is_hub = |part: &str| part.strip_prefix("usb").is_some_and(|number| number.parse::<u32>().is_ok());
    sysfs::link_name(&device, "subsystem").as_deref() == Some("usb")
        || fs::canonicalize(&device)
            .is_ok_and(|path| path.components().any(|part| part.as_os_str().to_str().is_some_and(is_hub)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a05_an_address_that_many_machines_share_is_known_by_address_and_bus() {
        let sysfs = tempfile::tempdir().unwrap();
        for (interface, device, bus) in [
            ("eth0", "devices/pci0000:00/0000:00:03.0", Some("pci")),
            ("usb0", "devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0", Some("usb")),
            ("usb1", "devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0", None),
            ("usbnic", "devices/pci0000:00/0000:00:14.0/usb-like", None),
        ] {
            let (device, class) = (sysfs.path().join(device), sysfs.path().join("class/net").join(interface));
            fs::create_dir_all(&device).unwrap();
            fs::create_dir_all(&class).unwrap();
            symlink(&device, class.join("device")).unwrap();
            if let Some(bus) = bus {
                symlink(sysfs.path().join("bus").join(bus), device.join("subsystem")).unwrap();
            }
        }
        let range = [0xbe, 0x3a, 0xf2, 0xb6, 0x05, 0x9f];
        for (interface, address, expected) in [
            ("usb0", range, Some(Shared::LocalOnUsb)),
            ("usb1", range, Some(Shared::LocalOnUsb)),
            ("eth0", range, None),
            ("usbnic", range, None),
            ("bond0", range, None),
            ("usb0", [0xa0, 0xce, 0xc8, 1, 2, 3], None),
            ("eth0", [0x52, 0x54, 0, 0, 0, 1], None),
            ("eth0", [0xfa, 0x16, 0x3e, 0, 0, 1], Some(Shared::ToBmc)),
            ("eth0", [0; 6], Some(Shared::Placeholder)),
            ("eth0", [0xff; 6], Some(Shared::Placeholder)),
            ("eth0", [0x01, 0, 0x5e, 0, 0, 1], Some(Shared::Group)),
            ("eth0", [0x00, 0x11, 0x22, 0x33, 0x44, 0x55], Some(Shared::Placeholder)),
        ] {
            assert_eq!(Shared::of(sysfs.path(), interface, &address), expected, "{interface} {address:x?}");
        }
        assert_eq!(Shared::of(sysfs.path(), "ib0", &[0; 20]), None, "InfiniBand has GUIDs");
    }
}
