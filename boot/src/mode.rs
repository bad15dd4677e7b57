//! Firmware mode and table of the system to be deployed, as its node has them (section 6.1).

use farrier_disk::table::TableKind;
use farrier_protocol::lookup::Node;
use serde_json::{Map, Value};

/// Whether the deployed system boots by UEFI; `is_uefi_now` says how this ramdisk booted.
pub fn is_uefi(node: &Node, is_uefi_now: bool) -> bool {
    let secure_boot = [&node.instance_info, &node.properties]
        .into_iter()
        .find_map(|map| capability(map, "secure_boot"))
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if secure_boot {
        return true;
    }
    let text = |map: &Map<String, Value>| map.get("deploy_boot_mode")?.as_str().map(str::to_owned);
    let mode = text(&node.instance_info)
        .or_else(|| capability(&node.properties, "boot_mode"))
        .or_else(|| text(&node.driver_internal_info));
    match mode.as_deref() {
        Some("uefi") => true,
        Some("bios") => false,
        _ => is_uefi_now,
    }
}

/// The table that a system without UEFI gets.
pub fn table(node: &Node) -> TableKind {
    let label =
        [&node.instance_info, &node.properties].into_iter().find_map(|map| capability(map, "disk_label"));
    if label.as_deref() == Some("gpt") { TableKind::Gpt } else { TableKind::Mbr }
}

/// One of the `capabilities`, which are an object, the JSON text of one, or `name:value,name:value`.
fn capability(map: &Map<String, Value>, name: &str) -> Option<String> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match map.get("capabilities")? {
        Value::Object(object) => object.get(name).map(plain),
        Value::String(text) => match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(object) => object.get(name).map(plain),
            Err(_) => {
                let mut pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
                pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
            }
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(record: Value) -> Node {
        let map = |name: &str| serde_json::from_value(record[name].clone()).unwrap_or_default();
        Node {
            instance_info: map("instance_info"),
            properties: map("properties"),
            driver_internal_info: map("driver_internal_info"),
            ..Node::default()
        }
    }

    #[test]
    fn f19_the_sources_of_the_boot_mode_have_an_order() {
        for (record, now, expected) in [
            (json!({}), true, true),
            (json!({}), false, false),
            (json!({"instance_info": {"deploy_boot_mode": "bios"}}), true, false),
            (json!({"properties": {"capabilities": "boot_mode:uefi,x"}}), false, true),
            (json!({"properties": {"capabilities": {"boot_mode": "bios"}}}), true, false),
            (json!({"driver_internal_info": {"deploy_boot_mode": "uefi"}}), false, true),
            (json!({"instance_info": {"deploy_boot_mode": "coreboot"}}), true, true),
            (
                json!({"instance_info": {"deploy_boot_mode": "bios", "capabilities": "{\"secure_boot\": \"True\"}"}}),
                false,
                true,
            ),
            (
                json!({"instance_info": {"deploy_boot_mode": "bios"}, "properties": {"capabilities": "boot_mode:uefi"}}),
                true,
                false,
            ),
        ] {
            assert_eq!(is_uefi(&node(record.clone()), now), expected, "{record}");
        }
    }

    #[test]
    fn d32_the_label_is_honoured() {
        for (record, expected) in [
            (json!({}), TableKind::Mbr),
            (json!({"properties": {"capabilities": "disk_label:gpt"}}), TableKind::Gpt),
            (json!({"instance_info": {"capabilities": {"disk_label": "gpt"}}}), TableKind::Gpt),
            (json!({"properties": {"capabilities": "disk_label:msdos"}}), TableKind::Mbr),
        ] {
            assert_eq!(table(&node(record.clone())), expected, "{record}");
        }
    }
}
