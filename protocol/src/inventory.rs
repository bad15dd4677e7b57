//! Inventory objects (section 9.6). Every key is on the wire even when its value is unknown.

use serde::{Deserialize, Serialize};

/// What a machine is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Network interfaces, in order of their names.
    pub interfaces: Vec<NetworkInterface>,
    /// Processors.
    pub cpu: Cpu,
    /// Disks, in order of their names.
    pub disks: Vec<Disk>,
    /// Memory.
    pub memory: Memory,
    /// IPv4 address of the BMC, `0.0.0.0` when it has none; nothing when there is no BMC.
    pub bmc_address: Option<String>,
    /// IPv6 address of the BMC, `::/0` when it has none; nothing when there is no BMC.
    pub bmc_v6address: Option<String>,
    /// Who made the machine.
    pub system_vendor: SystemVendor,
    /// How it was booted.
    pub boot: BootInfo,
    /// The kernel's host name.
    pub hostname: String,
    /// Hardware address of the BMC; the key is absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc_mac: Option<String>,
}

/// The processors of a machine; unknown texts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model as the processor names itself.
    pub model_name: String,
    /// Highest frequency in MHz, as text.
    pub frequency: String,
    /// Logical processors.
    pub count: u32,
    /// Architecture as the kernel names it, such as `x86_64`.
    pub architecture: String,
    /// Capability flags.
    pub flags: Vec<String>,
    /// Sockets.
    pub socket_count: u32,
}

/// The memory of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes the kernel can use.
    pub total: u64,
    /// MiB of the memory modules; nothing when neither firmware nor kernel reports it.
    pub physical_mb: Option<u64>,
}

/// Who made the machine; unknown texts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemVendor {
    /// Product name.
    pub product_name: String,
    /// Serial number of the machine.
    pub serial_number: String,
    /// Maker.
    pub manufacturer: String,
    /// Its firmware.
    pub firmware: Firmware,
}

/// Firmware of a machine; unknown texts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    /// Maker.
    pub vendor: String,
    /// Version.
    pub version: String,
    /// Release date as the firmware writes it.
    pub build_date: String,
}

/// How a machine was booted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootInfo {
    /// `uefi` or `bios`.
    pub current_boot_mode: String,
    /// Kernel parameter `BOOTIF` as it was given.
    pub pxe_interface: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInterface {
    /// Kernel name.
    pub name: String,
    /// Permanent hardware address, lower case with colons.
    pub mac_address: String,
    /// First IPv4 address.
    pub ipv4_address: Option<String>,
    /// First IPv6 address.
    pub ipv6_address: Option<String>,
    /// Whether the link is up.
    pub has_carrier: bool,
    /// LLDP frames; always null, the `lldp` collector has them.
    #[serde(default)]
    pub lldp: Option<Vec<(u8, String)>>,
    /// PCI vendor as hexadecimal text.
    pub vendor: Option<String>,
    /// PCI product as hexadecimal text.
    pub product: Option<String>,
    /// Client identifier of an InfiniBand interface.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Name by the firmware's scheme; always null, kernel names have replaced it.
    #[serde(default)]
    pub biosdevname: Option<String>,
    /// Speed of the link in Mbit/s; nothing while it is down.
    #[serde(default)]
    pub speed_mbps: Option<u64>,
    /// Address of the device on its bus.
    #[serde(default)]
    pub pci_address: Option<String>,
    /// Name of the kernel driver.
    pub driver: Option<String>,
}

/// A disk as inventories and root device hints see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Path of the device node, `/dev/<kernel name>`.
    pub name: String,
    /// Model text, trimmed.
    pub model: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Whether it spins.
    pub rotational: bool,
    /// World Wide Name.
    pub wwn: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Vendor text, trimmed.
    pub vendor: Option<String>,
    /// World Wide Name with the vendor extension.
    pub wwn_with_extension: Option<String>,
    /// The vendor extension alone.
    pub wwn_vendor_extension: Option<String>,
    /// SCSI host, channel, target and LUN.
    pub hctl: Option<String>,
    /// Link under `/dev/disk/by-path`.
    pub by_path: Option<String>,
    /// Bytes of a logical sector.
    pub logical_sectors: u32,
    /// Bytes of a physical sector.
    pub physical_sectors: u32,
    /// Transport: `nvme`, `sata`, `sas`, `usb`, `virtio`, …
    pub tran: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_inventory_of_the_contract_comes_back_as_it_went() {
        let value = json!({
            "interfaces": [{
                "name": "eno1", "mac_address": "52:54:00:12:34:56", "ipv4_address": "192.0.2.20",
                "ipv6_address": null, "has_carrier": true, "lldp": [[1, "04aabbccddeeff"]],
                "vendor": "0x8086", "product": "0x1572", "client_id": null, "biosdevname": null,
                "speed_mbps": 10000, "pci_address": "0000:01:00.0", "driver": "i40e",
            }],
            "cpu": {
                "model_name": "Example CPU @ 2.40GHz", "frequency": "3900.0000", "count": 32,
                "architecture": "x86_64", "flags": ["fpu", "lm"], "socket_count": 2,
            },
            "disks": [],
            "memory": {"total": 134910824448_u64, "physical_mb": 131072},
            "bmc_address": "198.51.100.10",
            "bmc_v6address": "::/0",
            "system_vendor": {
                "product_name": "Example R1", "serial_number": "ABC1234", "manufacturer": "Example Inc.",
                "firmware": {"vendor": "Example Inc.", "version": "2.4.7", "build_date": "01/31/2026"},
            },
            "boot": {"current_boot_mode": "uefi", "pxe_interface": "01-52-54-00-12-34-56"},
            "hostname": "localhost.localdomain",
            "bmc_mac": "d0:94:66:00:11:22",
        });
        let inventory: Inventory = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(inventory).unwrap(), value);
    }

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn keys_are_those_of_the_contract_and_unknown_values_are_null() {
        let mut inventory =
            Inventory { interfaces: vec![NetworkInterface::default()], ..Inventory::default() };
        let value = serde_json::to_value(&inventory).unwrap();
        let mut expected = vec![
            "bmc_address",
            "bmc_v6address",
            "boot",
            "cpu",
            "disks",
            "hostname",
            "interfaces",
            "memory",
            "system_vendor",
        ];
        assert_eq!(keys(&value), expected);
        assert!(value["bmc_address"].is_null());
        for (part, expected) in [
            (
                &value["interfaces"][0],
                &[
                    "biosdevname",
                    "client_id",
                    "driver",
                    "has_carrier",
                    "ipv4_address",
                    "ipv6_address",
                    "lldp",
                    "mac_address",
                    "name",
                    "pci_address",
                    "product",
                    "speed_mbps",
                    "vendor",
                ][..],
            ),
            (
                &value["cpu"],
                &["architecture", "count", "flags", "frequency", "model_name", "socket_count"][..],
            ),
            (&value["memory"], &["physical_mb", "total"][..]),
            (&value["system_vendor"], &["firmware", "manufacturer", "product_name", "serial_number"][..]),
            (&value["system_vendor"]["firmware"], &["build_date", "vendor", "version"][..]),
            (&value["boot"], &["current_boot_mode", "pxe_interface"][..]),
        ] {
            assert_eq!(keys(part), expected);
        }
        inventory.bmc_mac = Some("d0:94:66:00:11:22".to_owned());
        expected.insert(1, "bmc_mac");
        assert_eq!(keys(&serde_json::to_value(&inventory).unwrap()), {
            expected.sort_unstable();
            expected
        });
    }
}
