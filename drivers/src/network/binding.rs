//! What Neutron is told of a network card: who has it, and where its cable leads.

use farrier_conductor::model::{Node, Port};
use serde_json::{Value, json};

/// The owner of ports that machines have.
pub(super) const DEVICE_OWNER: &str = "baremetal:none";

/// The number of the DHCP option by which InfiniBand is known.
const CLIENT_ID: &str = "61";

/// The key of `local_link_connection` with the host of a smart NIC, as its agent names it.
const HOSTNAME: &str = "hostname";

/// Whether Neutron can be told of a card what it needs; switches are set by where its cable leads.
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

/// The host that a card is bound on: the node, but where it has an agent itself.
pub(super) fn host(node: &Node, port: &Port) -> String {
    match (port.is_smartnic, link_text(port, HOSTNAME)) {
        (true, Some(host)) => host.to_owned(),
        _ => node.uuid.to_string(),
    }
}

/// The fields that bind a port of Neutron to a card, beside its address.
pub(super) fn fields(node: &Node, port: &Port) -> Value {
    let vnic_type = if port.is_smartnic { "smart-nic" } else { "baremetal" };
    let links: Vec<_> =
        Some(&port.local_link_connection).filter(|link| !link.is_empty()).into_iter().collect();
    let mut fields = json!({
        "binding:vnic_type": vnic_type,
        "binding:host_id": host(node, port),
        "binding:profile": {"local_link_information": links},
        "device_owner": DEVICE_OWNER,
    });
    if let Some(client) = port.extra.get("client-id").and_then(Value::as_str) {
        fields["extra_dhcp_opts"] = json!([{"opt_name": CLIENT_ID, "opt_value": client}]);
    }
    fields
}

fn link_text<'a>(port: &'a Port, key: &str) -> Option<&'a str> {
    port.local_link_connection.get(key)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::clock::{Clock, SystemClock};
    use farrier_conductor::model::NewNode;

    fn port(fields: &Value) -> Port {
        let mut port = json!({"address": "52:54:00:00:00:01"});
        port.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(port).unwrap()
    }

    #[test]
    fn a_card_is_told_by_its_cable_and_smart_ones_by_their_host() {
        let node = Node::enrol(NewNode::default(), SystemClock.now());
        let link = json!({"switch_id": "0a:1b", "port_id": "Ethernet1"});
        let smart = json!({"hostname": "nic7", "port_id": "rep0-0"});
        for (own, host, vnic_type) in [
            (json!({"local_link_connection": link}), node.uuid.to_string(), "baremetal"),
            (json!({"local_link_connection": smart, "is_smartnic": true}), "nic7".to_owned(), "smart-nic"),
        ] {
            let told = fields(&node, &port(&own));
            assert_eq!(told["binding:host_id"], host);
            assert_eq!(told["binding:vnic_type"], vnic_type);
            assert_eq!(
                told["binding:profile"]["local_link_information"],
                json!([own["local_link_connection"]])
            );
            assert_eq!(told["extra_dhcp_opts"], Value::Null);
        }
        let told = fields(&node, &port(&json!({"extra": {"client-id": "ff:00"}})));
        assert_eq!(told["binding:profile"], json!({"local_link_information": []}));
        assert_eq!(told["extra_dhcp_opts"], json!([{"opt_name": "61", "opt_value": "ff:00"}]));
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
