//! What switches tell of themselves by LLDP (IEEE 802.1AB, with the sets of 802.1 and 802.3), read from the bytes that the
//! collector `lldp` of the ramdisk keeps.

use crate::inventory::hooks::{Changes, Inspected};
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Most network cards whose bytes are read.
const MOST: usize = 64;

/// Most bytes of one element.
const LONGEST: usize = 511;

/// The organizations whose elements are known: 802.1 and 802.3.
const OF_802_1: [u8; 3] = [0x00, 0x80, 0xc2];
const OF_802_3: [u8; 3] = [0x00, 0x12, 0x0f];

/// Names of what a switch can be, by their bits from the lowest but one on.
const CAPABILITIES: [&str; 10] = [
    "Repeater",
    "Bridge",
    "WLAN",
    "Router",
    "Telephone",
    "DOCSIS cable device",
    "Station only",
    "C-Vlan",
    "S-Vlan",
    "TPMR",
];

/// Notes `parsed_lldp`, by the names of network cards. What cannot be read is left out, and takes nothing from the rest.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    let raw = inspected.data.plugin_data.get("lldp_raw");
    let interfaces = inspected.data.inventory.get("interfaces").and_then(Value::as_array);
    let mut parsed = Map::new();
    for interface in interfaces.into_iter().flatten().take(MOST) {
        let Some(name) = interface["name"].as_str() else { continue };
        let kept = raw.and_then(|raw| raw.get(name)).filter(|kept| !kept.is_null());
        let Some(elements) = kept.unwrap_or(&interface["lldp"]).as_array() else { continue };
        let told = read(elements);
        if !told.is_empty() {
            parsed.insert(name.to_owned(), told.into());
        }
    }
    let plugin_data = Map::from_iter([("parsed_lldp".to_owned(), Value::Object(parsed))]);
    Ok(Changes { plugin_data, ..Changes::default() })
}

/// Reads pairs of a type and a value in hexadecimal digits.
fn read(elements: &[Value]) -> Map<String, Value> {
    let mut told = Told(Map::new());
    for element in elements {
        let (Some(kind), Some(digits)) = (element[0].as_u64(), element[1].as_str()) else { continue };
        match hex::decode(digits).ok().filter(|value| value.len() <= LONGEST) {
            Some(value) => drop(told.element(kind, &value)),
            None => tracing::warn!("an LLDP element of type {kind} is no hexadecimal text, and is left out"),
        }
    }
    told.0
}

/// What is told, by its names. The first one of a name counts.
struct Told(Map<String, Value>);

impl Told {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.entry(name).or_insert_with(|| value.into());
    }

    fn append(&mut self, name: &str, value: impl Into<Value>) {
        if let Value::Array(values) = self.0.entry(name).or_insert_with(|| json!([])) {
            values.push(value.into());
        }
    }

    /// Reads one; nothing when it is cut short or unknown.
    fn element(&mut self, kind: u64, value: &[u8]) -> Option<()> {
        match kind {
            1 => self.set("switch_chassis_id", identity(value, 4, 5)?),
            2 => self.set("switch_port_id", identity(value, 3, 4)?),
            4 => self.set("switch_port_description", text(value)?),
            5 => self.set("switch_system_name", text(value)?),
            6 => self.set("switch_system_description", text(value)?),
            7 => {
                self.set("switch_capabilities_support", capabilities(number(value.get(..2)?)));
                self.set("switch_capabilities_enabled", capabilities(number(value.get(2..4)?)));
            }
            8 => {
                let length = usize::from(*value.first()?);
                self.append("switch_mgmt_addresses", address(value.get(1..=length)?)?);
            }
            127 => match *value.first_chunk::<3>()? {
                OF_802_1 => self.of_802_1(*value.get(3)?, &value[4..])?,
                OF_802_3 => self.of_802_3(*value.get(3)?, &value[4..])?,
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    fn of_802_1(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        match kind {
            1 => self.set("switch_port_untagged_vlan_id", number(value.get(..2)?)),
            2 => {
                let flags = *value.first()?;
                let vlan = number(value.get(1..3)?);
                self.set("switch_port_protocol_vlan_enabled", flags & 4 != 0);
                self.set("switch_port_protocol_vlan_support", flags & 2 != 0);
                self.append("switch_port_protocol_vlan_ids", vlan);
            }
            3 => {
                let name = value.get(3..3 + usize::from(*value.get(2)?))?;
                self.append("switch_port_vlans", json!({"id": number(value.get(..2)?), "name": text(name)?}));
            }
            4 => {
                let protocol = value.get(1..=usize::from(*value.first()?))?;
                self.append("switch_protocol_identities", hex::encode(protocol));
            }
            6 => self.set("switch_port_management_vlan_id", number(value.get(..2)?)),
            7 => self.aggregation(value)?,
            _ => return None,
        }
        Some(())
    }

    fn of_802_3(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        match kind {
            1 => {
                let flags = *value.first()?;
                self.set("switch_port_autonegotiation_enabled", flags & 2 != 0);
                self.set("switch_port_autonegotiation_support", flags & 1 != 0);
            }
            // It was of this set before it was of that of 802.1.
            3 => self.aggregation(value)?,
            4 => self.set("switch_port_mtu", number(value.get(..2)?)),
            _ => return None,
        }
        Some(())
    }

    fn aggregation(&mut self, value: &[u8]) -> Option<()> {
        let (flags, port) = (*value.first()?, number(value.get(1..5)?));
        self.set("switch_port_link_aggregation_enabled", flags & 2 != 0);
        self.set("switch_port_link_aggregation_support", flags & 1 != 0);
        self.set("switch_port_link_aggregation_id", port);
        Some(())
    }
}

/// An identity of a chassis or port: a hardware address, a network address, or a text.
fn identity(value: &[u8], hardware: u8, network: u8) -> Option<String> {
    let (kind, value) = value.split_first()?;
    match kind {
        kind if *kind == hardware => hardware_address(value),
        kind if *kind == network => address(value),
        _ => text(value),
    }
}

/// An address after the number of its family.
fn address(value: &[u8]) -> Option<String> {
    let (family, value) = value.split_first()?;
    match family {
        1 => Some(Ipv4Addr::from(*value.first_chunk::<4>()?).to_string()),
        2 => Some(Ipv6Addr::from(*value.first_chunk::<16>()?).to_string()),
        6 => hardware_address(value),
        _ => None,
    }
}

fn hardware_address(value: &[u8]) -> Option<String> {
    let octets: Vec<_> = value.first_chunk::<6>()?.iter().map(|octet| format!("{octet:02x}")).collect();
    Some(octets.join(":"))
}

fn text(value: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(value).ok()?.trim_end_matches('\0').to_owned())
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn capabilities(bits: u64) -> Vec<&'static str> {
    let has = |bit: usize| bits >> (bit + 1) & 1 == 1;
    CAPABILITIES.iter().enumerate().filter(|(bit, _)| has(*bit)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::look;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn parsed(raw: Value) -> Value {
        let inventory =
            json!({"interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:01"}, {"name": "eth1"}]});
        let changes = look("parse-lldp", json!({}), inventory, json!({"lldp_raw": raw})).unwrap();
        changes.plugin_data["parsed_lldp"].clone()
    }

    #[test]
    fn k32_what_a_switch_tells_is_read() {
        let told = parsed(json!({"eth0": [
            [1, "04112233aabbcc"], [2, "05657468302f31"], [3, "0078"], [4, "757020746f"], [5, "737731"],
            [6, "6f73"], [7, "00140004"], [8, "0501c00002fe020000000100"], [127, "0080c2010064"],
            [127, "0080c2030065047465737431"], [127, "0080c20300660474657374"], [127, "0080c20206007b"],
            [127, "0080c204026089"], [127, "0080c2060007"], [127, "00120f030100000001"], [127, "00120f0405dc"],
            [127, "00120f01030000001e"], [5, "6f74686572"], [0, ""],
        ]}));
        let expected = json!({
            "switch_chassis_id": "11:22:33:aa:bb:cc", "switch_port_id": "eth0/1",
            "switch_port_description": "up to", "switch_system_name": "sw1", "switch_system_description": "os",
            "switch_capabilities_support": ["Bridge", "Router"], "switch_capabilities_enabled": ["Bridge"],
            "switch_mgmt_addresses": ["192.0.2.254"], "switch_port_untagged_vlan_id": 100,
            "switch_port_vlans": [{"id": 101, "name": "test"}, {"id": 102, "name": "test"}],
            "switch_port_protocol_vlan_enabled": true, "switch_port_protocol_vlan_support": true,
            "switch_port_protocol_vlan_ids": [123], "switch_protocol_identities": ["6089"],
            "switch_port_management_vlan_id": 7, "switch_port_link_aggregation_enabled": false,
            "switch_port_link_aggregation_support": true, "switch_port_link_aggregation_id": 1,
            "switch_port_mtu": 1500, "switch_port_autonegotiation_enabled": true,
            "switch_port_autonegotiation_support": true,
        });
        assert_eq!(told["eth0"], expected, "{told:#}");
        assert_eq!(told.get("eth1"), None);
    }

    #[test]
    fn k32_identities_are_addresses_or_texts_and_what_is_cut_short_is_left_out() {
        for (element, expected) in [
            (json!([1, "0501c0000201"]), json!({"switch_chassis_id": "192.0.2.1"})),
            (json!([1, "077377"]), json!({"switch_chassis_id": "sw"})),
            (json!([2, "03112233aabbcc"]), json!({"switch_port_id": "11:22:33:aa:bb:cc"})),
            (json!([2, "040220010db8000000000000000000000001"]), json!({"switch_port_id": "2001:db8::1"})),
            (json!([1, "041122"]), json!(null)),
            (json!([1, ""]), json!(null)),
            (json!([1, "zz"]), json!(null)),
            (json!([1, "043"]), json!(null)),
            (json!([5, "ff"]), json!(null)),
            (json!([127, "0080c2"]), json!(null)),
            (json!([127, "0080c20300650f74"]), json!(null)),
            (json!([127, "ffffff01"]), json!(null)),
            (json!(["1", 7]), json!(null)),
            (json!(7), json!(null)),
        ] {
            let told = parsed(json!({"eth0": [element]}));
            assert_eq!(told.get("eth0").cloned().unwrap_or_default(), expected, "{element}");
        }
    }

    proptest! {
        #[test]
        fn k32_no_bytes_of_a_switch_end_an_inspection(kind in 0u64..130, value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            parsed(json!({"eth0": [[kind, digits]]}));
        }
    }
}
