//! The machine as rows of kind, device, property and value (section 10.4, `extra-hardware`).
//!
//! The names of kinds, devices and properties are those of `hardware-detect`, whose rows conductors'
//! rules look for. Benchmarks only read from disks.

mod benchmark;

pub use benchmark::Benchmark;

use farrier_protocol::inventory::{Disk, Inventory, NetworkInterface};
use serde::Serialize;
use std::fmt::Display;

/// Bytes of the unit in which the size of a disk is given.
const GIGABYTE: u64 = 1_000_000_000;

/// A property of a device: kind, device, name of the property, and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row(String, String, String, String);

/// Rows, to which only what is known is added.
#[derive(Debug, Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn add(&mut self, kind: &str, device: &str, property: &str, value: impl Display) {
        let value = value.to_string();
        if !value.is_empty() {
            self.0.push(Row(kind.to_owned(), device.to_owned(), property.to_owned(), value));
        }
    }

    fn add_known(&mut self, kind: &str, device: &str, property: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.add(kind, device, property, value);
        }
    }
}

/// What an inventory says, and what the wanted benchmarks measure.
pub fn describe(inventory: &Inventory, benchmarks: &[Benchmark]) -> Vec<Row> {
    let mut rows = Rows::default();
    system(&mut rows, inventory);
    processors(&mut rows, inventory);
    rows.add("disk", "logical", "count", inventory.disks.len());
    inventory.disks.iter().for_each(|one| disk(&mut rows, one));
    inventory.interfaces.iter().for_each(|one| interface(&mut rows, one));
    let disks: Vec<_> = inventory.disks.iter().map(|one| one.name.as_str()).collect();
    for benchmark in benchmarks {
        rows.0.extend(benchmark.run(&disks));
    }
    rows.0
}

fn system(rows: &mut Rows, inventory: &Inventory) {
    let vendor = &inventory.system_vendor;
    rows.add("system", "product", "name", &vendor.product_name);
    rows.add("system", "product", "vendor", &vendor.manufacturer);
    rows.add("system", "product", "serial", &vendor.serial_number);
    rows.add("system", "kernel", "arch", &inventory.cpu.architecture);
    rows.add("firmware", "bios", "vendor", &vendor.firmware.vendor);
    rows.add("firmware", "bios", "version", &vendor.firmware.version);
    rows.add("firmware", "bios", "date", &vendor.firmware.build_date);
    rows.add("firmware", "boot", "mode", &inventory.boot.current_boot_mode);
    rows.add("memory", "total", "size", inventory.memory.total);
    rows.add_known("system", "ipmi", "ip-address", inventory.bmc_address.as_ref());
    rows.add_known("system", "ipmi", "mac-address", inventory.bmc_mac.as_ref());
}

fn processors(rows: &mut Rows, inventory: &Inventory) {
    let cpu = &inventory.cpu;
    rows.add("cpu", "physical", "number", cpu.socket_count);
    rows.add("cpu", "logical", "number", cpu.count);
    for socket in 0..cpu.socket_count {
        let device = format!("physical_{socket}");
        rows.add("cpu", &device, "product", &cpu.model_name);
        rows.add("cpu", &device, "frequency", &cpu.frequency);
        rows.add("cpu", &device, "flags", cpu.flags.join(" "));
    }
}

fn disk(rows: &mut Rows, disk: &Disk) {
    let name = disk.name.trim_start_matches("/dev/");
    rows.add("disk", name, "size", disk.size / GIGABYTE);
    rows.add_known("disk", name, "vendor", disk.vendor.as_ref());
    rows.add_known("disk", name, "model", disk.model.as_ref());
    rows.add_known("disk", name, "serial", disk.serial.as_ref());
    rows.add_known("disk", name, "wwn-id", disk.wwn.as_ref());
    rows.add("disk", name, "rotational", u8::from(disk.rotational));
    rows.add("disk", name, "optimal_io_size", disk.physical_sectors);
}

fn interface(rows: &mut Rows, nic: &NetworkInterface) {
    rows.add("network", &nic.name, "serial", &nic.mac_address);
    rows.add_known("network", &nic.name, "ipv4", nic.ipv4_address.as_ref());
    rows.add_known("network", &nic.name, "vendor", nic.vendor.as_ref());
    rows.add_known("network", &nic.name, "product", nic.product.as_ref());
    rows.add_known(
        "network",
        &nic.name,
        "businfo",
        nic.pci_address.as_ref().map(|place| format!("pci@{place}")),
    );
    rows.add_known("network", &nic.name, "driver", nic.driver.as_ref());
    rows.add_known("network", &nic.name, "speed", nic.speed_mbps.map(|speed| format!("{speed}Mbit/s")));
    rows.add("network", &nic.name, "link", if nic.has_carrier { "yes" } else { "no" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::inventory::Cpu;
    use serde_json::json;

    #[test]
    fn rows_have_four_texts_and_unknown_values_none() {
        let inventory = Inventory {
            cpu: Cpu { count: 4, socket_count: 1, flags: vec!["fpu".into(), "lm".into()], ..Cpu::default() },
            disks: vec![Disk { name: "/dev/sda".into(), size: 500 * GIGABYTE, ..Disk::default() }],
            interfaces: vec![NetworkInterface {
                name: "eno1".into(),
                mac_address: "52:54:00:12:34:56".into(),
                pci_address: Some("0000:01:00.0".into()),
                ..NetworkInterface::default()
            }],
            bmc_mac: Some("d0:94:66:00:11:22".into()),
            ..Inventory::default()
        };
        let found = serde_json::to_value(describe(&inventory, &[])).unwrap();
        let rows = found.as_array().unwrap();
        for row in [
            json!(["cpu", "logical", "number", "4"]),
            json!(["cpu", "physical_0", "flags", "fpu lm"]),
            json!(["disk", "logical", "count", "1"]),
            json!(["disk", "sda", "size", "500"]),
            json!(["network", "eno1", "serial", "52:54:00:12:34:56"]),
            json!(["network", "eno1", "businfo", "pci@0000:01:00.0"]),
            json!(["network", "eno1", "link", "no"]),
            json!(["system", "ipmi", "mac-address", "d0:94:66:00:11:22"]),
        ] {
            assert!(rows.contains(&row), "{row} is not in {found:#}");
        }
        assert!(rows.iter().all(|row| row[3] != ""), "{found:#}");
        assert!(!rows.iter().any(|row| row[2] == "model" || row[2] == "ipv4"), "{found:#}");
    }
}
