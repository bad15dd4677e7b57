//! Devices without a driver, on PCI, virtio and the platform (ACPI and device tree).

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

/// PCI classes (PCI Code and ID Assignment Specification): mass storage, network, SD hosts (which lead to eMMC, too)
/// among the base system peripherals, and Fibre Channel among the serial buses.
const CLASSES: [(&str, Kind); 4] = [
    ("0x01", Kind::StorageController),
    ("0x0805", Kind::StorageController),
    ("0x0c04", Kind::StorageController),
    ("0x02", Kind::NetworkCard),
];
/// Types of virtio devices (its specification, section 5): network, block, SCSI host.
const VIRTIO_TYPES: [(&str, Kind); 3] =
    [("0x0001", Kind::NetworkCard), ("0x0002", Kind::StorageController), ("0x0008", Kind::StorageController)];

/// What the aliases of storage controllers on the platform contain: ACPI's names of SD hosts (`sdhci-acpi`) and its
/// classes of AHCI, NVMe and UFS, and the device tree's words for SD, eMMC, UFS and AHCI.
const PLATFORM_STORAGE: [&str; 22] = [
    ":PNP0D40:",
    ":80860F14:",
    ":80860F16:",
    ":80865ACA:",
    ":80865ACC:",
    ":80865AD0:",
    ":INT33BB:",
    ":INT33C6:",
    ":INT3436:",
    ":INT344D:",
    ":AMDI0040:",
    ":AMDI0041:",
    ":QCOM8051:",
    ":QCOM8052:",
    ":010601:",
    ":010802:",
    ":010901:",
    "sdhci",
    "mmc",
    "ufshc",
    "ahci",
    "nvme",
];

/// What switches the power of a card in a device tree is none of them.
const POWER_SEQUENCE: &str = "pwrseq";

/// A device that no driver drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driverless {
    /// What it is.
    pub kind: Kind,
    /// Address on its bus, such as `0000:03:00.0`.
    pub address: String,
    /// Vendor and device as PCI numbers them, such as `1000:0097`; on the platform ACPI's name, or the device tree's.
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
    on_pci.into_iter().chain(on_virtio).chain(on_platform(sysfs)).collect()
}

fn on_platform(sysfs: &Path) -> Vec<Driverless> {
    let devices = sysfs.join("bus/platform/devices");
    let describe = |name: String| {
        let device = devices.join(&name);
        let alias = sysfs::attribute(&device, "modalias")?;
        let is_storage =
            PLATFORM_STORAGE.iter().any(|known| alias.contains(known)) && !alias.contains(POWER_SEQUENCE);
        (is_storage && !device.join("driver").exists()).then(|| Driverless {
            kind: Kind::StorageController,
            address: name,
            id: platform_id(&alias).to_owned(),
        })
    };
    sysfs::entries(&devices).into_iter().filter_map(describe).collect()
}

/// The first name of an alias such as `acpi:PNP0D40:` or `of:NmmcT(null)Cvendor,sdhci`.
fn platform_id(alias: &str) -> &str {
    match alias.strip_prefix("of:") {
        Some(tree) => tree.split('C').nth(1).unwrap_or(tree),
        None => alias.split(':').nth(1).unwrap_or(alias),
    }
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
    fn g03_a_host_of_sd_or_emmc_on_the_platform_is_a_storage_controller() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, alias, has_driver) in [
            ("80860F14:00", "acpi:80860F14:PNP0D40:", false),
            ("80860F14:01", "acpi:80860F14:PNP0D40:", true),
            ("PNP0C0C:00", "acpi:PNP0C0C:", false),
            ("APMC0D33:00", "acpi:APMC0D33:010601:", false),
            ("fe340000.mmc", "of:NmmcT(null)Cbrcm,bcm2711-emmc2", false),
            ("fe200000.gpio", "of:NgpioT(null)Cbrcm,bcm2711-gpio", false),
            ("wifi-pwrseq", "of:Nwifi-pwrseqT(null)Cmmc-pwrseq-simple", false),
            ("serial8250", "platform:serial8250", false),
        ] {
            let device = sysfs.path().join("bus/platform/devices").join(name);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("modalias"), alias).unwrap();
            if has_driver {
                fs::create_dir(device.join("driver")).unwrap();
            }
        }
        let found: Vec<_> = without_driver(sysfs.path()).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "storage controller 80860F14:00 (80860F14)",
                "storage controller APMC0D33:00 (APMC0D33)",
                "storage controller fe340000.mmc (brcm,bcm2711-emmc2)",
            ]
        );
    }

    #[test]
    fn x03_g03_a_missing_driver_names_its_device() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, class, device, has_driver) in [
            ("pci/devices/0000:01:00.0", "0x020000", "0x1592", true),
            ("pci/devices/0000:02:00.0", "0x020000", "0x1592", false),
            ("pci/devices/0000:03:00.0", "0x010700", "0x0097", false),
            ("pci/devices/0000:04:00.0", "0x030000", "0x1592", false),
            ("pci/devices/0000:05:00.0", "0x0c0400", "0x2261", false),
            ("pci/devices/0000:06:00.0", "0x0c0330", "0x1592", false),
            // An SD host, another base system peripheral, UFS, and a system that manages disks.
            ("pci/devices/0000:07:00.0", "0x080501", "0x5acc", false),
            ("pci/devices/0000:08:00.0", "0x080000", "0x5acc", false),
            ("pci/devices/0000:09:00.0", "0x010901", "0x54ff", false),
            ("pci/devices/0000:0a:00.0", "0x010400", "0x201d", false),
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
                "storage controller 0000:07:00.0 (8086:5acc)",
                "storage controller 0000:09:00.0 (8086:54ff)",
                "storage controller 0000:0a:00.0 (8086:201d)",
                "storage controller virtio1 (8086:0002)",
            ]
        );
    }
}
