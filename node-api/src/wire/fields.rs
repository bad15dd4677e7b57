//! The fields of nodes and ports: since which version they are there, who may set them, and what they hold. Serving,
//! patching and the documents read this table and nothing else.

use crate::wire::reply::Refusal;
use farrier_conductor::model::MacAddress;
use farrier_protocol::heartbeat::ApiVersion;
use farrier_protocol::lookup::MASKED;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text of at most so many characters, or null.
    Text(usize),
    /// A text of at most so many characters, which is never null.
    NeededText(usize),
    /// A text of at most so many characters, which is empty where nothing is said.
    EmptyText(usize),
    /// A UUID, or null.
    Uuid,
    /// True or false; texts that stand for one are taken too.
    Flag,
    /// True or false unless nothing else is said, or null where nothing is.
    Choice(Option<bool>),
    /// An object; null empties it.
    Map,
    /// A MAC address.
    Address,
    /// A MAC address, or null.
    AddressOrNull,
    /// A number that is not negative.
    Number,
    /// A list of texts.
    Texts,
    /// A list of steps.
    Steps,
    /// A time, or null.
    Time,
    /// The step that is running, or an empty object.
    Step,
    /// Where to find more.
    Links,
}

impl Kind {
    /// Whether it is one value, by which lists can be sorted.
    pub(crate) fn is_one_value(self) -> bool {
        !matches!(self, Self::Map | Self::Texts | Self::Steps | Self::Step | Self::Links)
    }
}

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Minor number of the first version that has it.
    pub(crate) since: u16,
    /// Whether it may be set when its resource is created.
    pub(crate) on_create: bool,
    /// Whether it may be changed by PATCH.
    pub(crate) on_patch: bool,
    /// Whether it may hold secrets, so that the mask is refused in what is set. Whatever is shown is masked.
    pub(crate) is_masked: bool,
    pub(crate) kind: Kind,
}

/// A field that is only read.
const fn read(name: &'static str, since: u16, kind: Kind) -> Field {
    Field { name, since, on_create: false, on_patch: false, is_masked: false, kind }
}

/// A field that operators set.
const fn set(name: &'static str, since: u16, kind: Kind) -> Field {
    Field { on_create: true, on_patch: true, ..read(name, since, kind) }
}

/// A field that operators set when they create, and never again.
const fn once(name: &'static str, since: u16, kind: Kind) -> Field {
    Field { on_create: true, ..read(name, since, kind) }
}

/// A field that operators change, and do not set when they create.
const fn later(name: &'static str, since: u16, kind: Kind) -> Field {
    Field { on_patch: true, ..read(name, since, kind) }
}

/// A field with secrets in it.
const fn masked(field: Field) -> Field {
    Field { is_masked: true, ..field }
}

/// The fields of a node (section 1.7).
pub(crate) const NODE: &[Field] = &[
    once("uuid", 1, Kind::Uuid),
    set("name", 5, Kind::Text(255)),
    set("description", 51, Kind::Text(4096)),
    set("driver", 1, Kind::NeededText(255)),
    masked(set("driver_info", 1, Kind::Map)),
    masked(read("driver_internal_info", 3, Kind::Map)),
    masked(set("properties", 1, Kind::Map)),
    masked(set("instance_info", 1, Kind::Map)),
    set("instance_uuid", 1, Kind::Uuid),
    set("instance_name", 104, Kind::Text(255)),
    read("allocation_uuid", 52, Kind::Uuid),
    set("chassis_uuid", 1, Kind::Uuid),
    masked(set("extra", 1, Kind::Map)),
    masked(set("network_data", 66, Kind::Map)),
    set("resource_class", 21, Kind::Text(80)),
    read("traits", 37, Kind::Texts),
    set("conductor_group", 46, Kind::EmptyText(255)),
    read("conductor", 49, Kind::Text(255)),
    set("owner", 50, Kind::Text(255)),
    set("lessee", 65, Kind::Text(255)),
    set("shard", 82, Kind::Text(255)),
    set("parent_node", 83, Kind::Uuid),
    set("bios_interface", 40, Kind::Text(255)),
    set("boot_interface", 31, Kind::Text(255)),
    set("console_interface", 31, Kind::Text(255)),
    set("deploy_interface", 31, Kind::Text(255)),
    set("firmware_interface", 86, Kind::Text(255)),
    set("inspect_interface", 31, Kind::Text(255)),
    set("management_interface", 31, Kind::Text(255)),
    set("network_interface", 20, Kind::Text(255)),
    set("power_interface", 31, Kind::Text(255)),
    set("raid_interface", 31, Kind::Text(255)),
    set("rescue_interface", 38, Kind::Text(255)),
    set("storage_interface", 33, Kind::Text(255)),
    set("vendor_interface", 31, Kind::Text(255)),
    read("provision_state", 1, Kind::Text(15)),
    read("target_provision_state", 1, Kind::Text(15)),
    read("provision_updated_at", 1, Kind::Time),
    read("power_state", 1, Kind::Text(15)),
    read("target_power_state", 1, Kind::Text(15)),
    once("boot_mode", 75, Kind::Text(16)),
    once("secure_boot", 75, Kind::Choice(None)),
    read("health", 109, Kind::Text(15)),
    read("last_error", 1, Kind::Text(4096)),
    read("fault", 42, Kind::Text(255)),
    set("maintenance", 1, Kind::Flag),
    read("maintenance_reason", 1, Kind::Text(4096)),
    later("protected", 48, Kind::Flag),
    later("protected_reason", 48, Kind::Text(4096)),
    set("retired", 61, Kind::Flag),
    set("retired_reason", 61, Kind::Text(4096)),
    set("automated_clean", 47, Kind::Choice(None)),
    set("disable_power_off", 95, Kind::Flag),
    read("console_enabled", 1, Kind::Flag),
    masked(read("clean_step", 7, Kind::Step)),
    masked(read("deploy_step", 44, Kind::Step)),
    masked(read("service_step", 87, Kind::Step)),
    masked(read("raid_config", 12, Kind::Map)),
    masked(read("target_raid_config", 12, Kind::Map)),
    read("inspection_started_at", 6, Kind::Time),
    read("inspection_finished_at", 6, Kind::Time),
    read("reservation", 1, Kind::Text(255)),
    read("created_at", 1, Kind::Time),
    read("updated_at", 1, Kind::Time),
    read("links", 1, Kind::Links),
    read("ports", 1, Kind::Links),
    read("portgroups", 24, Kind::Links),
    read("states", 14, Kind::Links),
    read("volume", 32, Kind::Links),
];

/// The default fields of a node in a list.
pub(crate) const NODE_BRIEF: &[&str] =
    &["uuid", "name", "instance_uuid", "maintenance", "power_state", "provision_state", "links"];

/// The fields of a port.
pub(crate) const PORT: &[Field] = &[
    once("uuid", 1, Kind::Uuid),
    set("name", 88, Kind::Text(255)),
    set("address", 1, Kind::Address),
    set("node_uuid", 1, Kind::Uuid),
    set("pxe_enabled", 19, Kind::Choice(Some(true))),
    masked(set("local_link_connection", 19, Kind::Map)),
    set("physical_network", 34, Kind::Text(64)),
    set("portgroup_uuid", 24, Kind::Uuid),
    set("is_smartnic", 53, Kind::Flag),
    set("description", 97, Kind::Text(255)),
    set("vendor", 100, Kind::Text(32)),
    set("category", 101, Kind::Text(80)),
    masked(set("extra", 1, Kind::Map)),
    read("internal_info", 18, Kind::Map),
    read("created_at", 1, Kind::Time),
    read("updated_at", 1, Kind::Time),
    read("links", 1, Kind::Links),
];

/// The default fields of a port in a list.
pub(crate) const PORT_BRIEF: &[&str] = &["uuid", "name", "address", "links"];

/// The fields of an allocation.
pub(crate) const ALLOCATION: &[Field] = &[
    once("uuid", 52, Kind::Uuid),
    set("name", 52, Kind::Text(255)),
    read("state", 52, Kind::Text(15)),
    read("node_uuid", 52, Kind::Uuid),
    read("last_error", 52, Kind::Text(4096)),
    once("resource_class", 52, Kind::Text(80)),
    once("traits", 52, Kind::Texts),
    once("candidate_nodes", 52, Kind::Texts),
    once("owner", 60, Kind::Text(255)),
    masked(set("extra", 52, Kind::Map)),
    read("created_at", 52, Kind::Time),
    read("updated_at", 52, Kind::Time),
    read("links", 52, Kind::Links),
];

/// The fields of a deploy template.
pub(crate) const DEPLOY_TEMPLATE: &[Field] = &[
    once("uuid", 55, Kind::Uuid),
    set("name", 55, Kind::NeededText(255)),
    masked(set("steps", 55, Kind::Steps)),
    masked(set("extra", 55, Kind::Map)),
    read("created_at", 55, Kind::Time),
    read("updated_at", 55, Kind::Time),
    read("links", 55, Kind::Links),
];

/// The fields of a runbook.
pub(crate) const RUNBOOK: &[Field] = &[
    once("uuid", 92, Kind::Uuid),
    set("name", 92, Kind::NeededText(255)),
    masked(set("steps", 92, Kind::Steps)),
    set("disable_ramdisk", 92, Kind::Flag),
    set("public", 92, Kind::Flag),
    set("owner", 92, Kind::Text(255)),
    masked(set("extra", 92, Kind::Map)),
    read("created_at", 92, Kind::Time),
    read("updated_at", 92, Kind::Time),
    read("links", 92, Kind::Links),
];

/// The fields of a chassis.
pub(crate) const CHASSIS: &[Field] = &[
    once("uuid", 1, Kind::Uuid),
    set("description", 1, Kind::Text(255)),
    masked(set("extra", 1, Kind::Map)),
    read("created_at", 1, Kind::Time),
    read("updated_at", 1, Kind::Time),
    read("links", 1, Kind::Links),
    read("nodes", 1, Kind::Links),
];

/// The fields of a port group.
pub(crate) const PORT_GROUP: &[Field] = &[
    once("uuid", 23, Kind::Uuid),
    set("name", 23, Kind::Text(255)),
    set("address", 23, Kind::AddressOrNull),
    set("node_uuid", 23, Kind::Uuid),
    set("standalone_ports_supported", 23, Kind::Choice(Some(true))),
    set("mode", 26, Kind::Text(255)),
    masked(set("properties", 26, Kind::Map)),
    set("physical_network", 102, Kind::Text(64)),
    set("category", 103, Kind::Text(80)),
    masked(set("extra", 23, Kind::Map)),
    read("internal_info", 23, Kind::Map),
    read("created_at", 23, Kind::Time),
    read("updated_at", 23, Kind::Time),
    read("links", 23, Kind::Links),
    read("ports", 24, Kind::Links),
];

/// The fields of a volume connector.
pub(crate) const VOLUME_CONNECTOR: &[Field] = &[
    once("uuid", 32, Kind::Uuid),
    set("node_uuid", 32, Kind::Uuid),
    set("type", 32, Kind::NeededText(32)),
    set("connector_id", 32, Kind::NeededText(255)),
    masked(set("extra", 32, Kind::Map)),
    read("created_at", 32, Kind::Time),
    read("updated_at", 32, Kind::Time),
    read("links", 32, Kind::Links),
];

/// The fields of a volume target.
pub(crate) const VOLUME_TARGET: &[Field] = &[
    once("uuid", 32, Kind::Uuid),
    set("node_uuid", 32, Kind::Uuid),
    set("volume_type", 32, Kind::NeededText(64)),
    masked(set("properties", 32, Kind::Map)),
    set("boot_index", 32, Kind::Number),
    set("volume_id", 32, Kind::NeededText(36)),
    masked(set("extra", 32, Kind::Map)),
    read("created_at", 32, Kind::Time),
    read("updated_at", 32, Kind::Time),
    read("links", 32, Kind::Links),
];

/// The fields of an entry of a node's history.
pub(crate) const HISTORY: &[Field] = &[
    read("uuid", 78, Kind::Uuid),
    read("created_at", 78, Kind::Time),
    read("severity", 78, Kind::Text(10)),
    read("event_type", 78, Kind::Text(255)),
    read("event", 78, Kind::Text(8192)),
    read("conductor", 78, Kind::Text(255)),
    read("user", 78, Kind::Text(64)),
    read("links", 78, Kind::Links),
];

/// The default fields of such an entry in a list.
pub(crate) const HISTORY_BRIEF: &[&str] = &["uuid", "created_at", "severity", "event", "links"];

impl Kind {
    /// What is there where nothing is said.
    pub(crate) fn default(self) -> Value {
        match self {
            Self::Flag => false.into(),
            Self::Choice(flag) => flag.into(),
            Self::Map | Self::Step => json!({}),
            Self::Texts | Self::Steps | Self::Links => json!([]),
            Self::NeededText(_) | Self::EmptyText(_) => "".into(),
            Self::Text(_) | Self::Uuid | Self::Address | Self::AddressOrNull | Self::Number | Self::Time => {
                Value::Null
            }
        }
    }

    /// A value as the record keeps it.
    ///
    /// # Errors
    ///
    /// What would be right.
    pub(crate) fn read(self, value: Value) -> Result<Value, String> {
        match (self, value) {
            (Self::Address | Self::AddressOrNull, Value::String(text)) => match text.parse::<MacAddress>() {
                Ok(address) => Ok(address.as_str().into()),
                Err(error) => Err(error.to_string()),
            },
            (Self::NeededText(_) | Self::Address, Value::Null) => Err("must be a text".to_owned()),
            (Self::Number, Value::Number(number)) if number.is_u64() => Ok(number.into()),
            (Self::Number, _) => Err("must be a number that is not negative".to_owned()),
            (_, Value::Null) => Ok(self.default()),
            (Self::Text(limit) | Self::NeededText(limit) | Self::EmptyText(limit), Value::String(text)) => {
                match text.chars().count() <= limit {
                    true => Ok(text.into()),
                    false => Err(format!("must have at most {limit} characters")),
                }
            }
            (Self::Uuid, Value::String(text)) => match text.parse::<Uuid>() {
                Ok(uuid) => Ok(uuid.to_string().into()),
                Err(_) => Err(format!("{text:?} must be a UUID")),
            },
            (Self::Flag | Self::Choice(_), Value::Bool(flag)) => Ok(flag.into()),
            (Self::Flag | Self::Choice(_), Value::String(text)) => {
                flag(&text).map(Value::from).ok_or_else(|| format!("{text:?} must be true or false"))
            }
            (Self::Map, map @ Value::Object(_)) => Ok(map),
            (Self::Texts, Value::Array(texts)) if texts.iter().all(Value::is_string) => Ok(texts.into()),
            (Self::Steps, Value::Array(steps)) => Ok(steps.into()),
            (kind, _) => Err(format!("must be {}", kind.article())),
        }
    }

    /// As OpenAPI describes it.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Text(limit) => json!({"type": ["string", "null"], "maxLength": limit}),
            Self::NeededText(limit) | Self::EmptyText(limit) => json!({"type": "string", "maxLength": limit}),
            Self::Uuid => json!({"type": ["string", "null"], "format": "uuid"}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Choice(_) => json!({"type": ["boolean", "null"]}),
            Self::Map | Self::Step => json!({"type": "object"}),
            Self::Address => json!({"type": "string"}),
            Self::AddressOrNull => json!({"type": ["string", "null"]}),
            Self::Number => json!({"type": "integer", "minimum": 0}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Steps => json!({"type": "array", "items": {"type": "object"}}),
            Self::Time => json!({"type": ["string", "null"], "format": "date-time"}),
            Self::Links => json!({"type": "array", "items": {"type": "object"}}),
        }
    }

    /// What it is, in words.
    pub(crate) fn article(self) -> &'static str {
        match self {
            Self::Text(_)
            | Self::NeededText(_)
            | Self::EmptyText(_)
            | Self::Address
            | Self::AddressOrNull => "a text",
            Self::Number => "a number",
            Self::Uuid => "a UUID",
            Self::Flag | Self::Choice(_) => "true or false",
            Self::Map | Self::Step => "an object",
            Self::Texts | Self::Steps | Self::Links => "a list",
            Self::Time => "a time",
        }
    }
}

/// Texts that stand for true and false, as Ironic reads them.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "t" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "f" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// The field with this name.
pub(crate) fn named(table: &'static [Field], name: &str) -> Option<&'static Field> {
    table.iter().find(|field| field.name == name)
}

impl Field {
    /// Whether a version has it.
    pub(crate) fn is_in(&self, version: ApiVersion) -> bool {
        version.minor >= self.since
    }

    /// Whether an empty text stands for nothing, as clients send that have one text for both.
    fn is_unset_by_empty_text(&self) -> bool {
        self.name == "name" || self.name.ends_with("_interface")
    }

    /// A value of it as the record keeps it.
    ///
    /// # Errors
    ///
    /// 400, naming the field.
    pub(crate) fn read(&self, value: Value) -> Result<Value, Refusal> {
        if self.is_masked && has_mask(&value) {
            let text = format!(
                "{}: {MASKED:?} stands for a secret; give the secret itself, or leave its key out",
                self.name
            );
            return Err(Refusal::bad_request(text));
        }
        let value = if self.is_unset_by_empty_text() && value == "" { Value::Null } else { value };
        self.kind.read(value).map_err(|reason| Refusal::bad_request(format!("{}: {reason}", self.name)))
    }
}

/// Whether a value contains the mask that clients see instead of secrets.
pub(crate) fn has_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASKED),
        Value::Array(values) => values.iter().any(has_mask),
        Value::Object(map) => map.values().any(has_mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reads the fields that a new resource is given.
///
/// # Errors
///
/// 400 for a field that is unknown or only read, or a value that it cannot have; 406 for one of a later version.
pub(crate) fn read_new(
    table: &'static [Field],
    given: Map<String, Value>,
    version: ApiVersion,
) -> Result<Map<String, Value>, Refusal> {
    given
        .into_iter()
        .map(|(name, value)| {
            let field = settable(table, &name, version, |field| field.on_create, "when it is created")?;
            Ok((name, field.read(value)?))
        })
        .collect()
}

/// The field to set.
///
/// # Errors
///
/// As [`read_new`].
pub(crate) fn settable(
    table: &'static [Field],
    name: &str,
    version: ApiVersion,
    may: impl Fn(&Field) -> bool,
    when: &str,
) -> Result<&'static Field, Refusal> {
    match named(table, name) {
        None => Err(Refusal::bad_request(format!("{name}: there is no such field"))),
        Some(field) if !field.is_in(version) => Err(Refusal::needs(field.since, name)),
        Some(field) if !may(field) => Err(Refusal::bad_request(format!("{name} cannot be set {when}"))),
        Some(field) => Ok(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::{AgentSession, InterfaceKind, NewNode, Node, PlannedStep, Port, StepKind};
    use time::OffsetDateTime;

    /// Fields that are no part of the record.
    const COMPUTED: &[&str] = &["conductor", "links", "ports", "portgroups", "states", "volume"];

    #[test]
    fn the_table_and_the_record_have_the_same_fields() {
        let node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        let record = serde_json::to_value(&node).unwrap();
        for field in NODE {
            let is_computed = COMPUTED.contains(&field.name);
            assert!(
                is_computed || field.name == "reservation" || record.get(field.name).is_some(),
                "{field:?}"
            );
        }
        for name in record.as_object().unwrap().keys() {
            assert!(named(NODE, name).is_some(), "{name}");
        }
        for kind in InterfaceKind::ALL {
            assert!(named(NODE, &kind.field()).is_some_and(|field| field.on_patch), "{kind}");
        }
        let port = Port::new("52:54:00:00:00:01".parse().unwrap());
        for name in serde_json::to_value(&port).unwrap().as_object().unwrap().keys() {
            assert!(named(PORT, name).is_some(), "{name}");
        }
    }

    /// As Ironic counts them; the console, which is not served, is not settable.
    #[test]
    fn as_many_fields_are_settable_as_in_ironic() {
        let count = |which: fn(&Field) -> bool| NODE.iter().filter(|field| which(field)).count();
        assert_eq!(count(|field| field.on_create), 39 - 1);
        assert_eq!(count(|field| field.on_patch), 37);
        assert_eq!(count(|field| field.since > 1 && field.kind != Kind::Links), 37 + 8 - 1);
    }

    #[test]
    fn s48_every_field_with_secrets_is_masked_and_says_so() {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        let secret = || Map::from_iter([("a_password".to_owned(), json!("hunter2"))]);
        (*node.driver_info, *node.properties, *node.instance_info) = (secret(), secret(), secret());
        (node.extra, node.network_data, node.driver_internal_info.others) = (secret(), secret(), secret());
        (node.raid_config, node.target_raid_config) = (secret(), secret());
        let step = PlannedStep { args: secret(), ..PlannedStep::new("deploy", "x", 1) };
        for kind in StepKind::ALL {
            *node.step_mut(kind) = Some(step.clone());
        }
        let shown = serde_json::to_value(node.shown(&AgentSession::default())).unwrap();
        for field in NODE.iter().filter(|field| shown.get(field.name).is_some()) {
            let is_masked = has_mask(&shown[field.name]);
            assert_eq!(is_masked, field.is_masked, "{field:?}");
        }
        assert!(!shown.to_string().contains("hunter2"));
    }

    #[test]
    fn values_are_read_by_the_kind_of_their_field() {
        for (name, value, expected) in [
            ("name", json!("n1"), Ok(json!("n1"))),
            ("name", json!(null), Ok(json!(null))),
            ("name", json!(1), Err("name: must be a text")),
            ("resource_class", json!("x".repeat(81)), Err("resource_class: must have at most 80 characters")),
            ("driver", json!(null), Err("driver: must be a text")),
            ("maintenance", json!("True"), Ok(json!(true))),
            ("maintenance", json!(null), Ok(json!(false))),
            ("maintenance", json!("maybe"), Err("maintenance: \"maybe\" must be true or false")),
            ("automated_clean", json!(null), Ok(json!(null))),
            ("driver_info", json!(null), Ok(json!({}))),
            ("driver_info", json!("x"), Err("driver_info: must be an object")),
            (
                "driver_info",
                json!({"a": {"b": ["******"]}}),
                Err(
                    "driver_info: \"******\" stands for a secret; give the secret itself, or leave its key out",
                ),
            ),
            ("instance_uuid", json!("x"), Err("instance_uuid: \"x\" must be a UUID")),
            ("chassis_uuid", json!(null), Ok(json!(null))),
            ("chassis_uuid", json!("x"), Err("chassis_uuid: \"x\" must be a UUID")),
        ] {
            let read = named(NODE, name).unwrap().read(value.clone());
            assert_eq!(
                read.map_err(|refusal| refusal.to_string()),
                expected.map_err(str::to_owned),
                "{name} {value}"
            );
        }
        let address = named(PORT, "address").unwrap();
        assert_eq!(address.read(json!("52-54-00-AB-CD-01")).unwrap(), "52:54:00:ab:cd:01");
        assert!(address.read(json!(null)).is_err() && address.read(json!("x")).is_err());
    }
}
