//! `farrier-agent inventory`: what the machine is made of, for people and for programs.

use farrier_hardware::inventory::{self, Request};
use farrier_protocol::inventory::{Disk, Inventory, NetworkInterface};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints the inventory on standard output: as a table, or as the contract's object (section 9.6).
///
/// # Errors
///
/// Standard output cannot be written.
pub fn print(as_json: bool, request: Request<'_>) -> io::Result<()> {
    let found = inventory::collect(request);
    let text = if as_json { serde_json::to_string_pretty(&found)? + "\n" } else { render(&found) };
    io::stdout().write_all(text.as_bytes())
}

fn render(found: &Inventory) -> String {
    let vendor = &found.system_vendor;
    let firmware = &vendor.firmware;
    let memory = match found.memory.physical_mb {
        Some(installed) => format!("{} of {} installed", size(found.memory.total), size(installed << 20)),
        None => size(found.memory.total),
    };
    let facts = [
        ("Host name", found.hostname.clone()),
        ("Machine", words(&[&vendor.manufacturer, &vendor.product_name])),
        ("Serial number", words(&[&vendor.serial_number])),
        ("Firmware", words(&[&firmware.vendor, &firmware.version, &firmware.build_date])),
        ("Boot mode", found.boot.current_boot_mode.clone()),
        ("Processors", words(&[&found.cpu.count.to_string(), "×", &found.cpu.model_name])),
        ("Sockets", words(&[&found.cpu.socket_count.to_string(), &found.cpu.architecture])),
        ("Memory", memory),
        ("BMC", bmc(found)),
    ];
    let mut text = String::new();
    for (label, value) in facts {
        writeln!(text, "{label:<15}{value}").expect("writing to a String never fails");
    }
    text.push('\n');
    text += &table(
        ["INTERFACE", "ADDRESS", "LINK", "SPEED", "IPV4", "IPV6", "DRIVER"],
        found.interfaces.iter().map(interface_row),
    );
    text.push('\n');
    text += &table(
        ["DISK", "SIZE", "KIND", "TRANSPORT", "MODEL", "SERIAL", "WWN"],
        found.disks.iter().map(disk_row),
    );
    text
}

fn interface_row(nic: &NetworkInterface) -> [String; 7] {
    [
        nic.name.clone(),
        nic.mac_address.clone(),
        if nic.has_carrier { "up" } else { "down" }.to_owned(),
        or_dash(nic.speed_mbps.map(|speed| format!("{speed} Mbit/s"))),
        or_dash(nic.ipv4_address.clone()),
        or_dash(nic.ipv6_address.clone()),
        or_dash(nic.driver.clone()),
    ]
}

fn disk_row(disk: &Disk) -> [String; 7] {
    [
        disk.name.clone(),
        size(disk.size),
        if disk.rotational { "rotating" } else { "solid state" }.to_owned(),
        or_dash(disk.tran.clone()),
        or_dash(disk.model.clone()),
        or_dash(disk.serial.clone()),
        or_dash(disk.wwn.clone()),
    ]
}

fn bmc(found: &Inventory) -> String {
    let parts = [&found.bmc_address, &found.bmc_v6address, &found.bmc_mac];
    words(&parts.map(|part| part.as_deref().unwrap_or_default()))
}

/// Columns as wide as their widest cell.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<_> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn words(parts: &[&str]) -> String {
    let known: Vec<_> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    if known.is_empty() { "-".to_owned() } else { known.join(" ") }
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn size(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_everything_and_says_what_is_not_known() {
        let nic = NetworkInterface {
            name: "eno1".into(),
            mac_address: "52:54:00:12:34:56".into(),
            has_carrier: true,
            speed_mbps: Some(10000),
            ..NetworkInterface::default()
        };
        let disk = Disk { name: "/dev/nvme0n1".into(), size: 3 << 30, ..Disk::default() };
        let mut inventory = Inventory { interfaces: vec![nic], disks: vec![disk], ..Inventory::default() };
        inventory.hostname = "node7".into();
        inventory.memory.total = 1 << 30;
        let text = render(&inventory);
        for line in [
            "Host name      node7",
            "BMC            -",
            "Memory         1.0 GiB",
            "INTERFACE  ADDRESS            LINK  SPEED         IPV4  IPV6  DRIVER",
            "eno1       52:54:00:12:34:56  up    10000 Mbit/s  -     -     -",
            "/dev/nvme0n1  3.0 GiB  solid state  -          -      -       -",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} is missing from\n{text}");
        }
    }
}
