//! Port groups: the network cards of a machine that are one to the network (node API 1.23).

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// A port group of a node, as network interfaces read it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PortGroup {
    /// Identity.
    pub uuid: Uuid,
    /// Name, where it has one.
    pub name: Option<String>,
    /// Hardware address of the group.
    pub address: Option<String>,
    /// Mode of Linux' bonding driver.
    pub mode: Option<String>,
    /// Name of the network that its cables lead to.
    pub physical_network: Option<String>,
    /// Further options of the bonding driver.
    pub properties: Map<String, Value>,
    /// What operators note.
    pub extra: Map<String, Value>,
    /// Whether each of its ports may be used alone.
    pub standalone_ports_supported: bool,
}
