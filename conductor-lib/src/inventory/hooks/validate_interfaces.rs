//! Whether a machine has a network card that can be used.

use crate::inventory::cards::{self, Card};
use crate::inventory::hooks::{Changes, Inspected};
use serde_json::{Map, Value, json};

/// Notes the network cards of a machine, all and those that can be used, and fails the inspection when there are none.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    let cards = cards::read(&inspected.data.inventory);
    if cards.is_empty() {
        return Err("the inventory has no network card with a MAC address; look at its interfaces".to_owned());
    }
    let add_ports = inspected.settings.add_ports;
    let chosen = cards::chosen(&cards, add_ports);
    if chosen.is_empty() {
        return Err(format!(
            "none of the network cards {} is one that add_ports ({add_ports}) means",
            cards.iter().map(|card| card.address.as_str()).collect::<Vec<_>>().join(", ")
        ));
    }
    let addresses: Vec<_> = chosen.iter().map(|card| &card.address).collect();
    let plugin_data = [
        ("all_interfaces", by_name(&mut cards.iter())),
        ("valid_interfaces", by_name(&mut chosen.iter().copied())),
        ("macs", json!(addresses)),
    ];
    let plugin_data = plugin_data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Ok(Changes { plugin_data, ..Changes::default() })
}

fn by_name<'a>(cards: &mut dyn Iterator<Item = &'a Card<'a>>) -> Value {
    let described = cards.map(|card| {
        let mut all = card.all.clone();
        all.insert("mac_address".to_owned(), json!(card.address));
        all.insert("pxe_enabled".to_owned(), json!(card.is_pxe == Some(true)));
        (card.name.to_owned(), Value::Object(all))
    });
    Value::Object(described.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::look;
    use serde_json::{Value, json};

    fn validate(inventory: Value) -> Result<Value, String> {
        look("validate-interfaces", json!({}), inventory, json!({})).map(|changes| json!(changes.plugin_data))
    }

    #[test]
    fn the_cards_are_noted_as_bare_metal_operators_read_them() {
        let noted = validate(json!({
            "interfaces": [
                {"name": "eth0", "mac_address": "52-54-00-00-00-0A", "speed_mbps": 1000},
                {"name": "eth1", "mac_address": "52:54:00:00:00:02", "ipv4_address": "192.0.2.2"},
            ],
            "boot": {"pxe_interface": "52:54:00:00:00:0a"},
        }))
        .unwrap();
        let first = json!({"name": "eth0", "mac_address": "52:54:00:00:00:0a", "speed_mbps": 1000,
            "pxe_enabled": true});
        assert_eq!(noted["all_interfaces"]["eth0"], first);
        assert_eq!(noted["all_interfaces"]["eth1"]["pxe_enabled"], false);
        assert_eq!(noted["valid_interfaces"], json!({"eth0": first}));
        assert_eq!(noted["macs"], json!(["52:54:00:00:00:0a"]));
    }

    #[test]
    fn a_machine_without_a_usable_card_fails_its_inspection() {
        for (interfaces, reason) in [
            (json!([{"name": "ib0", "mac_address": "a0:00:02"}]), "no network card with a MAC address"),
            (
                json!([{"name": "lo", "mac_address": "00:00:00:00:00:00"}]),
                "no network card with a MAC address",
            ),
            (
                json!([{"name": "eth0", "mac_address": "52:54:00:00:00:01"}]),
                "52:54:00:00:00:01 is one that add_ports (pxe)",
            ),
        ] {
            let refused = validate(json!({"interfaces": interfaces})).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
