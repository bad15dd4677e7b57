//! What a machine is made of, as its agent tells it.

use crate::machine::Machine;
use farrier_protocol::inventory::{
    BootInfo, Cpu, Disk, Firmware, Inventory, Memory, NetworkInterface, SystemVendor,
};
use serde_json::{Value, json};

/// Bytes of a disk.
const DISK_BYTES: u64 = 960_197_124_096;

/// Its disks.
pub fn disks(machine: &Machine) -> Vec<Disk> {
    let serial = format!("{}-DISK0", machine.identity.serial().to_uppercase());
    vec![Disk {
        name: "/dev/sda".to_owned(),
        model: Some("FLEET SSD 960".to_owned()),
        size: DISK_BYTES,
        wwn: Some(format!("0x5000f1ee{:08x}", machine.identity.number)),
        serial: Some(serial),
        vendor: Some("FLEET".to_owned()),
        hctl: Some("0:0:0:0".to_owned()),
        by_path: Some("/dev/disk/by-path/pci-0000:00:17.0-ata-1".to_owned()),
        logical_sectors: 512,
        physical_sectors: 4096,
        tran: Some("sata".to_owned()),
        ..Disk::default()
    }]
}

/// All of it.
pub fn inventory(machine: &Machine) -> Inventory {
    let identity = &machine.identity;
    Inventory {
        interfaces: vec![NetworkInterface {
            name: "eno1".to_owned(),
            mac_address: identity.mac(),
            ipv4_address: Some(identity.shown_address().to_string()),
            has_carrier: true,
            vendor: Some("0x8086".to_owned()),
            product: Some("0x1572".to_owned()),
            speed_mbps: Some(10_000),
            pci_address: Some("0000:01:00.0".to_owned()),
            driver: Some("i40e".to_owned()),
            ..NetworkInterface::default()
        }],
        cpu: Cpu {
            model_name: "Fleet CPU @ 2.40GHz".to_owned(),
            frequency: "2400.0000".to_owned(),
            count: 32,
            architecture: "x86_64".to_owned(),
            flags: vec!["fpu".to_owned(), "lm".to_owned()],
            socket_count: 2,
        },
        disks: disks(machine),
        memory: Memory { total: 134_910_824_448, physical_mb: Some(131_072) },
        bmc_address: Some(identity.address.to_string()),
        bmc_v6address: Some("::/0".to_owned()),
        system_vendor: SystemVendor {
            product_name: "Fleet 1".to_owned(),
            serial_number: identity.serial(),
            manufacturer: machine.vendor.manufacturer().to_owned(),
            firmware: Firmware {
                vendor: "Fleet".to_owned(),
                version: "1.0".to_owned(),
                ..Firmware::default()
            },
        },
        boot: BootInfo { current_boot_mode: "uefi".to_owned(), pxe_interface: Some(identity.mac()) },
        hostname: identity.serial(),
        bmc_mac: None,
    }
}

/// What is posted for an inspection.
pub fn report(machine: &Machine) -> Value {
    json!({
        "inventory": inventory(machine), "root_disk": disks(machine).first(),
        "boot_interface": machine.identity.mac(), "error": null,
        "configuration": {
            "collectors": ["default", "logs"],
            "managers": [{"name": "generic_hardware_manager", "version": "1.2"}],
        },
    })
}
