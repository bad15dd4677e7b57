//! Plain resources: what operators write down, and the conductor looks up. What else one of them has than these fields is
//! told by its kind.

use farrier_conductor::model::node::port_group::PortGroup;
use farrier_conductor::model::states::named_states;
use farrier_conductor::model::typed_maps::mask::mask;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use time::OffsetDateTime;
use uuid::Uuid;

named_states! {
    /// What a plain resource is.
    ResourceKind {
        /// Steps by name, for deployments of instances that want the name as a trait (version 1.55).
        DeployTemplate = "deploy template",
        /// Steps by name, for cleaning and service of nodes that have the name as a trait (version 1.92).
        Runbook = "runbook",
        /// What several machines stand in (version 1.1).
        Chassis = "chassis",
        /// Network cards that are one to the network (version 1.23).
        PortGroup = "port group",
        /// What a machine is known by where its volumes are (version 1.32).
        VolumeConnector = "volume connector",
        /// A volume of another machine (version 1.32).
        VolumeTarget = "volume target",
    }
}

/// A plain resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Identity.
    pub uuid: Uuid,
    /// What it is.
    pub kind: ResourceKind,
    /// Name, which no other one of its kind has.
    #[serde(default)]
    pub name: Option<String>,
    /// The node that it belongs to, and goes with.
    #[serde(default)]
    pub node_uuid: Option<Uuid>,
    /// When it was created.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it last changed.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub updated_at: Option<OffsetDateTime>,
    /// Everything else.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Resource {
    /// A text of its fields.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    /// Whether a field is set.
    pub fn flag(&self, field: &str) -> bool {
        self.fields.get(field).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A list of its fields; empty where there is none.
    pub fn list(&self, field: &str) -> &[Value] {
        self.fields.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What no other one of its kind may have, beside the name.
    pub fn natural_key(&self) -> Option<String> {
        match self.kind {
            ResourceKind::PortGroup => self.text("address").map(str::to_owned),
            ResourceKind::VolumeConnector => {
                Some(format!("{} {}", self.text("type")?, self.text("connector_id")?))
            }
            ResourceKind::VolumeTarget => {
                Some(format!("boot index {} of node {}", self.fields.get("boot_index")?, self.node_uuid?))
            }
            ResourceKind::DeployTemplate | ResourceKind::Runbook | ResourceKind::Chassis => None,
        }
    }

    /// It as it leaves the conductor: with the secrets in it masked (lesson S48).
    #[must_use]
    pub fn shown(mut self) -> Self {
        mask(&mut self.fields);
        self
    }
}

impl From<Resource> for PortGroup {
    fn from(group: Resource) -> Self {
        let text = |field: &str| group.text(field).map(str::to_owned);
        let map =
            |field: &str| group.fields.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        Self {
            address: text("address"),
            mode: text("mode"),
            physical_network: text("physical_network"),
            properties: map("properties"),
            extra: map("extra"),
            standalone_ports_supported: group.flag("standalone_ports_supported"),
            uuid: group.uuid,
            name: group.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(kind: ResourceKind, fields: &Value) -> Resource {
        let fields = fields.as_object().unwrap().clone();
        let (name, node_uuid) = (None, Some(Uuid::nil()));
        let created_at = OffsetDateTime::UNIX_EPOCH;
        Resource { uuid: Uuid::nil(), kind, name, node_uuid, created_at, updated_at: None, fields }
    }

    #[test]
    fn a_resource_is_known_by_what_nobody_else_may_have() {
        let nil = Uuid::nil();
        for (kind, fields, expected) in [
            (ResourceKind::PortGroup, json!({"address": "a"}), Some("a".to_owned())),
            (ResourceKind::PortGroup, json!({"address": null}), None),
            (
                ResourceKind::VolumeConnector,
                json!({"type": "iqn", "connector_id": "c"}),
                Some("iqn c".into()),
            ),
            (
                ResourceKind::VolumeTarget,
                json!({"boot_index": 0}),
                Some(format!("boot index 0 of node {nil}")),
            ),
            (ResourceKind::Chassis, json!({"description": "x"}), None),
        ] {
            assert_eq!(resource(kind, &fields).natural_key(), expected, "{kind}");
        }
    }

    #[test]
    fn s48_secrets_of_resources_are_masked() {
        let fields =
            json!({"properties": {"auth_password": "x"}, "steps": [{"args": {"token": "x"}}], "a": "x"});
        let shown = resource(ResourceKind::VolumeTarget, &fields).shown();
        let expected = json!({"properties": {"auth_password": "******"}, "steps": [{"args": {"token": "******"}}], "a": "x"});
        assert_eq!(Value::Object(shown.fields), expected);
    }
}
