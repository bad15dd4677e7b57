//! The binding of cards for Neutron: their owner and their links.

use super::slot::Slot;
use farrier_conductor::model::{Node, Port, PortGroup};
use serde_json::{Map, Value, json};

/// The owner of ports that machines have.
pub(super) const DEVICE_OWNER: &str = "baremetal:none";

/// The number of the DHCP option by which InfiniBand is known.
const CLIENT_ID: &str = "61";

/// The key of `local_link_connection` with the host of a smart NIC, as its agent names it.
const HOSTNAME: &str = "hostname";

/// How options of Linux' bonding driver begin.
const BOND: &str = "bond_";

/// Whether a card has the data that Neutron needs to configure its switch port.
pub(super) fn check(port: &Port, needs_link: bool) -> Result<(), String> {
    let link = &port.local_link_connection;
    if port.is_smartnic && (link_text(port, HOSTNAME).is_none() || link_text(port, "port_id").is_none()) {
        return Err("local_link_connection: a smart NIC needs hostname and port_id".to_owned());
    }
    match needs_link && link.is_empty() {
        true => {
            Err("local_link_connection: is empty; give switch_id and port_id, or inspect the node".to_owned())
        }
        false => Ok(()),
    }
}

/// The host that cards are bound on: the node, but where one has an agent itself.
pub(super) fn host(node: &Node, slot: &Slot<'_>) -> String {
    let own = slot.smart_nic().and_then(|port| link_text(port, HOSTNAME));
    own.map_or_else(|| node.uuid.to_string(), str::to_owned)
}

/// The fields that bind a port of Neutron to cards, beside its address.
pub(super) fn fields(node: &Node, slot: &Slot<'_>) -> Value {
    let vnic_type = if slot.smart_nic().is_some() { "smart-nic" } else { "baremetal" };
    let links = slot.cards.iter().map(|port| &port.local_link_connection).filter(|link| !link.is_empty());
    let mut profile = json!({"local_link_information": links.collect::<Vec<_>>()});
    if let Some(group) = slot.group {
        profile["local_group_information"] = group_information(group);
    }
    if let Some(network) = slot.cards.iter().find_map(|port| port.physical_network.as_deref()) {
        profile["physical_network"] = json!(network);
    }
    let mut fields = json!({
        "binding:vnic_type": vnic_type,
        "binding:host_id": host(node, slot),
        "binding:profile": profile,
        "device_owner": DEVICE_OWNER,
    });
    if let Some(client) = slot.client_id() {
        fields["extra_dhcp_opts"] = json!([{"opt_name": CLIENT_ID, "opt_value": client}]);
    }
    fields
}

/// The bond settings of a group for its switch. Its properties are options of Linux' bonding driver.
fn group_information(group: &PortGroup) -> Value {
    let options = group.properties.iter().map(|(name, value)| {
        (if name.starts_with(BOND) { name.clone() } else { format!("{BOND}{name}") }, value.clone())
    });
    json!({
        "id": group.uuid,
        "name": group.name,
        "bond_mode": group.mode,
        "bond_properties": options.collect::<Map<_, _>>(),
    })
}

fn link_text<'a>(port: &'a Port, key: &str) -> Option<&'a str> {
    port.local_link_connection.get(key)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};

    fn port(fields: &Value) -> Port {
        let mut port = json!({"address": "52:54:00:00:00:01"});
        port.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(port).unwrap()
    }

    #[test]
    fn a_card_is_named_by_its_cable_and_smart_ones_by_their_host() {
        let node = Node::enrol(NewNode::default(), SystemClock.now());
        let link = json!({"switch_id": "0a:1b", "port_id": "Ethernet1"});
        let smart = json!({"hostname": "nic7", "port_id": "rep0-0"});
        for (own, host, vnic_type) in [
            (json!({"local_link_connection": link}), node.uuid.to_string(), "baremetal"),
            (json!({"local_link_connection": smart, "is_smartnic": true}), "nic7".to_owned(), "smart-nic"),
        ] {
            let card = port(&own);
            let sent = fields(&node, &Slot::card(&card));
            assert_eq!(sent["binding:host_id"], host);
            assert_eq!(sent["binding:vnic_type"], vnic_type);
            assert_eq!(
                sent["binding:profile"]["local_link_information"],
                json!([own["local_link_connection"]])
            );
            assert_eq!(sent["extra_dhcp_opts"], Value::Null);
        }
        let card = port(&json!({"extra": {"client-id": "ff:00"}}));
        let sent = fields(&node, &Slot::card(&card));
        assert_eq!(sent["binding:profile"], json!({"local_link_information": []}));
        assert_eq!(sent["extra_dhcp_opts"], json!([{"opt_name": "61", "opt_value": "ff:00"}]));
    }

    #[test]
    fn c19_the_physical_network_is_sent() {
        let mut node = Node::enrol(NewNode::default(), SystemClock.now());
        let card = port(&json!({"physical_network": "rack1"}));
        let sent = fields(&node, &Slot::card(&card))["binding:profile"].clone();
        assert_eq!(sent, json!({"local_link_information": [], "physical_network": "rack1"}));
        let group = json!({
            "uuid": "00000000-0000-4000-8000-000000000009", "kind": "port group", "name": "bond0",
            "created_at": "2026-11-25T00:00:00Z", "mode": "802.3ad",
        });
        node.port_groups.push(serde_json::from_value(group.clone()).unwrap());
        for network in [json!(null), json!("rack2")] {
            node.ports.push(port(&json!({"portgroup_id": group["uuid"], "physical_network": network})));
        }
        assert_eq!(fields(&node, &Slot::all(&node)[0])["binding:profile"]["physical_network"], "rack2");
    }

    #[test]
    fn a_group_is_named_by_all_of_its_cables_and_how_they_are_one() {
        let mut node = Node::enrol(NewNode::default(), SystemClock.now());
        let group = json!({
            "uuid": "00000000-0000-4000-8000-000000000009", "kind": "port group", "name": "bond0",
            "created_at": "2026-11-25T00:00:00Z", "mode": "802.3ad",
            "properties": {"miimon": 100, "bond_xmit_hash_policy": "layer3+4"},
        });
        node.port_groups.push(serde_json::from_value(group.clone()).unwrap());
        let links = [json!({"switch_id": "a", "port_id": "1"}), json!({"switch_id": "b", "port_id": "1"})];
        for link in &links {
            node.ports.push(port(&json!({"portgroup_id": group["uuid"], "local_link_connection": link})));
        }
        let slots = Slot::all(&node);
        assert_eq!(slots.len(), 1);
        let sent = json!({
            "local_link_information": links,
            "local_group_information": {
                "id": group["uuid"], "name": "bond0", "bond_mode": "802.3ad",
                "bond_properties": {"bond_miimon": 100, "bond_xmit_hash_policy": "layer3+4"},
            },
        });
        assert_eq!(fields(&node, &slots[0])["binding:profile"], sent);
    }

    #[test]
    fn a_card_whose_cable_is_not_known_is_refused_where_switches_are_set() {
        let link = json!({"switch_id": "0a:1b", "port_id": "Ethernet1"});
        for (own, needs_link, is_good) in [
            (json!({"local_link_connection": link}), true, true),
            (json!({}), true, false),
            (json!({}), false, true),
            (json!({"local_link_connection": link, "is_smartnic": true}), false, false),
            (
                json!({"local_link_connection": {"hostname": "h", "port_id": "p"}, "is_smartnic": true}),
                true,
                true,
            ),
        ] {
            assert_eq!(check(&port(&own), needs_link).is_ok(), is_good, "{own} {needs_link}");
        }
    }
}
