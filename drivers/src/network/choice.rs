//! Which network card a virtual interface is attached to, as Ironic chooses it.

use super::binding;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Node, Port};
use std::collections::BTreeSet;

/// The note of a port with the virtual interface of its instance.
pub(super) const TENANT_VIF: &str = "tenant_vif_port_id";

/// The virtual interface of an instance that is attached to a port.
pub(super) fn tenant_vif(port: &Port) -> Option<&str> {
    port.internal_info.get(TENANT_VIF)?.as_str()
}

/// What is to be attached.
#[derive(Debug, Clone)]
pub(super) struct Wish<'a> {
    pub(super) vif: &'a str,
    /// Identity of the port, where its user has named one.
    pub(super) port: Option<&'a str>,
    /// The physical networks that it is on; none where they do not matter.
    pub(super) physical_networks: &'a BTreeSet<String>,
    /// Whether only a card does whose cable is known.
    pub(super) needs_link: bool,
}

/// Where in the node's ports the free card is: on one of the physical networks, or on one that is not known; the first
/// by: its physical network is known, it is enabled for PXE.
///
/// # Errors
///
/// [`InterfaceError::InUse`] when it is attached already, or the port has another one; [`InterfaceError::Invalid`] when
/// no card does.
pub(super) fn choose(node: &Node, wish: &Wish<'_>) -> Result<usize, InterfaceError> {
    if let Some(port) = node.ports.iter().find(|port| tenant_vif(port) == Some(wish.vif)) {
        return Err(in_use(wish.vif, format!("it is attached to port {} already", port.address)));
    }
    if let Some(id) = wish.port {
        return named(node, id, wish);
    }
    let does = |port: &Port| tenant_vif(port).is_none() && unfit(port, wish).is_none();
    let rank = |port: &Port| (port.physical_network.is_none(), !port.pxe_enabled);
    let fit = node.ports.iter().enumerate().filter(|(_, port)| does(port));
    fit.min_by_key(|(_, port)| rank(port)).map(|(index, _)| index).ok_or_else(|| {
        let why = node.ports.iter().map(|port| {
            let attached = tenant_vif(port).map(|vif| format!("has {vif}"));
            let why = attached.or_else(|| unfit(port, wish)).unwrap_or_default();
            format!("{} {why}", port.address)
        });
        let why = why.collect::<Vec<_>>().join("; ");
        let reason =
            format!("no port is free for it: {}", if why.is_empty() { "there is none" } else { &why });
        InterfaceError::invalid("vif", reason)
    })
}

fn named(node: &Node, id: &str, wish: &Wish<'_>) -> Result<usize, InterfaceError> {
    let index = node.ports.iter().position(|port| port.uuid.to_string() == id);
    let index =
        index.ok_or_else(|| InterfaceError::invalid("port_uuid", format!("the node has no port {id}")))?;
    let port = &node.ports[index];
    match (tenant_vif(port), unfit(port, wish)) {
        (Some(vif), _) => Err(in_use(
            &format!("port {}", port.address),
            format!("{vif} is attached to it; detach that first"),
        )),
        (None, Some(why)) => {
            Err(InterfaceError::invalid("port_uuid", format!("port {} {why}", port.address)))
        }
        (None, None) => Ok(index),
    }
}

/// Why a card cannot have it, whoever else has the card.
fn unfit(port: &Port, wish: &Wish<'_>) -> Option<String> {
    let network = port.physical_network.as_ref();
    if let Some(network) = network.filter(|_| !wish.physical_networks.is_empty())
        && !wish.physical_networks.contains(network)
    {
        return Some(format!("is on physical network {network}"));
    }
    binding::check(port, wish.needs_link).err()
}

fn in_use(what: &str, reason: String) -> InterfaceError {
    InterfaceError::InUse { what: what.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::clock::{Clock, SystemClock};
    use farrier_conductor::model::NewNode;
    use serde_json::{Value, json};

    fn node(ports: &[Value]) -> Node {
        let mut node = Node::enrol(NewNode::default(), SystemClock.now());
        for (number, own) in ports.iter().enumerate() {
            let mut port = json!({"address": format!("52:54:00:00:00:{number:02x}")});
            port["uuid"] = format!("00000000-0000-4000-8000-{number:012}").into();
            port.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            node.ports.push(serde_json::from_value(port).unwrap());
        }
        node
    }

    fn chosen(ports: &[Value], physical: &[&str], port: Option<&str>) -> Result<usize, String> {
        let physical_networks = physical.iter().map(|name| (*name).to_owned()).collect();
        let wish = Wish { vif: "v", port, physical_networks: &physical_networks, needs_link: true };
        choose(&node(ports), &wish).map_err(|error| error.to_string())
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
            match (chosen(&ports, &physical, None), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{ports:?}"),
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
            match (chosen(&ports, &[], port.as_deref()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{ports:?}: {found:?}"),
            }
        }
    }
}
