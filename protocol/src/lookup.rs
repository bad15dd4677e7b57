//! The lookup answer (section 2.3).

use serde::de::DeserializeOwned;
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
    /// The instance to deploy.
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

/// The `config` of a lookup answer. Keys this version does not know are kept out, and so are values of a
/// wrong type (F53).
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub struct LookupConfig {
    /// Base of the heartbeat interval, in seconds.
    pub heartbeat_timeout: u64,
    /// The token, [`MASKED`], or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// Always true on current conductors.
    pub agent_token_required: bool,
    /// Whether MD5 checksums are acceptable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_md5_checksum_enable: Option<bool>,
    /// Lowest TLS version, `1.2` or `1.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_min_version: Option<String>,
    /// TLS 1.2 cipher suites, separated by colons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cipher_suites: Option<String>,
    /// Image formats that may be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permitted_image_formats: Option<Vec<String>>,
    /// Whether images are written without being looked into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_deep_image_inspection: Option<bool>,
    /// Whether programs of a deployed image may be run to install its boot loader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_bios_bootloader_install: Option<bool>,
    /// Whether the addresses of the BMC are of no interest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_skip_bmc_detect: Option<bool>,
    /// Values of the options in the section `[container]`, by their names.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub agent_containers: Map<String, Value>,
    /// What was left out because of its type, one text for each key.
    #[serde(skip)]
    pub left_out: Vec<String>,
}

/// The key of the base of the heartbeat interval.
const TIMEOUT: &str = "heartbeat_timeout";
/// Base of the heartbeat interval where none that can be read is told, in seconds (section 2.3).
const HEARTBEAT_TIMEOUT: u64 = 300;

impl From<Map<String, Value>> for LookupConfig {
    fn from(values: Map<String, Value>) -> Self {
        let mut reader = Reader { values, left_out: Vec::new() };
        Self {
            heartbeat_timeout: reader.take(TIMEOUT).unwrap_or(HEARTBEAT_TIMEOUT),
            agent_token: reader.take("agent_token"),
            agent_token_required: reader.take("agent_token_required").unwrap_or_default(),
            agent_md5_checksum_enable: reader.take("agent_md5_checksum_enable"),
            tls_min_version: reader.take("tls_min_version"),
            tls_cipher_suites: reader.take("tls_cipher_suites"),
            permitted_image_formats: reader.take("permitted_image_formats"),
            disable_deep_image_inspection: reader.take("disable_deep_image_inspection"),
            enable_bios_bootloader_install: reader.take("enable_bios_bootloader_install"),
            agent_skip_bmc_detect: reader.take("agent_skip_bmc_detect"),
            agent_containers: reader.take("agent_containers").unwrap_or_default(),
            left_out: reader.left_out,
        }
    }
}

/// Takes values by their keys.
struct Reader {
    values: Map<String, Value>,
    left_out: Vec<String>,
}

impl Reader {
    /// A value; nothing when it is absent, null, or of a wrong type. What is told of that has no value in it,
    /// which may be a secret.
    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.values.remove(key).filter(|value| !value.is_null())?;
        let kind = match value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let read = serde_json::from_value(value).ok();
        if read.is_none() {
            self.left_out.push(format!("{key} cannot be {kind} with this content"));
        }
        read
    }
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
#[serde(try_from = "Body")]
pub struct LookupReply {
    /// The node that owns one of the addresses.
    pub node: Node,
    /// Settings from the conductor.
    pub config: LookupConfig,
}

/// Body of a lookup reply, of old conductors too.
#[derive(Deserialize)]
struct Body {
    node: Node,
    config: Option<Map<String, Value>>,
    /// All that old conductors say beside the node.
    heartbeat_timeout: Option<Value>,
}

impl TryFrom<Body> for LookupReply {
    type Error = &'static str;

    fn try_from(body: Body) -> Result<Self, Self::Error> {
        let alone = body.heartbeat_timeout.map(|value| Map::from_iter([(TIMEOUT.to_owned(), value)]));
        let config = body.config.filter(|config| config.contains_key(TIMEOUT)).or(alone);
        let config = config.ok_or("neither config nor the reply itself has a heartbeat_timeout")?;
        Ok(Self { node: body.node, config: config.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";

    #[test]
    fn x20_a_value_of_a_wrong_type_is_left_out_alone() {
        let sound = json!({
            "heartbeat_timeout": 60, "agent_token": "t", "agent_token_required": true,
            "agent_md5_checksum_enable": false, "tls_min_version": "1.3", "tls_cipher_suites": "x",
            "permitted_image_formats": ["raw"], "disable_deep_image_inspection": true,
            "enable_bios_bootloader_install": true, "agent_skip_bmc_detect": true,
            "agent_containers": {"runner": "docker"},
        });
        let read = |config: &Value| {
            let reply = json!({"node": {"uuid": NODE}, "config": config});
            serde_json::from_value::<LookupReply>(reply).unwrap().config
        };
        let whole = read(&sound);
        assert_eq!(serde_json::to_value(&whole).unwrap(), sound);
        assert_eq!(whole.left_out, [""; 0]);
        for key in sound.as_object().unwrap().keys() {
            let mut odd = sound.clone();
            odd[key] = json!([{"secret": 1}]);
            let config = read(&odd);
            assert_eq!(config.left_out.len(), 1, "{key}");
            assert!(config.left_out[0].starts_with(key.as_str()), "{:?}", config.left_out);
            assert!(!config.left_out[0].contains("secret"), "{:?}", config.left_out);
            let mut expected = sound.clone();
            match key.as_str() {
                "heartbeat_timeout" => expected[key] = json!(HEARTBEAT_TIMEOUT),
                "agent_token_required" => expected[key] = json!(false),
                _ => drop(expected.as_object_mut().unwrap().remove(key)),
            }
            assert_eq!(serde_json::to_value(&config).unwrap(), expected, "{key}");
            odd[key] = Value::Null;
            assert_eq!(read(&odd).left_out, [""; 0], "{key}");
        }
    }

    #[test]
    fn x37_a_reply_without_config_is_that_of_an_old_conductor() {
        let node = json!({"uuid": NODE});
        for (reply, expected) in [
            (json!({"node": node, "heartbeat_timeout": 77}), Some(77)),
            (json!({"node": node, "heartbeat_timeout": 77, "config": {}}), Some(77)),
            (json!({"node": node, "heartbeat_timeout": 77, "config": {"heartbeat_timeout": 88}}), Some(88)),
            (json!({"node": node, "config": null, "heartbeat_timeout": "soon"}), Some(HEARTBEAT_TIMEOUT)),
            (json!({"node": node}), None),
            (json!({"node": node, "config": {}}), None),
            (json!({"heartbeat_timeout": 77}), None),
        ] {
            let read = serde_json::from_value::<LookupReply>(reply.clone()).ok();
            assert_eq!(read.map(|reply| reply.config.heartbeat_timeout), expected, "{reply}");
        }
    }

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
