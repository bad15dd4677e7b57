//! The lookup answer (section 2.3).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// What a lookup answers instead of a token that was already handed out (section 2.5).
pub const MASKED: &str = "******";

/// Shortest text that counts as a token (section 2.5).
pub const MIN_TOKEN_LENGTH: usize = 32;

/// The part of a node record that the agent sees.
///
/// The same object arrives with every step command, there with more keys.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Node {
    /// Identity of the node, as its conductor writes it; only a lookup needs one.
    #[serde(default)]
    pub uuid: String,
    /// Hardware properties; root device hints live here.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// What is to be deployed.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// Settings of the driver, its credentials masked. Only step commands carry them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub driver_info: Map<String, Value>,
    /// The driver's own notes.
    #[serde(default)]
    pub driver_internal_info: Map<String, Value>,
    /// The RAID volumes that the operator wants. Only step commands carry them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub target_raid_config: Value,
    /// The RAID volumes that were made.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub raid_config: Value,
}

impl Node {
    /// Root device hints: `instance_info.root_device`, else `properties.root_device` (section 8.1).
    pub fn root_device(&self) -> Option<&Value> {
        [&self.instance_info, &self.properties]
            .into_iter()
            .filter_map(|map| map.get("root_device"))
            .find(|hints| !hints.is_null())
    }

    /// Hint objects of the disks that must never be touched (section 8.4).
    pub fn skip_block_devices(&self) -> Option<&Value> {
        self.properties.get("skip_block_devices").filter(|hints| !hints.is_null())
    }
}

/// The `config` of a lookup answer. Keys this version does not know are kept out (F53).
#[derive(Clone, Serialize, Deserialize)]
pub struct LookupConfig {
    /// Base of the heartbeat interval, in seconds.
    pub heartbeat_timeout: u64,
    /// The token, [`MASKED`], or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// Always true on current conductors.
    #[serde(default)]
    pub agent_token_required: bool,
    /// Whether MD5 checksums are acceptable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_md5_checksum_enable: Option<bool>,
    /// Lowest TLS version, `1.2` or `1.3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_min_version: Option<String>,
    /// TLS 1.2 cipher suites, separated by colons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cipher_suites: Option<String>,
    /// Image formats that may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permitted_image_formats: Option<Vec<String>>,
    /// Whether images are written without being looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_deep_image_inspection: Option<bool>,
    /// Whether programs of a deployed image may be run to install its boot loader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_bios_bootloader_install: Option<bool>,
    /// Whether the addresses of the BMC are of no interest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_skip_bmc_detect: Option<bool>,
}

impl fmt::Debug for LookupConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookupConfig")
            .field("heartbeat_timeout", &self.heartbeat_timeout)
            .field("tls_min_version", &self.tls_min_version)
            .finish_non_exhaustive()
    }
}

/// Body of a lookup reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LookupReply {
    /// The node that owns one of the addresses.
    pub node: Node,
    /// Settings from the conductor.
    pub config: LookupConfig,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn f53_unknown_configuration_is_ignored() {
        let reply: LookupReply = serde_json::from_value(json!({
            "node": {"uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", "links": []},
            "config": {"heartbeat_timeout": 300, "from_the_future": {"x": 1}},
        }))
        .unwrap();
        assert_eq!(reply.config.heartbeat_timeout, 300);
    }

    #[test]
    fn root_device_hints_prefer_the_instance() {
        let node = |instance: Value, properties: Value| Node {
            instance_info: serde_json::from_value(instance).unwrap(),
            properties: serde_json::from_value(properties).unwrap(),
            ..Node::default()
        };
        let hints = json!({"size": 10});
        let other = json!({"name": "/dev/sda"});
        for (instance, properties, expected) in [
            (json!({}), json!({}), None),
            (json!({}), json!({"root_device": hints}), Some(&hints)),
            (json!({"root_device": other}), json!({"root_device": hints}), Some(&other)),
            (json!({"root_device": null}), json!({"root_device": hints}), Some(&hints)),
        ] {
            assert_eq!(node(instance, properties).root_device(), expected);
        }
    }
}
