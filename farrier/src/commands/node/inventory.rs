//! What `farrier node inventory` prints.

use farrier_conductor::model::InspectionData;
use serde_json::{Map, Value};
use std::fmt::Write;

/// The parts of an inventory that people look for, one line each. What an agent did not tell is `-`.
pub(crate) fn table(data: &InspectionData) -> String {
    let inventory = Value::Object(data.inventory.clone());
    let mut table = String::new();
    let mut line = |key: &str, parts: &[String]| {
        writeln!(table, "{key:12} {}", parts.join("  ").trim_end()).expect("a text takes every line");
    };
    let at = |pointer: &str| text(inventory.pointer(pointer));
    line("machine", &[at("/system_vendor/manufacturer"), at("/system_vendor/product_name")]);
    line("serial", &[at("/system_vendor/serial_number")]);
    let firmware = [at("/system_vendor/firmware/vendor"), at("/system_vendor/firmware/version")];
    line("firmware", &[&firmware[..], &[at("/boot/current_boot_mode")]].concat());
    line("processors", &[at("/cpu/count"), at("/cpu/model_name"), at("/cpu/architecture")]);
    line("memory", &[inventory.pointer("/memory/physical_mb").map_or("-".into(), |mb| format!("{mb} MiB"))]);
    line("bmc", &[at("/bmc_address"), at("/bmc_v6address")]);
    for disk in objects(&inventory, "disks") {
        let kind = match disk.get("rotational") {
            Some(Value::Bool(true)) => "spins",
            _ => "",
        };
        let parts = [
            of(disk, "name"),
            size(disk.get("size")),
            of(disk, "model"),
            of(disk, "serial"),
            kind.to_owned(),
        ];
        line("disk", &parts);
    }
    for card in objects(&inventory, "interfaces") {
        let link = if card.get("has_carrier") == Some(&Value::Bool(true)) { "up" } else { "down" };
        let address = ["ipv4_address", "ipv6_address"].iter().find_map(|key| card.get(*key)?.as_str());
        let parts =
            [of(card, "name"), of(card, "mac_address"), link.to_owned(), address.unwrap_or("-").to_owned()];
        line("interface", &parts);
    }
    table
}

fn objects<'a>(inventory: &'a Value, key: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    inventory.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn of(object: &Map<String, Value>, key: &str) -> String {
    text(object.get(key))
}

/// Whatever a machine says is shown without control characters, which a terminal would obey.
fn text(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.chars().filter(|c| !c.is_control()).collect(),
        Some(other) => other.to_string(),
    };
    if text.trim().is_empty() { "-".to_owned() } else { text.trim().to_owned() }
}

fn size(bytes: Option<&Value>) -> String {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    bytes.and_then(Value::as_u64).map_or("-".to_owned(), gib)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_inventory_is_a_line_for_each_part() {
        let data = InspectionData {
            inventory: serde_json::from_value(json!({
                "system_vendor": {"manufacturer": "Example\u{1b}[2J Inc.", "product_name": "R1", "serial_number": " ",
                    "firmware": {"vendor": "", "version": "2.4.7"}},
                "boot": {"current_boot_mode": "uefi"},
                "cpu": {"count": 32, "model_name": "Example CPU", "architecture": "x86_64"},
                "memory": {"physical_mb": 131_072}, "bmc_address": "198.51.100.10", "bmc_v6address": null,
                "disks": [{"name": "/dev/sda", "size": 1_610_612_736, "rotational": true, "serial": "A1"}],
                "interfaces": [{"name": "eno1", "mac_address": "52:54:00:12:34:56", "has_carrier": true,
                    "ipv4_address": null, "ipv6_address": "2001:db8::1"}],
            }))
            .unwrap(),
            plugin_data: Map::new(),
        };
        let expected = "\
machine      Example[2J Inc.  R1
serial       -
firmware     -  2.4.7  uefi
processors   32  Example CPU  x86_64
memory       131072 MiB
bmc          198.51.100.10  -
disk         /dev/sda  1.5 GiB  -  A1  spins
interface    eno1  52:54:00:12:34:56  up  2001:db8::1
";
        assert_eq!(table(&data), expected);
    }

    #[test]
    fn an_empty_inventory_is_shown_too() {
        assert!(table(&InspectionData::default()).starts_with("machine      -  -\nserial       -\n"));
    }
}
