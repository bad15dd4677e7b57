//! PCI devices (section 10.4).

use farrier_linux::sysfs;
use serde::Serialize;
use std::path::Path;

/// A PCI device; numbers are hexadecimal text without a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PciDevice {
    /// Vendor.
    pub vendor_id: String,
    /// Product.
    pub product_id: String,
    /// Class, subclass and programming interface.
    pub class: String,
    /// Revision.
    pub revision: Option<String>,
    /// Address on the bus.
    pub bus: String,
    /// Node of its memory, -1 where there is one node only.
    pub numa_node_id: Option<String>,
}

/// The PCI devices of the machine whose root file system is at `root`. One without an identity is
/// left out (F42).
pub fn devices(root: &Path) -> Vec<PciDevice> {
    let directory = root.join("sys/bus/pci/devices");
    sysfs::entries(&directory)
        .into_iter()
        .filter_map(|bus| {
            let device = directory.join(&bus);
            let hex = |name: &str| Some(sysfs::attribute(&device, name)?.trim_start_matches("0x").to_owned());
            Some(PciDevice {
                vendor_id: hex("vendor")?,
                product_id: hex("device")?,
                class: hex("class")?,
                revision: hex("revision"),
                numa_node_id: sysfs::attribute(&device, "numa_node"),
                bus,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;

    #[test]
    fn f42_a_device_without_identity_is_left_out() {
        let root = FakeRoot::new(&[
            ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x8086\n"),
            ("sys/bus/pci/devices/0000:01:00.0/device", "0x1572\n"),
            ("sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n"),
            ("sys/bus/pci/devices/0000:01:00.0/numa_node", "0\n"),
            ("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n"),
        ]);
        let expected = serde_json::json!([{
            "vendor_id": "8086", "product_id": "1572", "class": "020000", "revision": null,
            "bus": "0000:01:00.0", "numa_node_id": "0",
        }]);
        assert_eq!(serde_json::to_value(devices(root.path())).unwrap(), expected);
    }
}
