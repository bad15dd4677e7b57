//! USB devices (section 10.4).

use farrier_linux::sysfs;
use serde::Serialize;
use std::path::Path;

/// A USB device that is neither a hub nor a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsbDevice {
    /// Product text, or its number where it has none.
    pub product: String,
    /// Vendor text, or its number where it has none.
    pub vendor: String,
    /// Bus and device number, `USB:<bus>:<device>`.
    pub handle: String,
}

/// Class of hubs, which root hubs have too.
const HUB: &str = "09";

/// The USB devices of the machine whose root file system is at `root`.
pub fn devices(root: &Path) -> Vec<UsbDevice> {
    let directory = root.join("sys/bus/usb/devices");
    sysfs::entries(&directory).into_iter().filter_map(|name| describe(&directory.join(name))).collect()
}

/// Interfaces of a device stand in the same folder and have no bus number.
fn describe(device: &Path) -> Option<UsbDevice> {
    let attribute = |name: &str| sysfs::attribute(device, name);
    let (bus, number) = (attribute("busnum")?, attribute("devnum")?);
    (attribute("bDeviceClass").as_deref() != Some(HUB)).then_some(())?;
    Some(UsbDevice {
        product: attribute("product").or_else(|| attribute("idProduct"))?,
        vendor: attribute("manufacturer").or_else(|| attribute("idVendor"))?,
        handle: format!("USB:{bus}:{number}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;

    #[test]
    fn hubs_and_interfaces_are_left_out() {
        let root = FakeRoot::new(&[
            ("sys/bus/usb/devices/usb1/busnum", "1\n"),
            ("sys/bus/usb/devices/usb1/devnum", "1\n"),
            ("sys/bus/usb/devices/usb1/bDeviceClass", "09\n"),
            ("sys/bus/usb/devices/1-2/busnum", "1\n"),
            ("sys/bus/usb/devices/1-2/devnum", "4\n"),
            ("sys/bus/usb/devices/1-2/product", "Virtual Keyboard\n"),
            ("sys/bus/usb/devices/1-2/idVendor", "0627\n"),
            ("sys/bus/usb/devices/1-2:1.0/bInterfaceClass", "03\n"),
        ]);
        let expected =
            UsbDevice { product: "Virtual Keyboard".into(), vendor: "0627".into(), handle: "USB:1:4".into() };
        assert_eq!(devices(root.path()), [expected]);
    }
}
