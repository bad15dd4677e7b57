//! Which card, or group of cards, a virtual interface is attached to, as Ironic chooses it.

use super::binding;
use super::slot::{Slot, group_of};
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Node, PortGroup};
use std::collections::BTreeSet;

/// The port to attach.
#[derive(Debug, Clone)]
pub(super) struct Wish<'a> {
    pub(super) vif: &'a str,
    /// Identity of the port, where its user has named one.
    pub(super) port: Option<&'a str>,
    /// Identity or name of the port group, where its user has named one.
    pub(super) group: Option<&'a str>,
    /// The physical networks that it is on; none where they do not matter.
    pub(super) physical_networks: &'a BTreeSet<String>,
    /// Whether only cards do whose cables are known.
    pub(super) needs_link: bool,
}

/// The free card or group of the node: on one of the physical networks, or on one that is not known; the first by: its
/// physical network is known, it is a group, it is enabled for PXE.
///
/// # Errors
///
/// [`InterfaceError::InUse`] when it is attached already, or what its user named has another one;
/// [`InterfaceError::Invalid`] when none does.
pub(super) fn choose<'a>(node: &'a Node, wish: &Wish<'_>) -> Result<Slot<'a>, InterfaceError> {
    if let Some((_, slot)) = Slot::attached(node).into_iter().find(|(vif, _)| *vif == wish.vif) {
        return Err(in_use(wish.vif, format!("it is attached to {slot} already")));
    }
    match (wish.port, wish.group) {
        (Some(_), Some(_)) => {
            Err(InterfaceError::invalid("port_uuid", "is named beside portgroup_uuid; name one of them"))
        }
        (Some(id), None) => named(named_port(node, id)?, "port_uuid", wish),
        (None, Some(id)) => named(named_group(node, id)?, "portgroup_uuid", wish),
        (None, None) => best(node, wish),
    }
}

fn best<'a>(node: &'a Node, wish: &Wish<'_>) -> Result<Slot<'a>, InterfaceError> {
    let (fit, unfit): (Vec<_>, Vec<_>) = Slot::all(node)
        .into_iter()
        .map(|slot| (why_not(&slot, wish), slot))
        .partition(|(why, _)| why.is_none());
    let rank =
        |slot: &Slot<'_>| (slot.physical_network().is_none(), slot.group.is_none(), !slot.is_bootable());
    fit.into_iter().map(|(_, slot)| slot).min_by_key(rank).ok_or_else(|| {
        let why = unfit.iter().map(|(why, slot)| format!("{slot} {}", why.as_deref().unwrap_or_default()));
        let why = why.collect::<Vec<_>>().join("; ");
        let why = if why.is_empty() { "there is none" } else { &why };
        InterfaceError::invalid("vif", format!("no port is free for it: {why}"))
    })
}

/// What its user named, if it does.
fn named<'a>(slot: Slot<'a>, field: &str, wish: &Wish<'_>) -> Result<Slot<'a>, InterfaceError> {
    match (slot.vif(), unfit(&slot, wish)) {
        (Some(vif), _) => {
            Err(in_use(&slot.to_string(), format!("{vif} is attached to it; detach that first")))
        }
        (None, Some(why)) => Err(InterfaceError::invalid(field, format!("{slot} {why}"))),
        (None, None) => Ok(slot),
    }
}

/// A card, which has it by itself. Not every group lets its cards be used so.
fn named_port<'a>(node: &'a Node, id: &str) -> Result<Slot<'a>, InterfaceError> {
    let none = || InterfaceError::invalid("port_uuid", format!("the node has no port {id}"));
    let port = node.ports.iter().find(|port| port.uuid.to_string() == id).ok_or_else(none)?;
    match group_of(node, port) {
        Some(group) if !group.standalone_ports_supported => {
            let reason =
                format!("{} is used with its group alone; name portgroup_uuid {}", port.address, group.uuid);
            Err(InterfaceError::invalid("port_uuid", reason))
        }
        _ => Ok(Slot::card(port)),
    }
}

/// A group with cards.
fn named_group<'a>(node: &'a Node, id: &str) -> Result<Slot<'a>, InterfaceError> {
    let is_meant = |group: &PortGroup| group.uuid.to_string() == id || group.name.as_deref() == Some(id);
    let found = Slot::all(node).into_iter().find(|slot| slot.group.is_some_and(is_meant));
    found.ok_or_else(|| {
        InterfaceError::invalid("portgroup_uuid", format!("the node has no port in a port group {id}"))
    })
}

/// Why a card or group cannot have it.
fn why_not(slot: &Slot<'_>, wish: &Wish<'_>) -> Option<String> {
    slot.vif().map(|vif| format!("has {vif}")).or_else(|| unfit(slot, wish))
}

/// The reason against cards. All cards of a group must fit.
fn unfit(slot: &Slot<'_>, wish: &Wish<'_>) -> Option<String> {
    if let Some(network) = slot.physical_network().filter(|_| !wish.physical_networks.is_empty())
        && !wish.physical_networks.contains(network)
    {
        return Some(format!("is on physical network {network}"));
    }
    slot.cards.iter().find_map(|port| binding::check(port, wish.needs_link).err())
}

fn in_use(what: &str, reason: String) -> InterfaceError {
    InterfaceError::InUse { what: what.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};
    use serde_json::{Value, json};

    /// A node with two port groups.
    fn node(ports: &[Value]) -> Node {
        let mut node = Node::enrol(NewNode::default(), SystemClock.now());
        for (number, own) in ports.iter().enumerate() {
            let mut port = json!({"address": format!("52:54:00:00:00:{number:02x}")});
            port["uuid"] = format!("00000000-0000-4000-8000-{number:012}").into();
            port.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            node.ports.push(serde_json::from_value(port).unwrap());
        }
        for (name, is_alone) in [("bond0", true), ("bond1", false)] {
            let group = json!({"uuid": group(name), "kind": "port group", "name": name,
                "created_at": "2026-11-25T00:00:00Z", "standalone_ports_supported": is_alone});
            node.port_groups.push(serde_json::from_value(group).unwrap());
        }
        node
    }

    fn group(name: &str) -> String {
        format!("00000000-0000-4000-9000-00000000000{}", name.trim_start_matches("bond"))
    }

    /// A card with a cable, and something else.
    fn with_cable(own: &Value) -> Value {
        let mut port = json!({"local_link_connection": {"switch_id": "s", "port_id": "p"}});
        port.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        port
    }

    /// Where in the node's ports the chosen ones are.
    fn chosen(
        ports: &[Value],
        physical: &[&str],
        port: Option<&str>,
        group: Option<&str>,
    ) -> Result<Vec<usize>, String> {
        let physical_networks = physical.iter().map(|name| (*name).to_owned()).collect();
        let wish = Wish { vif: "v", port, group, physical_networks: &physical_networks, needs_link: true };
        let node = node(ports);
        let slot = choose(&node, &wish).map_err(|error| error.to_string())?;
        let at = |uuid| node.ports.iter().position(|port| port.uuid == uuid).unwrap();
        Ok(slot.identities().into_iter().map(at).collect())
    }

    #[test]
    fn the_card_is_chosen_by_physical_network_and_then_by_pxe() {
        let link = json!({"switch_id": "s", "port_id": "p"});
        let card = |network: Value, pxe: bool| json!({"physical_network": network, "pxe_enabled": pxe, "local_link_connection": link});
        let taken = json!({"local_link_connection": link, "internal_info": {"tenant_vif_port_id": "w"}});
        let null = Value::Null;
        for (ports, physical, expected) in [
            (vec![card(null.clone(), true), card(json!("a"), false)], vec!["a"], Ok(1)),
            (vec![card(json!("a"), false), card(json!("a"), true)], vec!["a", "b"], Ok(1)),
            (vec![card(json!("b"), true), card(null.clone(), false)], vec!["a"], Ok(1)),
            (vec![card(json!("b"), false), card(null.clone(), true)], vec![], Ok(0)),
            (vec![taken.clone(), card(null.clone(), false)], vec![], Ok(1)),
            (vec![json!({}), card(null.clone(), false)], vec![], Ok(1)),
            (vec![card(json!("b"), true)], vec!["a"], Err("52:54:00:00:00:00 is on physical network b")),
            (vec![taken], vec![], Err("52:54:00:00:00:00 has w")),
            (vec![json!({})], vec![], Err("local_link_connection: is empty")),
            (vec![], vec![], Err("there is none")),
        ] {
            match (chosen(&ports, &physical, None, None), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, [expected], "{ports:?}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{ports:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_is_attached_already_is_in_use_and_a_named_port_has_to_do() {
        let link = json!({"switch_id": "s", "port_id": "p"});
        let uuid = |number: u32| format!("00000000-0000-4000-8000-{number:012}");
        let has =
            |vif: &str| json!({"local_link_connection": link, "internal_info": {"tenant_vif_port_id": vif}});
        let free = json!({"local_link_connection": link, "pxe_enabled": false});
        for (ports, port, expected) in [
            (
                vec![free.clone(), has("v")],
                None,
                Err("v is in use: it is attached to port 52:54:00:00:00:01 already"),
            ),
            (
                vec![has("w"), free.clone()],
                Some(uuid(0)),
                Err("port 52:54:00:00:00:00 is in use: w is attached"),
            ),
            (vec![json!({})], Some(uuid(0)), Err("port_uuid: port 52:54:00:00:00:00 local_link_connection")),
            (vec![free.clone()], Some(uuid(7)), Err("port_uuid: the node has no port")),
            (vec![free.clone(), free], Some(uuid(1)), Ok(1)),
        ] {
            match (chosen(&ports, &[], port.as_deref(), None), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, [expected]),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{ports:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_group_comes_before_cards_and_all_of_it_has_to_do() {
        let in_group = |name: &str, own: &Value| {
            let mut port = with_cable(own);
            port["portgroup_id"] = group(name).into();
            port
        };
        let (none, card) = (json!({}), with_cable(&json!({})));
        let known = with_cable(&json!({"physical_network": "a"}));
        let elsewhere = json!({"physical_network": "b"});
        let has = json!({"internal_info": {"tenant_vif_port_id": "w"}});
        let mut without_cable = in_group("bond0", &none);
        without_cable["local_link_connection"] = json!({});
        for (ports, physical, expected) in [
            (vec![card.clone(), in_group("bond0", &none), in_group("bond0", &none)], vec![], Ok(vec![1, 2])),
            (vec![in_group("bond0", &none), known, in_group("bond0", &none)], vec!["a"], Ok(vec![1])),
            (vec![in_group("bond1", &elsewhere), card.clone()], vec!["a"], Ok(vec![1])),
            (vec![in_group("bond0", &has), in_group("bond0", &none), card.clone()], vec![], Ok(vec![2])),
            (vec![in_group("bond0", &none), without_cable, card], vec![], Ok(vec![2])),
            (vec![in_group("bond0", &has), in_group("bond0", &none)], vec![], Err("port group bond0 has w")),
        ] {
            match (chosen(&ports, &physical, None, None), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{ports:?}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{ports:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_group_is_named_by_name_or_identity_and_some_lend_their_cards() {
        let ports = ["bond0", "bond0", "bond1"].map(|name| with_cable(&json!({"portgroup_id": group(name)})));
        let uuid = |number: u32| Some(format!("00000000-0000-4000-8000-{number:012}"));
        let named = |name: &str| Some(name.to_owned());
        for (port, wanted, expected) in [
            (None, named("bond1"), Ok(vec![2])),
            (None, Some(group("bond0")), Ok(vec![0, 1])),
            (uuid(1), None, Ok(vec![1])),
            (uuid(2), None, Err("is used with its group alone; name portgroup_uuid 0000")),
            (None, named("bond7"), Err("portgroup_uuid: the node has no port in a port group bond7")),
            (uuid(1), named("bond0"), Err("port_uuid: is named beside portgroup_uuid")),
        ] {
            match (chosen(&ports, &[], port.as_deref(), wanted.as_deref()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{port:?} {wanted:?}: {found:?}"),
            }
        }
        let mut ports = ports;
        ports[0]["internal_info"] = json!({"tenant_vif_port_id": "w"});
        let error = chosen(&ports, &[], None, Some("bond0")).unwrap_err();
        assert!(error.contains("port group bond0 is in use: w is attached to it"), "{error}");
    }
}
