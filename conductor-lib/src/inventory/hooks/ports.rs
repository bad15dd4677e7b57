//! Ports: the network cards that the conductor knows a machine by.

use crate::inventory::cards::{self, Card};
use crate::inventory::hooks::{Changes, Inspected};
use crate::inventory::settings::KeepPorts;
use crate::model::{MacAddress, Port};
use serde_json::json;

/// Adds ports and removes those that are not to stay. Which of them the machine may boot from is set where the ramdisk
/// tells from which it did; those by which the machine was found stay enabled.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    let cards = cards::read(&inspected.data.inventory);
    let chosen = cards::chosen(&cards, inspected.settings.add_ports);
    let has = |cards: &[&Card<'_>], address: &MacAddress| cards.iter().any(|card| card.address == *address);
    let stays = |port: &&Port| match inspected.settings.keep_ports {
        KeepPorts::All => true,
        KeepPorts::Present => has(&cards.iter().collect::<Vec<_>>(), &port.address),
        KeepPorts::Added => has(&chosen, &port.address),
    };
    let mut ports: Vec<Port> = inspected.node.ports.iter().filter(stays).cloned().collect();
    for card in chosen.iter().filter(|card| cards::is_of_one_card(&card.address)) {
        if ports.iter().all(|port| port.address != card.address) {
            ports.push(new_port(card));
        }
    }
    for port in &mut ports {
        let finds_the_machine = has(&cards.iter().collect::<Vec<_>>(), &port.address)
            && inspected.node.ports.iter().any(|known| known.address == port.address);
        // An inspection may have named one card of the machine to have another one replaced.
        if finds_the_machine && port.pxe_enabled {
            continue;
        }
        let is_pxe = match cards.iter().find(|card| card.address == port.address) {
            Some(card) => card.is_pxe,
            // One that is not in the machine is not booted from, where it is known from which the machine is.
            None => cards.iter().any(|card| card.is_pxe == Some(true)).then_some(false),
        };
        port.pxe_enabled = is_pxe.unwrap_or(port.pxe_enabled);
    }
    Ok(Changes { ports: Some(ports), ..Changes::default() })
}

fn new_port(card: &Card<'_>) -> Port {
    let mut port = Port::new(card.address.clone());
    port.extra.extend(card.client_id.map(|id| ("client-id".to_owned(), json!(id))));
    port
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::{AddPorts, InspectionSettings};
    use super::super::tests::{data, node};
    use super::*;
    use serde_json::Value;

    const KNOWN: &str = "52:54:00:00:00:01";
    const OTHER: &str = "52:54:00:00:00:02";
    const GONE: &str = "52:54:00:00:00:09";

    /// The ports of a node that had [`KNOWN`] and [`GONE`], each with whether it may be booted from.
    fn ports(settings: InspectionSettings, pxe_interface: Value) -> Vec<(String, bool)> {
        let inventory = json!({
            "interfaces": [
                {"name": "eth0", "mac_address": KNOWN},
                {"name": "eth1", "mac_address": OTHER, "ipv4_address": "192.0.2.2", "client_id": "ff:00"},
            ],
            "boot": {"pxe_interface": pxe_interface},
        });
        let (node, data) = (node(&[KNOWN, GONE]), data(inventory, json!({})));
        let inspected = Inspected { node: &node, data: &data, settings: &settings };
        let ports = look(&inspected).unwrap().ports.unwrap();
        if let Some(added) = ports.iter().find(|port| port.address.as_str() == OTHER) {
            assert_eq!(added.extra["client-id"], "ff:00");
        }
        ports.into_iter().map(|port| (port.address.to_string(), port.pxe_enabled)).collect()
    }

    #[test]
    fn which_ports_a_node_has_afterwards() {
        let settings = |add_ports, keep_ports| InspectionSettings {
            add_ports,
            keep_ports,
            ..InspectionSettings::default()
        };
        let (pxe, nobody_tells) = (json!(OTHER), json!(null));
        for (add, keep, pxe_interface, expected) in [
            (AddPorts::Pxe, KeepPorts::All, &pxe, &[(KNOWN, true), (GONE, false), (OTHER, true)][..]),
            (AddPorts::All, KeepPorts::Present, &pxe, &[(KNOWN, true), (OTHER, true)]),
            (AddPorts::All, KeepPorts::Added, &pxe, &[(KNOWN, true), (OTHER, true)]),
            (AddPorts::Pxe, KeepPorts::Added, &pxe, &[(OTHER, true)]),
            (AddPorts::Active, KeepPorts::Added, &nobody_tells, &[(OTHER, true)]),
            (AddPorts::Active, KeepPorts::Present, &nobody_tells, &[(KNOWN, true), (OTHER, true)]),
            (AddPorts::Pxe, KeepPorts::All, &nobody_tells, &[(KNOWN, true), (GONE, true), (OTHER, true)]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(address, pxe)| ((*address).to_owned(), *pxe)).collect();
            assert_eq!(
                ports(settings(add, keep), pxe_interface.clone()),
                expected,
                "{add} {keep} {pxe_interface}"
            );
        }
    }
}
