//! Inventory objects (section 9.6).

use serde::{Deserialize, Serialize};

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
    /// PCI vendor as hexadecimal text.
    pub vendor: Option<String>,
    /// PCI product as hexadecimal text.
    pub product: Option<String>,
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
