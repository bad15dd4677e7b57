//! Which nodes and ports a list has, in which order, and how many: what can be asked of columns alone.

use crate::records::{AllocationState, ResourceKind};
use farrier_conductor::model::{MacAddress, Port};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text or nothing.
    Text,
    /// Microseconds since 1970, or nothing.
    Time,
    /// True or false.
    Flag,
}

/// Fields of a node that are columns, in the order of the statements' parameters.
pub(super) const NODE: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("driver", Kind::Text),
    ("conductor_group", Kind::Text),
    ("resource_class", Kind::Text),
    ("owner", Kind::Text),
    ("lessee", Kind::Text),
    ("shard", Kind::Text),
    ("parent_node", Kind::Text),
    ("instance_uuid", Kind::Text),
    ("instance_name", Kind::Text),
    ("allocation_uuid", Kind::Text),
    ("provision_state", Kind::Text),
    ("target_provision_state", Kind::Text),
    ("provision_updated_at", Kind::Time),
    ("power_state", Kind::Text),
    ("target_power_state", Kind::Text),
    ("maintenance", Kind::Flag),
    ("fault", Kind::Text),
    ("created_at", Kind::Time),
    ("updated_at", Kind::Time),
    ("chassis_uuid", Kind::Text),
    ("console_enabled", Kind::Flag),
    ("retired", Kind::Flag),
    ("protected", Kind::Flag),
];

/// A field of a node that is a column, so that lists can be filtered and sorted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeColumn {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

impl NodeColumn {
    /// The identity of the node.
    pub const UUID: Self = Self { name: "uuid", kind: Kind::Text };
    /// The name of the node.
    pub const NAME: Self = Self { name: "name", kind: Kind::Text };
    /// Where the node is in its life.
    pub const PROVISION_STATE: Self = Self { name: "provision_state", kind: Kind::Text };
    /// When the node was enrolled.
    pub const CREATED_AT: Self = Self { name: "created_at", kind: Kind::Time };

    /// The field.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The column of a field; nothing where the field is in the document.
    pub fn named(field: &str) -> Option<Self> {
        let found = NODE.iter().find(|(name, _)| *name == field);
        let found = found.map(|(name, kind)| Self { name, kind: *kind });
        found.or_else(|| (field == Self::UUID.name).then_some(Self::UUID))
    }
}

/// What a node must be like to be in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// A text is one of these.
    IsOneOf(NodeColumn, Vec<String>),
    /// A flag is this.
    Flag(NodeColumn, bool),
    /// A text is this, or there is none.
    IsOrHasNone(NodeColumn, String),
    /// There is a text, or none.
    IsSet(NodeColumn, bool),
    /// One of these is this text.
    AnyIs(Vec<NodeColumn>, String),
    /// The node has this trait.
    HasTrait(String),
    /// A text that is no column has this part.
    Contains(&'static str, String),
    /// An operator must act before anything happens to the node
    /// ([`ProvisionState::needs_operator`](farrier_conductor::model::ProvisionState::needs_operator)), or not.
    NeedsOperator(bool),
    /// What names the node begins with a text, see [`Self::begins_with`].
    BeginsWith {
        /// Its name.
        name: String,
        /// Its identity, or that of its instance.
        uuid: String,
        /// The hardware address of one of its ports.
        address: String,
    },
}

impl Filter {
    /// The name, the identity, that of the instance, or the hardware address of a port begins with this text. Names alone
    /// distinguish small and capital letters.
    pub fn begins_with(text: &str) -> Self {
        let uuid = text.to_lowercase();
        let address = uuid.replace('-', ":");
        Self::BeginsWith { name: text.to_owned(), uuid, address }
    }
}

/// A place in an order: the value of the column that is sorted by, and the identity for nodes that are alike in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The value, as the record has it.
    pub value: Value,
    /// The identity.
    pub uuid: Uuid,
}

/// Which nodes, in which order, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// All of these must be met.
    pub filters: Vec<Filter>,
    /// What they are sorted by. Nodes without a value come first.
    pub sort: NodeColumn,
    /// Whether the order is turned round.
    pub descending: bool,
    /// Those only that come after this place.
    pub after: Option<Position>,
    /// At most so many.
    pub limit: u32,
    /// The columns that are read of each, where columns are read.
    pub columns: Vec<NodeColumn>,
}

impl Selection {
    /// The first nodes, the oldest first, with all columns.
    pub fn first(limit: u32) -> Self {
        let columns = NODE.iter().map(|(name, kind)| NodeColumn { name, kind: *kind }).collect();
        Self {
            filters: Vec::new(),
            sort: NodeColumn::CREATED_AT,
            descending: false,
            after: None,
            limit,
            columns,
        }
    }

    /// All nodes for which this holds, by their identity.
    pub fn all(filters: Vec<Filter>) -> Self {
        Self { filters, sort: NodeColumn::UUID, columns: Vec::new(), ..Self::first(u32::MAX) }
    }
}

/// What columns of a node say: all of it that most lists need, without its documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The node.
    pub uuid: Uuid,
    /// The columns that were asked for as fields, with `uuid` and `reservation`.
    pub fields: Vec<(&'static str, Value)>,
    /// When the lease expires, if there is one.
    pub lease_expires_at: Option<OffsetDateTime>,
}

impl Outline {
    /// The value of a column.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The value of a column of text, empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        self.field(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// What is kept of a node and its agent beside columns of the node. It is text, since most of it goes into answers as
/// it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Documents {
    /// Fields of the node.
    pub node: String,
    /// Fields of its agent's session.
    pub session: String,
    /// The columns of its agent's session as fields.
    pub session_columns: Vec<(&'static str, Value)>,
}

impl Documents {
    /// Fields of the node, each as it is kept.
    ///
    /// # Errors
    ///
    /// The document was damaged, which affects no other record (lesson F42).
    pub fn node(&self) -> Result<BTreeMap<&str, &RawValue>, serde_json::Error> {
        serde_json::from_str(&self.node)
    }

    /// All fields of its agent's session.
    ///
    /// # Errors
    ///
    /// The document was damaged.
    pub fn session(&self) -> Result<Map<String, Value>, serde_json::Error> {
        let mut session: Map<_, _> = serde_json::from_str(&self.session)?;
        let columns = self.session_columns.iter();
        session.extend(columns.map(|(name, value)| ((*name).to_owned(), value.clone())));
        Ok(session)
    }
}

/// Which ports, by their identity, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSelection {
    /// Those of this node.
    pub node: Option<Uuid>,
    /// The one with this address.
    pub address: Option<MacAddress>,
    /// Those only whose identity comes after this one.
    pub after: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
}

/// A port, and the node it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedPort {
    /// The node.
    pub node: Uuid,
    /// The port.
    pub port: Port,
}

/// Which allocations, by their identity, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationSelection {
    /// That of this node.
    pub node: Option<Uuid>,
    /// Those in this state.
    pub state: Option<AllocationState>,
    /// Those that want this class.
    pub resource_class: Option<String>,
    /// Those of this project.
    pub owner: Option<String>,
    /// Those only whose identity comes after this one.
    pub after: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
}

impl AllocationSelection {
    /// The first of all.
    pub fn first(limit: u32) -> Self {
        Self { node: None, state: None, resource_class: None, owner: None, after: None, limit }
    }
}

/// Which plain resources, by their identity, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSelection {
    /// What they are.
    pub kind: ResourceKind,
    /// Those of this node.
    pub node: Option<Uuid>,
    /// The one that is known by this, beside its name
    /// ([`Resource::natural_key`](crate::records::Resource::natural_key)).
    pub natural_key: Option<String>,
    /// Those only whose identity comes after this one.
    pub after: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
}

impl ResourceSelection {
    /// The first of a kind.
    pub fn first(kind: ResourceKind, limit: u32) -> Self {
        Self { kind, node: None, natural_key: None, after: None, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_documents_are_no_columns() {
        for (field, kind) in [
            ("uuid", Kind::Text),
            ("maintenance", Kind::Flag),
            ("updated_at", Kind::Time),
            ("shard", Kind::Text),
        ] {
            assert_eq!(NodeColumn::named(field).unwrap().kind, kind, "{field}");
        }
        assert_eq!(NodeColumn::named("created_at"), Some(NodeColumn::CREATED_AT));
        for field in ["extra", "driver_info", "reservation", "1; DROP TABLE nodes", ""] {
            assert_eq!(NodeColumn::named(field), None, "{field}");
        }
    }
}
