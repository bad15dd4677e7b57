//! Ports: the network cards of a machine (section 1.7).

use crate::model::mac_address::MacAddress;
use crate::model::typed_maps::mask::mask;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

/// A network card. Keys that this conductor does not know stay with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Identity.
    #[serde(default = "Uuid::new_v4")]
    pub uuid: Uuid,
    /// Unique name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hardware address, by which the machine is known.
    pub address: MacAddress,
    /// Whether the machine may boot from it.
    #[serde(default = "yes")]
    pub pxe_enabled: bool,
    /// The other end of its cable: `switch_id`, `port_id`, `switch_info`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub local_link_connection: Map<String, Value>,
    /// Name of the network that the cable leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_network: Option<String>,
    /// The group of ports that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portgroup_id: Option<Uuid>,
    /// Whether it is a card with a system of its own, which the network needs to be on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_smartnic: bool,
    /// What operators keep; `client-id` of InfiniBand.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// What network interfaces keep: the virtual ports it is bound to.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub internal_info: Map<String, Value>,
    /// When it was written down first; the store says so where nothing is said here.
    #[serde(default, with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<OffsetDateTime>,
    /// When an operator changed it last.
    #[serde(default, with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<OffsetDateTime>,
    /// Everything else.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Keys of `internal_info` with the virtual port that a port is bound to; the first that is set holds
/// (section 9.8).
const CURRENT_VIF: &[&str] = &[
    "cleaning_vif_port_id",
    "provisioning_vif_port_id",
    "rescuing_vif_port_id",
    "inspection_vif_port_id",
    "servicing_vif_port_id",
    "tenant_vif_port_id",
];

fn yes() -> bool {
    true
}

impl Port {
    /// The port as it leaves the conductor, with every secret masked.
    pub fn shown(&self) -> Self {
        let mut port = self.clone();
        let maps =
            [&mut port.local_link_connection, &mut port.extra, &mut port.internal_info, &mut port.others];
        maps.into_iter().for_each(mask);
        port
    }

    /// A card of which only the address is known.
    pub fn new(address: MacAddress) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            name: None,
            address,
            pxe_enabled: true,
            local_link_connection: Map::new(),
            physical_network: None,
            portgroup_id: None,
            is_smartnic: false,
            extra: Map::new(),
            internal_info: Map::new(),
            created_at: None,
            updated_at: None,
            others: Map::new(),
        }
    }

    /// The virtual port that it is bound to now.
    pub fn current_vif(&self) -> Option<&str> {
        CURRENT_VIF.iter().find_map(|key| self.internal_info.get(*key)?.as_str())
    }
}

/// A record shows the addresses of its ports alone.
pub(in crate::model) mod addresses {
    use super::{MacAddress, Port};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        ports: &[Port],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(ports.iter().map(|port| &port.address))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Port>, D::Error> {
        Ok(Vec::<MacAddress>::deserialize(deserializer)?.into_iter().map(Port::new).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_port_keeps_what_is_not_known_and_shows_no_emptiness() {
        let plain = Port::new("52:54:00:00:00:01".parse().unwrap());
        assert_eq!(
            serde_json::to_value(&plain).unwrap(),
            json!({"uuid": plain.uuid, "address": "52:54:00:00:00:01", "pxe_enabled": true})
        );
        let full = json!({
            "uuid": Uuid::new_v4(), "name": "left",
            "address": "52:54:00:00:00:02", "pxe_enabled": false, "is_smartnic": true,
            "local_link_connection": {"switch_id": "0a:1b", "port_id": "Ethernet1", "switch_info": "tor1"},
            "physical_network": "rack1", "extra": {"client-id": "ff:00"},
            "internal_info": {"tenant_vif_port_id": "t"}, "category": "hypercube",
            "created_at": "2026-11-23T01:00:00Z", "updated_at": "2026-11-23T02:00:00Z",
        });
        let port: Port = serde_json::from_value(full.clone()).unwrap();
        assert_eq!(port.others["category"], "hypercube");
        assert_eq!(serde_json::to_value(port).unwrap(), full);
    }

    #[test]
    fn the_virtual_port_of_the_operation_under_way_comes_first() {
        let mut port = Port::new("52:54:00:00:00:01".parse().unwrap());
        assert_eq!(port.current_vif(), None);
        for key in CURRENT_VIF.iter().rev() {
            port.internal_info.insert((*key).to_owned(), json!(key));
            assert_eq!(port.current_vif(), Some(*key));
        }
    }
}
