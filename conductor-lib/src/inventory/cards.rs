//! The network cards of an inventory, and which of them become ports.

use crate::inventory::settings::AddPorts;
use crate::model::MacAddress;
use serde_json::{Map, Value};
use std::net::IpAddr;

/// Most network cards that are looked at (lesson S49): each may become a port, and virtual functions are many.
const MOST: usize = 64;

/// A network card.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Card<'a> {
    /// Name that the kernel of the ramdisk gave it.
    pub(super) name: &'a str,
    /// Hardware address.
    pub(super) address: MacAddress,
    /// Its address in the network; nothing where it got none.
    pub(super) ip: Option<IpAddr>,
    /// Whether the machine booted from it; nothing where nobody tells from which.
    pub(super) is_pxe: Option<bool>,
    /// Client identifier of an InfiniBand card.
    pub(super) client_id: Option<&'a str>,
    /// All that the inventory has of it.
    pub(super) all: &'a Map<String, Value>,
}

/// The network cards that can have a port: with the address of one, and without loopback.
pub(crate) fn read(inventory: &Map<String, Value>) -> Vec<Card<'_>> {
    let booted_from = booted_from(inventory);
    let interfaces = inventory.get("interfaces").and_then(Value::as_array).into_iter().flatten();
    let mut cards =
        interfaces.filter_map(|interface| read_card(interface.as_object()?, booted_from.as_ref()));
    let read = cards.by_ref().take(MOST).collect();
    if cards.next().is_some() {
        tracing::warn!("an inventory has more than {MOST} network cards; the conductor ignores the others");
    }
    read
}

/// Whether one card can have an address: some BMCs tell placeholders of cards that are not there.
pub(crate) fn is_of_one_card(address: &MacAddress) -> bool {
    let first = address.as_str().get(..2).and_then(|octet| u8::from_str_radix(octet, 16).ok());
    first.is_some_and(|octet| octet & 1 == 0) && address.as_str().chars().any(|digit| !"0:".contains(digit))
}

fn read_card<'a>(all: &'a Map<String, Value>, booted_from: Option<&MacAddress>) -> Option<Card<'a>> {
    let text = |key: &str| all.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = text("name").unwrap_or_default();
    let address: MacAddress = text("mac_address")?.parse().ok()?;
    let ip = ["ipv4_address", "ipv6_address"].into_iter().find_map(|key| address_of(text(key)?));
    let is_loopback = name == "lo" || ip.is_some_and(|ip| ip.is_loopback());
    let is_pxe = booted_from.map(|booted| *booted == address);
    (!is_loopback).then(|| Card { name, address, ip, is_pxe, client_id: text("client_id"), all })
}

/// An address of IPv6 may name its link.
fn address_of(text: &str) -> Option<IpAddr> {
    text.split('%').next()?.parse().ok()
}

/// The card from which the machine booted: an address, with the type of its hardware before it where PXELINUX says it.
fn booted_from(inventory: &Map<String, Value>) -> Option<MacAddress> {
    let text = inventory.get("boot")?.get("pxe_interface")?.as_str()?;
    text.parse().or_else(|error| text.split_once('-').map_or(Err(error), |(_, address)| address.parse())).ok()
}

/// The cards that become ports.
pub(crate) fn chosen<'a, 'b>(cards: &'b [Card<'a>], add_ports: AddPorts) -> Vec<&'b Card<'a>> {
    let is_chosen = |card: &&Card<'_>| match (add_ports, card.is_pxe) {
        (AddPorts::All, _) => true,
        (AddPorts::Pxe, Some(is_pxe)) => is_pxe,
        (AddPorts::Pxe, None) | (AddPorts::Active, _) => card.ip.is_some(),
    };
    cards.iter().filter(is_chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inventory(pxe_interface: Value) -> Map<String, Value> {
        let inventory = json!({
            "interfaces": [
                {"name": "lo", "mac_address": "00:00:00:00:00:00", "ipv4_address": "127.0.0.1"},
                {"name": "eth0", "mac_address": "52:54:00:00:00:01", "ipv4_address": null, "ipv6_address": null},
                {"name": "eth1", "mac_address": "52:54:00:00:00:02", "ipv4_address": "192.0.2.2"},
                {"name": "eth2", "mac_address": "52:54:00:00:00:03", "ipv6_address": "fe80::1%eth2"},
                {"name": "ib0", "mac_address": "a0:00:02:20:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01"},
                {"name": "eth3", "mac_address": "52:54:00:00:00:04", "ipv4_address": "127.0.0.2"},
                "nonsense",
            ],
            "boot": {"pxe_interface": pxe_interface},
        });
        serde_json::from_value(inventory).unwrap()
    }

    fn chosen_by(pxe_interface: Value, add_ports: AddPorts) -> Vec<String> {
        let inventory = inventory(pxe_interface);
        chosen(&read(&inventory), add_ports).into_iter().map(|card| card.name.to_owned()).collect()
    }

    #[test]
    fn which_cards_become_ports() {
        let first = "01-52-54-00-00-00-01";
        for (add_ports, pxe_interface, expected) in [
            (AddPorts::All, json!(null), &["eth0", "eth1", "eth2"][..]),
            (AddPorts::All, json!(first), &["eth0", "eth1", "eth2"]),
            (AddPorts::Active, json!(first), &["eth1", "eth2"]),
            (AddPorts::Pxe, json!(first), &["eth0"]),
            (AddPorts::Pxe, json!("52:54:00:00:00:02"), &["eth1"]),
            (AddPorts::Pxe, json!("52-54-00-00-00-02"), &["eth1"]),
            // Nobody tells from which card the machine booted.
            (AddPorts::Pxe, json!(null), &["eth1", "eth2"]),
            (AddPorts::Pxe, json!("nonsense"), &["eth1", "eth2"]),
            (AddPorts::Pxe, json!("01-52-54-00-00-00-99"), &[]),
        ] {
            assert_eq!(chosen_by(pxe_interface.clone(), add_ports), expected, "{add_ports} {pxe_interface}");
        }
    }

    #[test]
    fn s49_more_cards_than_any_machine_has_are_not_looked_at() {
        let card = |number: u32| json!({"name": "e", "mac_address": format!("52:54:00:00:{:02x}:{:02x}", number / 256, number % 256)});
        let many: Vec<_> = (0..1000).map(card).collect();
        let inventory = Map::from_iter([("interfaces".to_owned(), json!(many))]);
        assert_eq!(read(&inventory).len(), MOST);
    }
}
