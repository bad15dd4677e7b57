//! Statements whose text depends on what is asked for. Only names of columns and numbers enter it.

use crate::store::columns::{Column, SESSION, column};
use crate::store::selection::{Filter, Kind, NodeColumn, Selection};
use crate::store::sql::statements::Dialect;
use crate::store::{AllocationSelection, Lease, PortSelection, ResourceSelection};

/// A statement with the values of its parameters, in their order.
pub type Selected = (String, Vec<Column>);

/// Columns that have a value in every row, so that an order by them is that of an index.
const ALWAYS_SET: &[&str] = &[
    "uuid",
    "driver",
    "conductor_group",
    "provision_state",
    "provision_updated_at",
    "maintenance",
    "created_at",
    "updated_at",
    "console_enabled",
    "retired",
    "protected",
];

/// The nodes that need an operator (`ProvisionState::needs_operator`), as the condition of their index says.
pub(in crate::store) const NEEDS_OPERATOR: &str = "nodes.maintenance OR nodes.provision_state IN \
    ('deploy hold', 'deploy failed', 'error', 'clean hold', 'clean failed', 'inspect failed', 'adopt failed', \
    'rescue failed', 'unrescue failed', 'service hold', 'service failed')";

/// The last character in the order of texts, which ends the range of those that begin alike.
const LAST: char = char::MAX;

/// The end of a statement under way: its conditions, and the values of their parameters.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<Column>,
}

impl Conditions {
    /// The next parameter.
    fn parameter(&mut self, value: Column) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn text(&mut self, text: impl ToString) -> String {
        self.parameter(Column::Text(Some(text.to_string())))
    }

    /// A column compares with a text, where there is one.
    fn compare(&mut self, column: &str, operator: &str, text: Option<impl ToString>) {
        if let Some(text) = text {
            let parameter = self.text(text);
            self.texts.push(format!("{column} {operator} {parameter}"));
        }
    }

    /// The statement that begins so, for at most so many rows in an order.
    fn end(self, begin: &str, order: &str, limit: u32) -> Selected {
        let conditions = match self.texts.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", self.texts.join(" AND ")),
        };
        (format!("{begin}{conditions} ORDER BY {order} LIMIT {limit}"), self.values)
    }
}

/// All conductors, and the time by the clock of the database.
pub(in crate::store) fn conductors(dialect: Dialect) -> Selected {
    let now = dialect.now();
    let text = format!(
        "SELECT name, process, host_process, conductor_group, hardware, counter, registered_at, updated_at, \
         {now} AS now FROM conductors ORDER BY name"
    );
    (text, Vec::new())
}

/// Writes the record of a conductor, whose times are by the clock of the database. Its values are the record of a process, and
/// process and counter of the one that it may follow.
pub(in crate::store) fn renew_conductor(dialect: Dialect, values: Vec<Column>) -> Selected {
    let now = dialect.now();
    let text = format!(
        "INSERT INTO conductors (name, process, host_process, conductor_group, hardware, registered_at, updated_at, \
         counter) VALUES ($1, $2, $3, $4, $5, {now}, {now}, 0) ON CONFLICT (name) DO UPDATE SET process = $2, \
         host_process = $3, conductor_group = $4, hardware = $5, registered_at = CASE conductors.process WHEN $2 \
         THEN conductors.registered_at ELSE excluded.registered_at END, updated_at = excluded.updated_at, \
         counter = conductors.counter + 1 \
         WHERE conductors.process = $2 OR (conductors.process = $6 AND conductors.counter = $7)"
    );
    (text, values)
}

/// The identities of selected nodes.
pub(in crate::store) fn identities(dialect: Dialect, selection: &Selection) -> Selected {
    which(dialect, selection, "SELECT nodes.uuid FROM nodes")
}

/// The columns of selected nodes that are asked for.
pub(in crate::store) fn outlines(dialect: Dialect, selection: &Selection) -> Selected {
    which(dialect, selection, &format!("SELECT {} FROM nodes", outline(selection)))
}

/// The columns of selected nodes, and all that is kept of these and their sessions.
pub(in crate::store) fn documents(dialect: Dialect, selection: &Selection) -> Selected {
    let session: Vec<_> = SESSION.iter().map(|(name, _)| format!("agent_sessions.{name}")).collect();
    let begin = format!(
        "SELECT {}, node_documents.document, agent_sessions.document, {} \
         FROM nodes JOIN node_documents ON node_documents.node = nodes.uuid \
         JOIN agent_sessions ON agent_sessions.node = nodes.uuid",
        outline(selection),
        session.join(", "),
    );
    which(dialect, selection, &begin)
}

fn outline(selection: &Selection) -> String {
    let columns = selection.columns.iter().map(|column| format!(", nodes.{}", column.name));
    format!("nodes.uuid, nodes.reservation, nodes.lease_expires_at{}", columns.collect::<String>())
}

/// Selected nodes with their sessions, one row for each port.
pub(in crate::store) fn records(dialect: Dialect, selection: &Selection) -> Selected {
    let (which, values) = identities(dialect, selection);
    let text = format!(
        "{} WHERE nodes.uuid IN ({which}) ORDER BY {}, ports.place",
        select_records!(""),
        order(selection)
    );
    (text, values)
}

/// Selected ports, by their identity.
pub(in crate::store) fn ports(selection: &PortSelection) -> Selected {
    let mut conditions = Conditions::default();
    conditions.compare("ports.node", "=", selection.node);
    conditions.compare("ports.address", "=", selection.address.as_ref());
    conditions.compare("ports.uuid", ">", selection.after);
    conditions.end(select_ports!("").trim_end(), "ports.uuid", selection.limit)
}

/// Selected allocations, by their identity.
pub(in crate::store) fn allocations(selection: &AllocationSelection) -> Selected {
    let mut conditions = Conditions::default();
    conditions.compare("node_uuid", "=", selection.node);
    conditions.compare("state", "=", selection.state.map(|state| state.as_str()));
    conditions.compare("resource_class", "=", selection.resource_class.as_ref());
    conditions.compare("owner", "=", selection.owner.as_ref());
    conditions.compare("uuid", ">", selection.after);
    conditions.end("SELECT document FROM allocations", "uuid", selection.limit)
}

/// Selected resources of a kind, by their identity.
pub(in crate::store) fn resources(selection: &ResourceSelection) -> Selected {
    let mut conditions = Conditions::default();
    conditions.compare("kind", "=", Some(selection.kind.as_str()));
    conditions.compare("node", "=", selection.node);
    conditions.compare("natural_key", "=", selection.natural_key.as_ref());
    conditions.compare("uuid", ">", selection.after);
    conditions.end("SELECT document FROM resources", "uuid", selection.limit)
}

/// Has these leases, and no others, last until a time, and tells which of them there still are.
pub(in crate::store) fn renew_all(leases: &[Lease], expires_at: i64) -> Selected {
    let mut conditions = Conditions::default();
    let until = conditions.parameter(Column::Number(Some(expires_at)));
    let pairs = leases.iter().map(|lease| format!("({}, {})", conditions.text(lease.node), lease.epoch));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    let text = format!(
        "UPDATE nodes SET lease_expires_at = {until} WHERE (uuid, lease_epoch) IN (VALUES {pairs}) \
         AND reservation IS NOT NULL RETURNING uuid"
    );
    (text, conditions.values)
}

/// The statement that begins so, of selected nodes.
fn which(dialect: Dialect, selection: &Selection, begin: &str) -> Selected {
    let mut conditions = Conditions::default();
    for filter in &selection.filters {
        let text = condition(dialect, filter, &mut conditions);
        conditions.texts.push(text);
    }
    if let Some(after) = &selection.after {
        let value = match (selection.sort.kind, column(selection.sort.kind, Some(after.value.clone()))) {
            (Kind::Text, Column::Text(text)) => Column::Text(Some(text.unwrap_or_default())),
            (_, Column::Number(time)) => Column::Number(Some(time.unwrap_or_default())),
            (_, value) => value,
        };
        let (value, uuid) = (conditions.parameter(value), conditions.text(after.uuid));
        let beyond = if selection.descending { "<" } else { ">" };
        let sort = sorted_by(selection.sort);
        conditions.texts.push(format!("({sort}, nodes.uuid) {beyond} ({value}, {uuid})"));
    }
    conditions.end(begin, &order(selection), selection.limit)
}

fn condition(dialect: Dialect, filter: &Filter, conditions: &mut Conditions) -> String {
    match filter {
        Filter::IsOneOf(_, texts) if texts.is_empty() => "1 = 0".to_owned(),
        Filter::IsOneOf(column, texts) => {
            let texts: Vec<_> = texts.iter().map(|text| conditions.text(text)).collect();
            format!("nodes.{} IN ({})", column.name, texts.join(", "))
        }
        Filter::IsOrHasNone(column, text) => {
            format!("(nodes.{0} = {1} OR nodes.{0} IS NULL)", column.name, conditions.text(text))
        }
        Filter::Flag(column, flag) => {
            format!("nodes.{} = {}", column.name, conditions.parameter(Column::Flag(*flag)))
        }
        Filter::IsSet(column, true) => format!("nodes.{} IS NOT NULL", column.name),
        // No index: most nodes have none of what is asked for, and lists come in the order of another one.
        Filter::IsSet(column, false) => format!("COALESCE(nodes.{}, '') = ''", column.name),
        Filter::AnyIs(columns, text) => {
            let is =
                columns.iter().map(|column| format!("nodes.{} = {}", column.name, conditions.text(text)));
            format!("({})", is.collect::<Vec<_>>().join(" OR "))
        }
        Filter::NeedsOperator(true) => format!("({NEEDS_OPERATOR})"),
        Filter::NeedsOperator(false) => format!("NOT ({NEEDS_OPERATOR})"),
        Filter::BeginsWith { name, uuid, address } => begins_with([name, uuid, address], conditions),
        Filter::HasTrait(name) => {
            let name = conditions.text(name);
            format!(
                "EXISTS (SELECT 1 FROM node_keys WHERE node_keys.node = nodes.uuid AND node_keys.kind = 'trait' \
                 AND node_keys.value = {name})"
            )
        }
        Filter::Contains(field, part) => {
            let part = conditions.text(format!("%{}%", literal(part)));
            format!(
                "EXISTS (SELECT 1 FROM node_documents WHERE node_documents.node = nodes.uuid \
                 AND {} LIKE LOWER({part}) ESCAPE '\\')",
                dialect.lower_field(field)
            )
        }
    }
}

/// Each index gives the nodes that it has in a range, so that no node is read that is not found.
fn begins_with([name, uuid, address]: [&str; 3], conditions: &mut Conditions) -> String {
    let mut range = |column: &str, start: &str| {
        let start_of = conditions.text(start);
        format!("{column} >= {start_of} AND {column} < {}", conditions.text(format!("{start}{LAST}")))
    };
    let (name, uuid, instance, address) =
        (range("name", name), range("uuid", uuid), range("instance_uuid", uuid), range("address", address));
    format!(
        "nodes.uuid IN (SELECT uuid FROM nodes WHERE {name} UNION SELECT uuid FROM nodes WHERE {uuid} \
         UNION SELECT uuid FROM nodes WHERE {instance} UNION SELECT node FROM ports WHERE {address})"
    )
}

/// A text as a pattern that means itself.
fn literal(text: &str) -> String {
    let escaped = text.chars().flat_map(|letter| {
        let escape = ['\\', '%', '_'].contains(&letter).then_some('\\');
        escape.into_iter().chain([letter])
    });
    escaped.collect()
}

/// What is not there sorts as what is empty, so that a place in the order is a value in any case.
fn sorted_by(column: NodeColumn) -> String {
    match column.kind {
        _ if ALWAYS_SET.contains(&column.name) => format!("nodes.{}", column.name),
        Kind::Text => format!("COALESCE(nodes.{}, '')", column.name),
        Kind::Time => format!("COALESCE(nodes.{}, 0)", column.name),
        Kind::Flag => format!("nodes.{}", column.name),
    }
}

fn order(selection: &Selection) -> String {
    let direction = if selection.descending { "DESC" } else { "ASC" };
    match selection.sort {
        NodeColumn::UUID => format!("nodes.uuid {direction}"),
        sort => format!("{} {direction}, nodes.uuid {direction}", sorted_by(sort)),
    }
}
