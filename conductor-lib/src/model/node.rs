//! The node record (conductor contract 1.7 and 1.8).

use super::states::{PowerState, ProvisionState};
use super::transitions::Event;
use farrier_protocol::step::{HardwareManagerVersions, StepDescription};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::FromStr;
use time::OffsetDateTime;
use uuid::Uuid;

/// Longest `last_error`, in characters.
const LAST_ERROR_LIMIT: usize = 4096;

/// What stands in the place of a secret wherever a record leaves the conductor.
const MASK: &str = "******";

/// A hardware address, lower case with colons (contract 13.20).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress(String);

impl MacAddress {
    /// The address as `aa:bb:cc:dd:ee:ff`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<MacAddress> for String {
    fn from(address: MacAddress) -> Self {
        address.0
    }
}

/// The text is not six hexadecimal octets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address of the form aa:bb:cc:dd:ee:ff")]
pub struct ParseMacAddressError(String);

impl FromStr for MacAddress {
    type Err = ParseMacAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase().replace('-', ":");
        let is_octet = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        match lower.split(':').count() == 6 && lower.split(':').all(is_octet) {
            true => Ok(Self(lower)),
            false => Err(ParseMacAddressError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for MacAddress {
    type Error = ParseMacAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// What is known of the agent that runs now. It ends with the agent's memory: every power action
/// and the end of an operation drop it whole (contract 2.10, lessons F39 and F41).
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSession {
    /// Where the agent listens.
    pub agent_url: Option<String>,
    /// The agent's version, as of the last heartbeat.
    pub agent_version: Option<String>,
    /// When the last heartbeat came.
    #[serde(with = "time::serde::rfc3339::option")]
    pub agent_last_heartbeat: Option<OffsetDateTime>,
    /// The agent's certificate as PEM text, the only one trusted for it.
    pub agent_verify_ca: Option<String>,
    /// The token both sides share.
    pub agent_secret_token: Option<String>,
    /// Deploy steps the agent offers; nothing until it was asked.
    pub agent_cached_deploy_steps: Option<Vec<StepDescription>>,
    /// Versions of the agent's hardware managers, sent back with each step.
    pub hardware_manager_version: Option<HardwareManagerVersions>,
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession")
            .field("agent_url", &self.agent_url)
            .field("agent_version", &self.agent_version)
            .finish_non_exhaustive()
    }
}

/// A step of the plan of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Interface the step belongs to; with the name it is the identity.
    pub interface: String,
    /// Name of the step.
    pub step: String,
    /// Place in the plan, highest first.
    pub priority: i64,
}

/// The conductor's own notes about a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverInternalInfo {
    /// The running agent.
    #[serde(flatten)]
    pub agent: AgentSession,
    /// The plan of the running operation.
    pub deploy_steps: Vec<PlannedStep>,
    /// Place of the current step in the plan; nothing before the first.
    pub deploy_step_index: Option<usize>,
    /// False when the current step is to run again, because the agent was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_current_deploy_step: Option<bool>,
    /// Root file system UUID, or disk identifier of a whole-disk image, of the written instance.
    pub root_uuid_or_disk_id: Option<String>,
}

/// What an operator gives to enrol a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewNode {
    /// Unique name.
    pub name: String,
    /// Name of the driver that controls the machine.
    pub driver: String,
    /// How the driver reaches the machine, and what it boots.
    #[serde(default)]
    pub driver_info: Map<String, Value>,
    /// Hardware properties; root device hints live here.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Hardware addresses, at least one; the first is the one the machine boots from.
    pub ports: Vec<MacAddress>,
}

/// A machine and everything the conductor knows about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Identity.
    pub uuid: Uuid,
    /// Unique name.
    pub name: String,
    /// Name of the driver that controls the machine.
    pub driver: String,
    /// How the driver reaches the machine, and what it boots.
    pub driver_info: Map<String, Value>,
    /// The conductor's own notes.
    pub driver_internal_info: DriverInternalInfo,
    /// What is or is to be deployed.
    pub instance_info: Map<String, Value>,
    /// Hardware properties; root device hints live here.
    pub properties: Map<String, Value>,
    /// Hardware addresses.
    pub ports: Vec<MacAddress>,
    /// Where the node is in its life.
    pub provision_state: ProvisionState,
    /// Where the operation under way is to end.
    pub target_provision_state: Option<ProvisionState>,
    /// Clock of the wait states; every heartbeat refreshes it.
    #[serde(with = "time::serde::rfc3339")]
    pub provision_updated_at: OffsetDateTime,
    /// Last known power state.
    pub power_state: Option<PowerState>,
    /// Why the last operation failed; at most 4096 characters.
    pub last_error: Option<String>,
    /// The step that is running.
    pub deploy_step: Option<PlannedStep>,
    /// Who works on the node; filled in where a record is shown, never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// When the node was enrolled.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When the record last changed.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

impl Node {
    /// A freshly enrolled node, ready to be deployed.
    pub fn enrol(new: NewNode) -> Self {
        let now = OffsetDateTime::now_utc();
        Self {
            uuid: Uuid::new_v4(),
            name: new.name,
            driver: new.driver,
            driver_info: new.driver_info,
            driver_internal_info: DriverInternalInfo::default(),
            instance_info: Map::new(),
            properties: new.properties,
            ports: new.ports,
            provision_state: ProvisionState::Available,
            target_provision_state: None,
            provision_updated_at: now,
            power_state: None,
            last_error: None,
            deploy_step: None,
            reservation: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Moves to the state that `event` leads to and reports whether it was allowed (contract 1.4).
    #[must_use]
    pub fn apply(&mut self, event: Event) -> bool {
        let Some(state) = self.provision_state.after(event) else { return false };
        self.provision_state = state;
        self.target_provision_state = state.target();
        self.touch();
        true
    }

    /// Restarts the clock of the wait states.
    pub fn touch(&mut self) {
        self.provision_updated_at = OffsetDateTime::now_utc();
    }

    /// Records why an operation failed, on one line and cut to its limit.
    pub fn set_last_error(&mut self, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.last_error = Some(line.chars().take(LAST_ERROR_LIMIT).collect());
    }

    /// Its ports, as commands of agents carry them.
    pub fn ports_shown(&self) -> Value {
        self.ports.iter().map(|address| json!({"address": address, "pxe_enabled": true})).collect()
    }

    /// A text value of `driver_info`, when it is set and not empty.
    pub fn driver_text(&self, key: &str) -> Option<&str> {
        self.driver_info.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The record with every secret masked, fit to leave the conductor (lessons S40 and S48).
    pub fn masked(&self) -> Self {
        let mut node = self.clone();
        for map in [&mut node.driver_info, &mut node.instance_info, &mut node.properties] {
            mask(map);
        }
        if let Some(token) = &mut node.driver_internal_info.agent.agent_secret_token {
            *token = MASK.to_owned();
        }
        node
    }
}

fn mask(map: &mut Map<String, Value>) {
    for (key, value) in map {
        let key = key.to_ascii_lowercase();
        let secret = ["password", "token", "secret", "configdrive", "image_url"];
        match value {
            Value::Null => {}
            _ if secret.iter().any(|word| key.contains(word)) => *value = MASK.into(),
            Value::Object(inner) => mask(inner),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn node() -> Node {
        Node::enrol(NewNode {
            name: "n1".into(),
            driver: "fake".into(),
            driver_info: Map::new(),
            properties: Map::new(),
            ports: vec!["52:54:00:00:00:01".parse().unwrap()],
        })
    }

    #[test]
    fn mac_addresses_are_normalised() {
        for (text, expected) in [
            ("52:54:00:AB:cd:01", Some("52:54:00:ab:cd:01")),
            ("52-54-00-AB-CD-01", Some("52:54:00:ab:cd:01")),
            (" 52:54:00:ab:cd:01 ", Some("52:54:00:ab:cd:01")),
            ("525400abcd01", None),
            ("52:54:00:ab:cd", None),
            ("52:54:00:ab:cd:01:02", None),
            ("52:54:00:ab:cd:0g", None),
            ("", None),
        ] {
            assert_eq!(
                text.parse::<MacAddress>().ok().as_ref().map(MacAddress::as_str),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_transition_sets_the_target_and_a_refused_one_changes_nothing() {
        let mut node = node();
        assert!(!node.apply(Event::Done));
        assert_eq!(node.provision_state, ProvisionState::Available);
        assert!(node.apply(Event::Deploy));
        assert_eq!(node.target_provision_state, Some(ProvisionState::Active));
        assert!(node.apply(Event::Done));
        assert_eq!(node.target_provision_state, None);
    }

    #[test]
    fn last_error_is_one_line_within_its_limit() {
        let mut node = node();
        node.set_last_error(&format!("disk /dev/vda:\n  {}", "ü".repeat(5000)));
        let text = node.last_error.unwrap();
        assert!(text.starts_with("disk /dev/vda: ü"));
        assert_eq!(text.chars().count(), LAST_ERROR_LIMIT);
    }

    #[test]
    fn s48_secrets_do_not_leave_the_record() {
        let mut node = node();
        node.driver_info =
            serde_json::from_value(json!({"redfish_password": "x1", "qemu_cpus": "2"})).unwrap();
        node.instance_info = serde_json::from_value(
            json!({"configdrive": "x2", "image_source": "http://a/b", "deep": {"token": "x3"}}),
        )
        .unwrap();
        node.driver_internal_info.agent.agent_secret_token = Some("x4".into());
        let text = serde_json::to_string(&node.masked()).unwrap();
        for secret in ["x1", "x2", "x3", "x4"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("http://a/b") && text.contains(r#""qemu_cpus":"2""#), "{text}");
        assert!(!format!("{:?}", node.driver_internal_info).contains("x4"));
    }

    #[test]
    fn the_record_survives_its_own_json() {
        let mut node = node();
        node.driver_internal_info.agent.agent_last_heartbeat = Some(OffsetDateTime::now_utc());
        node.driver_internal_info.agent.agent_url = Some("https://192.0.2.1:9999".into());
        let text = serde_json::to_string(&node).unwrap();
        assert_eq!(serde_json::from_str::<Node>(&text).unwrap(), node);
    }
}
