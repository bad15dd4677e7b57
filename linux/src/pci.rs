//! PCI and virtio devices without a driver.

use crate::sysfs;
use std::fmt;
use std::path::Path;

/// What a machine cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Leads to disks.
    StorageController,
    /// Leads to a network.
    NetworkCard,
}

/// PCI classes (PCI Code and ID Assignment Specification): mass storage, network, and Fibre Channel among the
/// serial buses.
const CLASSES: [(&str, Kind); 3] =
    [("0x01", Kind::StorageController), ("0x0c04", Kind::StorageController), ("0x02", Kind::NetworkCard)];
/// Types of virtio devices (its specification, section 5): network, block, SCSI host.
const VIRTIO_TYPES: [(&str, Kind); 3] =
    [("0x0001", Kind::NetworkCard), ("0x0002", Kind::StorageController), ("0x0008", Kind::StorageController)];

/// A device that no driver drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driverless {
    /// What it is.
    pub kind: Kind,
    /// Address on its bus, such as `0000:03:00.0`.
    pub address: String,
    /// Vendor and device as PCI numbers them, such as `1000:0097`.
    pub id: String,
}

impl fmt::Display for Driverless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::StorageController => "storage controller",
            Kind::NetworkCard => "network card",
        };
        write!(f, "{kind} {} ({})", self.address, self.id)
    }
}

/// The storage controllers and network cards without a driver in the sysfs mounted at `sysfs`.
pub fn without_driver(sysfs: &Path) -> Vec<Driverless> {
    let on_pci = on_bus(sysfs, "pci", "class", &CLASSES);
    let on_virtio = on_bus(sysfs, "virtio", "device", &VIRTIO_TYPES);
    on_pci.into_iter().chain(on_virtio).collect()
}

fn on_bus(sysfs: &Path, bus: &str, attribute: &str, kinds: &[(&str, Kind)]) -> Vec<Driverless> {
    let devices = sysfs.join("bus").join(bus).join("devices");
    let describe = |name: String| {
        let device = devices.join(&name);
        let text = sysfs::attribute(&device, attribute)?;
        let (_, kind) = kinds.iter().find(|(prefix, _)| text.starts_with(prefix))?;
        let id = |file| sysfs::attribute(&device, file).map(|text| text.replace("0x", ""));
        let id = format!("{}:{}", id("vendor")?, id("device")?);
        (!device.join("driver").exists()).then_some(Driverless { kind: *kind, address: name, id })
    };
    sysfs::entries(&devices).into_iter().filter_map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn x03_a_missing_driver_names_its_device() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, class, device, has_driver) in [
            ("pci/devices/0000:01:00.0", "0x020000", "0x1592", true),
            ("pci/devices/0000:02:00.0", "0x020000", "0x1592", false),
            ("pci/devices/0000:03:00.0", "0x010700", "0x0097", false),
            ("pci/devices/0000:04:00.0", "0x030000", "0x1592", false),
            ("pci/devices/0000:05:00.0", "0x0c0400", "0x2261", false),
            ("pci/devices/0000:06:00.0", "0x0c0330", "0x1592", false),
            ("virtio/devices/virtio0", "", "0x0001", true),
            ("virtio/devices/virtio1", "", "0x0002", false),
            ("virtio/devices/virtio2", "", "0x0004", false),
        ] {
            let directory = sysfs.path().join("bus").join(name);
            fs::create_dir_all(&directory).unwrap();
            for (file, text) in [("class", class), ("vendor", "0x8086"), ("device", device)] {
                fs::write(directory.join(file), text).unwrap();
            }
            if has_driver {
                fs::create_dir(directory.join("driver")).unwrap();
            }
        }
        let found: Vec<_> = without_driver(sysfs.path()).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "network card 0000:02:00.0 (8086:1592)",
                "storage controller 0000:03:00.0 (8086:0097)",
                "storage controller 0000:05:00.0 (8086:2261)",
                "storage controller virtio1 (8086:0002)",
            ]
        );
    }
}
