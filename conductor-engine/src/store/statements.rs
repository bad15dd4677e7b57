//! Every statement of the store, in SQL that SQLite and PostgreSQL read alike.
//!
//! Parameters that are columns of a record come in the order of [`columns`](super::columns), after the identity.

use crate::store::columns::{Column, SESSION, column};
use crate::store::selection::{Filter, Kind, NODE, NodeColumn, Selection};

/// Nodes with their sessions, one row for each port, for the end of a statement that says which nodes.
macro_rules! select_records {
    ($which:literal) => {
        concat!(
            "SELECT nodes.uuid, nodes.name, nodes.driver, nodes.conductor_group, nodes.resource_class, nodes.owner, ",
            "nodes.lessee, nodes.shard, nodes.parent_node, nodes.instance_uuid, nodes.instance_name, ",
            "nodes.allocation_uuid, nodes.provision_state, nodes.target_provision_state, ",
            "nodes.provision_updated_at, nodes.power_state, nodes.target_power_state, nodes.maintenance, ",
            "nodes.fault, nodes.created_at, nodes.updated_at, nodes.chassis_uuid, nodes.reservation, nodes.lease_epoch, nodes.lease_expires_at, ",
            "node_documents.document AS node_document, ",
            "agent_sessions.agent_secret_token, agent_sessions.agent_url, agent_sessions.agent_version, ",
            "agent_sessions.agent_last_heartbeat, agent_sessions.agent_verify_ca, agent_sessions.agent_status, ",
            "agent_sessions.agent_status_message, agent_sessions.document AS session_document, ",
            "orders.verb, orders.ordered_at, orders.attempts, ports.uuid AS port_uuid, ports.address AS port_address, ",
            "ports.name AS port_name, ports.created_at AS port_created_at, ports.updated_at AS port_updated_at, ",
            "ports.document AS port_document ",
            "FROM nodes JOIN node_documents ON node_documents.node = nodes.uuid ",
            "JOIN agent_sessions ON agent_sessions.node = nodes.uuid ",
            "LEFT JOIN orders ON orders.node = nodes.uuid ",
            "LEFT JOIN ports ON ports.node = nodes.uuid ",
            $which
        )
    };
}

pub(super) const RECORD: &str = select_records!("WHERE nodes.uuid = $1 ORDER BY ports.place");
pub(super) const RECORD_BY_NAME: &str = select_records!("WHERE nodes.name = $1 ORDER BY ports.place");

pub(super) const IDENTITIES: &str = "SELECT uuid FROM nodes ORDER BY uuid";
pub(super) const PROVISION_STATES: &str =
    "SELECT provision_state, COUNT(*) AS counted FROM nodes GROUP BY provision_state";
pub(super) const HELD: &str = "SELECT uuid, reservation, lease_epoch, lease_expires_at FROM nodes \
    WHERE reservation IS NOT NULL AND lease_expires_at IS NOT NULL";

/// Nodes that are not at rest, or of which something is ordered, and whose lease nobody holds at a time.
pub(super) const UNATTENDED: &str = "SELECT nodes.uuid FROM nodes LEFT JOIN orders ON orders.node = nodes.uuid \
    WHERE (orders.node IS NOT NULL OR nodes.provision_state IN ('verifying', 'deploying', 'wait call-back', \
    'deleting', 'cleaning', 'clean wait', 'inspecting', 'inspect wait', 'adopting', 'rescuing', 'rescue wait', \
    'unrescuing', 'servicing', 'service wait')) \
    AND (nodes.reservation IS NULL OR nodes.lease_expires_at <= $1)";
/// Of those and of what is selected of ports, the columns have the same names.
macro_rules! select_ports {
    ($which:literal) => {
        concat!(
            "SELECT ports.node, ports.uuid AS port_uuid, ports.address AS port_address, ports.name AS port_name, ",
            "ports.created_at AS port_created_at, ports.updated_at AS port_updated_at, ",
            "ports.document AS port_document FROM ports ",
            $which
        )
    };
}

pub(super) const PORTS: &str = select_ports!(
    "WHERE ($1 IS NULL OR ports.node = $1) AND ($2 IS NULL OR ports.address = $2) \
    AND ($3 IS NULL OR ports.uuid > $3) ORDER BY ports.uuid LIMIT $4"
);
pub(super) const PORT: &str = select_ports!("WHERE ports.uuid = $1 OR ports.name = $1");
pub(super) const PORTS_OF_NODE: &str = select_ports!("WHERE ports.node = $1 ORDER BY ports.place");
pub(super) const OWNER: &str = "SELECT node FROM ports WHERE address = $1";
pub(super) const ALLOCATION: &str = "SELECT document FROM allocations WHERE uuid = $1 OR name = $1";
pub(super) const ALLOCATIONS: &str = "SELECT document FROM allocations WHERE ($1 IS NULL OR node_uuid = $1) \
    AND ($2 IS NULL OR state = $2) AND ($3 IS NULL OR resource_class = $3) AND ($4 IS NULL OR owner = $4) \
    AND ($5 IS NULL OR uuid > $5) ORDER BY uuid LIMIT $6";
pub(super) const INSERT_ALLOCATION: &str = "INSERT INTO allocations (uuid, name, state, node_uuid, resource_class, \
    owner, document) VALUES ($1, $2, $3, $4, $5, $6, $7)";
pub(super) const UPDATE_ALLOCATION: &str = "UPDATE allocations SET name = $2, state = $3, node_uuid = $4, \
    resource_class = $5, owner = $6, document = $7 WHERE uuid = $1 AND state = $8";
pub(super) const DELETE_ALLOCATION: &str = "DELETE FROM allocations WHERE uuid = $1";
/// A node, and the allocation that it has or an empty text.
pub(super) const END_ALLOCATIONS: &str = "DELETE FROM allocations WHERE node_uuid = $1 AND uuid <> $2";
pub(super) const RESOURCE: &str =
    "SELECT document FROM resources WHERE kind = $1 AND (uuid = $2 OR name = $2)";
pub(super) const RESOURCES: &str = "SELECT document FROM resources WHERE kind = $1 AND ($2 IS NULL OR node = $2) \
    AND ($3 IS NULL OR natural_key = $3) AND ($4 IS NULL OR uuid > $4) ORDER BY uuid LIMIT $5";
pub(super) const INSERT_RESOURCE: &str = "INSERT INTO resources (uuid, kind, name, node, natural_key, document) \
    VALUES ($1, $2, $3, $4, $5, $6)";
pub(super) const UPDATE_RESOURCE: &str =
    "UPDATE resources SET name = $2, node = $3, natural_key = $4, document = $5 WHERE uuid = $1";
pub(super) const DELETE_RESOURCE: &str = "DELETE FROM resources WHERE uuid = $1";
pub(super) const CONFIG_DRIVE: &str = "SELECT content FROM config_drives WHERE node = $1";
pub(super) const INSPECTION: &str = "SELECT document FROM inspections WHERE node = $1";
pub(super) const RECEIVED_INSPECTION: &str = "SELECT received FROM inspections WHERE node = $1";
pub(super) const HISTORY: &str = "SELECT uuid, created_at, severity, event_type, event, conductor, by_user \
    FROM node_history WHERE node = $1 ORDER BY place";
pub(super) const CERTIFICATES: &str =
    "SELECT document FROM erase_certificates WHERE node = $1 ORDER BY disk, step";
pub(super) const BOOT_TRACE: &str = "SELECT document FROM boot_traces WHERE node = $1";
pub(super) const DIAGNOSIS: &str = "SELECT document FROM diagnoses WHERE node = $1";
/// Traces of machines whose nodes wait for an agent that has not called.
pub(super) const AWAITED_BOOTS: &str = "SELECT boot_traces.document FROM boot_traces \
    JOIN nodes ON nodes.uuid = boot_traces.node JOIN agent_sessions ON agent_sessions.node = boot_traces.node \
    WHERE agent_sessions.agent_url IS NULL AND nodes.provision_state IN ('wait call-back', 'clean wait', \
    'inspect wait', 'rescue wait', 'service wait')";

pub(super) const WITH_BOOT_TRACE: &str = "SELECT node FROM boot_traces ORDER BY node";

pub(super) const HOLDER: &str = "SELECT reservation FROM nodes WHERE uuid = $1";

pub(super) const INSERT_NODE: &str = "INSERT INTO nodes (uuid, name, driver, conductor_group, resource_class, owner, \
    lessee, shard, parent_node, instance_uuid, instance_name, allocation_uuid, provision_state, \
    target_provision_state, provision_updated_at, power_state, target_power_state, maintenance, fault, created_at, \
    updated_at, chassis_uuid, lease_epoch) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, 0)";
pub(super) const INSERT_DOCUMENT: &str = "INSERT INTO node_documents (node, document) VALUES ($1, $2)";
/// A new port comes after those that the node has.
pub(super) const INSERT_PORT: &str = "INSERT INTO ports (uuid, address, name, updated_at, created_at, document, node, \
    place) VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT COALESCE(MAX(place), -1) + 1 FROM ports WHERE node = $7))";
pub(super) const INSERT_SESSION: &str = "INSERT INTO agent_sessions (node, agent_secret_token, agent_url, \
    agent_version, agent_last_heartbeat, agent_verify_ca, agent_status, agent_status_message, document) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
pub(super) const INSERT_CONFIG_DRIVE: &str = "INSERT INTO config_drives (node, content) VALUES ($1, $2)";

pub(super) const INSERT_ORDER: &str =
    "INSERT INTO orders (node, verb, ordered_at, attempts) VALUES ($1, $2, $3, $4)";
pub(super) const RECEIVE_INSPECTION: &str = "INSERT INTO inspections (node, received) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET received = $2";
pub(super) const PUT_INSPECTION: &str = "INSERT INTO inspections (node, document) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET document = $2, received = NULL";
pub(super) const INSERT_HISTORY: &str = "INSERT INTO node_history (uuid, node, created_at, severity, event_type, \
    event, conductor, by_user, place) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, \
    (SELECT COALESCE(MAX(place), -1) + 1 FROM node_history WHERE node = $2))";
/// A node, and how many entries stay.
pub(super) const TRIM_HISTORY: &str = "DELETE FROM node_history WHERE node = $1 \
    AND place <= (SELECT MAX(place) FROM node_history WHERE node = $1) - $2";
pub(super) const PUT_CERTIFICATE: &str = "INSERT INTO erase_certificates (node, disk, step, document) \
    VALUES ($1, $2, $3, $4) ON CONFLICT (node, disk, step) DO UPDATE SET document = $4";
pub(super) const BEGIN_BOOT_TRACE: &str = "INSERT INTO boot_traces (node, document) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET document = $2";
pub(super) const UPDATE_BOOT_TRACE: &str = "UPDATE boot_traces SET document = $2 WHERE node = $1";
pub(super) const DELETE_BOOT_TRACE: &str = "DELETE FROM boot_traces WHERE node = $1";
pub(super) const PUT_DIAGNOSIS: &str = "INSERT INTO diagnoses (node, document) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET document = $2";
pub(super) const DELETE_DIAGNOSIS: &str = "DELETE FROM diagnoses WHERE node = $1";
pub(super) const DELETE_CERTIFICATES: &str = "DELETE FROM erase_certificates WHERE node = $1";
pub(super) const DELETE_ORDER: &str = "DELETE FROM orders WHERE node = $1";

/// The guard of everything that is written under a lease: no row when the epoch, the last parameter, was overtaken.
pub(super) const UPDATE_NODE: &str = "UPDATE nodes SET name = $2, driver = $3, conductor_group = $4, \
    resource_class = $5, owner = $6, lessee = $7, shard = $8, parent_node = $9, instance_uuid = $10, \
    instance_name = $11, allocation_uuid = $12, provision_state = $13, target_provision_state = $14, \
    provision_updated_at = $15, power_state = $16, target_power_state = $17, maintenance = $18, fault = $19, \
    created_at = $20, updated_at = $21, chassis_uuid = $22 WHERE uuid = $1 AND lease_epoch = $23";
/// A document that is as it was is not written.
pub(super) const UPDATE_DOCUMENT: &str =
    "UPDATE node_documents SET document = $2 WHERE node = $1 AND document <> $2";
pub(super) const UPDATE_PORT: &str =
    "UPDATE ports SET address = $2, name = $3, updated_at = $4, document = $5 WHERE uuid = $1";
pub(super) const DELETE_PORT: &str = "DELETE FROM ports WHERE uuid = $1";
pub(super) const REPLACE_SESSION: &str = "UPDATE agent_sessions SET agent_secret_token = $2, agent_url = $3, \
    agent_version = $4, agent_last_heartbeat = $5, agent_verify_ca = $6, agent_status = $7, \
    agent_status_message = $8, document = $9 WHERE node = $1";
pub(super) const UPDATE_SESSION_DOCUMENT: &str = "UPDATE agent_sessions SET document = $2 WHERE node = $1";
pub(super) const DELETE_CONFIG_DRIVE: &str = "DELETE FROM config_drives WHERE node = $1";
pub(super) const DELETE_NODE: &str = "DELETE FROM nodes WHERE uuid = $1 AND lease_epoch = $2";

/// Holder, time of expiry, time now.
pub(super) const TAKE: &str = "UPDATE nodes SET reservation = $2, lease_expires_at = $3, \
    lease_epoch = lease_epoch + 1 WHERE uuid = $1 AND (reservation IS NULL OR lease_expires_at <= $4) \
    RETURNING lease_epoch";
pub(super) const RENEW: &str = "UPDATE nodes SET lease_expires_at = $3 WHERE uuid = $1 AND lease_epoch = $2";
pub(super) const RELEASE: &str =
    "UPDATE nodes SET reservation = NULL, lease_expires_at = NULL WHERE uuid = $1 AND lease_epoch = $2";
/// A lease as it was seen: node, epoch, time of expiry.
pub(super) const EXPIRE: &str = "UPDATE nodes SET lease_expires_at = 0, lease_epoch = lease_epoch + 1 \
    WHERE uuid = $1 AND lease_epoch = $2 AND lease_expires_at = $3";
pub(super) const EXPIRE_ALL: &str =
    "UPDATE nodes SET lease_expires_at = 0, lease_epoch = lease_epoch + 1 WHERE reservation = $1";

pub(super) const CONDUCTORS: &str = "SELECT name, process, host_process, conductor_group, hardware, counter, \
    registered_at, updated_at FROM conductors ORDER BY name";
/// The record of a process, and process and counter of the one that it may follow.
pub(super) const RENEW_CONDUCTOR: &str = "INSERT INTO conductors (name, process, host_process, conductor_group, hardware, \
    registered_at, updated_at, counter) VALUES ($1, $2, $3, $4, $5, $6, $7, 0) ON CONFLICT (name) DO UPDATE SET \
    process = $2, host_process = $3, conductor_group = $4, hardware = $5, registered_at = $6, updated_at = $7, \
    counter = conductors.counter + 1 \
    WHERE conductors.process = $2 OR (conductors.process = $8 AND conductors.counter = $9)";
/// A process, its counter, and whether the counter does not matter.
pub(super) const DELETE_CONDUCTOR: &str =
    "DELETE FROM conductors WHERE name = $1 AND process = $2 AND (counter = $3 OR $4)";

/// A lease that begins and ends at once, of a node to which nothing happened since it had this epoch: it orders the
/// issue of a token before or after every other write.
pub(super) const PASS: &str = "UPDATE nodes SET lease_epoch = lease_epoch + 1 WHERE uuid = $1 AND lease_epoch = $2 \
    AND (reservation IS NULL OR lease_expires_at <= $3)";
pub(super) const ISSUE_TOKEN: &str =
    "UPDATE agent_sessions SET agent_secret_token = $2 WHERE node = $1 AND agent_secret_token IS NULL";
pub(super) const HEAR: &str = "UPDATE agent_sessions SET agent_url = $3, agent_version = $4, \
    agent_last_heartbeat = $5, agent_verify_ca = $6, agent_status = $7, agent_status_message = $8 \
    WHERE node = $1 AND agent_secret_token = $2 AND (agent_url IS NULL OR agent_url = $3) \
    AND (agent_verify_ca IS NULL OR agent_verify_ca = $6)";

/// A statement with the values of its parameters, in their order.
pub(super) type Selected = (String, Vec<Column>);

/// The columns of selected nodes.
pub(super) fn outlines(selection: &Selection) -> Selected {
    let (which, values) = which(selection);
    (format!("SELECT {} FROM nodes {which}", outline()), values)
}

/// The columns of selected nodes, and all that is kept of these and their sessions.
pub(super) fn documents(selection: &Selection) -> Selected {
    let (which, values) = which(selection);
    let text = format!(
        "SELECT {}, {}, node_documents.document AS node_document, agent_sessions.document AS session_document \
         FROM nodes JOIN node_documents ON node_documents.node = nodes.uuid \
         JOIN agent_sessions ON agent_sessions.node = nodes.uuid {which}",
        outline(),
        names("agent_sessions", SESSION),
    );
    (text, values)
}

fn outline() -> String {
    format!("nodes.uuid, {}, nodes.reservation, nodes.lease_expires_at", names("nodes", NODE))
}

fn names(table: &str, columns: &[(&str, Kind)]) -> String {
    let columns: Vec<_> = columns.iter().map(|(name, _)| format!("{table}.{name}")).collect();
    columns.join(", ")
}

/// Selected nodes with their sessions, one row for each port.
pub(super) fn records(selection: &Selection) -> Selected {
    let (which, values) = which(selection);
    let text = format!(
        "{} WHERE nodes.uuid IN (SELECT nodes.uuid FROM nodes {which}) ORDER BY {}, ports.place",
        select_records!(""),
        order(selection)
    );
    (text, values)
}

/// The end of a statement that says which nodes. Only names of columns enter its text.
fn which(selection: &Selection) -> Selected {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut parameter = |value: Column| {
        values.push(value);
        format!("${}", values.len())
    };
    for filter in &selection.filters {
        conditions.push(match filter {
            Filter::IsOneOf(_, texts) if texts.is_empty() => "1 = 0".to_owned(),
            Filter::IsOneOf(column, texts) => {
                let texts: Vec<_> =
                    texts.iter().map(|text| parameter(Column::Text(Some(text.clone())))).collect();
                format!("nodes.{} IN ({})", column.name, texts.join(", "))
            }
            Filter::Flag(column, flag) => {
                format!("nodes.{} = {}", column.name, parameter(Column::Flag(*flag)))
            }
            Filter::IsSet(column, true) => format!("nodes.{} IS NOT NULL", column.name),
            Filter::IsSet(column, false) => format!("nodes.{} IS NULL", column.name),
            Filter::AnyIs(columns, text) => {
                let is = columns.iter().map(|column| {
                    format!("nodes.{} = {}", column.name, parameter(Column::Text(Some(text.clone()))))
                });
                format!("({})", is.collect::<Vec<_>>().join(" OR "))
            }
            Filter::Noted(field, flag) => {
                let flag = parameter(Column::Flag(*flag));
                in_document(&format!("COALESCE(document ->> '{field}', FALSE) = {flag}"))
            }
            Filter::Contains(field, part) => {
                let part = parameter(Column::Text(Some(format!("%{}%", literal(part)))));
                in_document(&format!("document ->> '{field}' LIKE {part} ESCAPE '\\'"))
            }
        });
    }
    if let Some(after) = &selection.after {
        let beyond = if selection.descending { "<" } else { ">" };
        let sort = sorted_by(selection.sort);
        let value = match (selection.sort.kind, column(selection.sort.kind, Some(after.value.clone()))) {
            (Kind::Text, Column::Text(text)) => Column::Text(Some(text.unwrap_or_default())),
            (_, Column::Time(time)) => Column::Time(Some(time.unwrap_or_default())),
            (_, value) => value,
        };
        let (value, uuid) = (parameter(value), parameter(Column::Text(Some(after.uuid.to_string()))));
        conditions
            .push(format!("({sort} {beyond} {value} OR ({sort} = {value} AND nodes.uuid {beyond} {uuid}))"));
    }
    let conditions = match conditions.is_empty() {
        true => String::new(),
        false => format!("WHERE {} ", conditions.join(" AND ")),
    };
    (format!("{conditions}ORDER BY {} LIMIT {}", order(selection), selection.limit), values)
}

/// A condition about what is no column.
fn in_document(condition: &str) -> String {
    format!("nodes.uuid IN (SELECT node FROM node_documents WHERE {condition})")
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
        Kind::Text => format!("COALESCE(nodes.{}, '')", column.name),
        Kind::Time => format!("COALESCE(nodes.{}, 0)", column.name),
        Kind::Flag => format!("nodes.{}", column.name),
    }
}

fn order(selection: &Selection) -> String {
    let direction = if selection.descending { "DESC" } else { "ASC" };
    format!("{} {direction}, nodes.uuid {direction}", sorted_by(selection.sort))
}

#[cfg(test)]
mod tests {
    use super::super::columns::SESSION;
    use super::super::selection::Position;
    use super::*;
    use farrier_conductor::model::{Activity, ProvisionState};

    #[test]
    fn nodes_that_are_worked_on_or_wait_need_attention() {
        for state in ProvisionState::ALL {
            let needs = matches!(state.activity(), Activity::Work | Activity::Wait);
            assert_eq!(UNATTENDED.contains(&format!("'{state}'")), needs, "{state}");
            let waits = state.activity() == Activity::Wait;
            assert_eq!(AWAITED_BOOTS.contains(&format!("'{state}'")), waits, "{state}");
        }
    }

    #[test]
    fn statements_name_the_columns_in_their_order() {
        let assigned = |columns: &[(&str, _)], first: usize| {
            let pairs = columns.iter().enumerate();
            pairs.map(|(at, (name, _))| format!("{name} = ${}", at + first)).collect::<Vec<_>>().join(", ")
        };
        let named =
            |columns: &[(&str, _)]| columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        assert!(UPDATE_NODE.contains(&assigned(NODE, 2)), "{UPDATE_NODE}");
        assert!(INSERT_NODE.contains(&named(NODE)), "{INSERT_NODE}");
        assert!(REPLACE_SESSION.contains(&assigned(SESSION, 2)), "{REPLACE_SESSION}");
        assert!(INSERT_SESSION.contains(&named(SESSION)), "{INSERT_SESSION}");
        // The token is what a heartbeat is known by.
        assert!(HEAR.contains(&assigned(&SESSION[1..], 3)), "{HEAR}");
        for (name, _) in NODE {
            assert!(RECORD.contains(&format!("nodes.{name}, ")), "{name}");
        }
        for (name, _) in SESSION {
            assert!(RECORD.contains(&format!("agent_sessions.{name}, ")), "{name}");
        }
    }

    #[test]
    fn only_words_that_both_databases_know_are_used() {
        let column = NodeColumn::named("name").unwrap();
        let filters = vec![
            Filter::IsOneOf(column, vec!["n1".into(), "n2".into()]),
            Filter::IsOneOf(column, Vec::new()),
            Filter::Flag(NodeColumn::named("maintenance").unwrap(), true),
            Filter::IsSet(column, false),
            Filter::AnyIs(vec![column, column], "n1".into()),
            Filter::Noted("retired", true),
            Filter::Contains("description", "50 %".into()),
        ];
        let after = Some(Position { value: "n0".into(), uuid: uuid::Uuid::nil() });
        let selection = Selection { filters, sort: column, descending: true, after, limit: 9 };
        let (outlines, records) = (outlines(&selection).0, records(&selection).0);
        let statements = [
            RECORD,
            RECORD_BY_NAME,
            IDENTITIES,
            PROVISION_STATES,
            HELD,
            UNATTENDED,
            PORTS,
            PORT,
            PORTS_OF_NODE,
            OWNER,
            ALLOCATION,
            ALLOCATIONS,
            INSERT_ALLOCATION,
            UPDATE_ALLOCATION,
            DELETE_ALLOCATION,
            END_ALLOCATIONS,
            RESOURCE,
            RESOURCES,
            INSERT_RESOURCE,
            UPDATE_RESOURCE,
            DELETE_RESOURCE,
            CONFIG_DRIVE,
            INSPECTION,
            RECEIVED_INSPECTION,
            RECEIVE_INSPECTION,
            PUT_INSPECTION,
            HISTORY,
            INSERT_HISTORY,
            TRIM_HISTORY,
            CERTIFICATES,
            PUT_CERTIFICATE,
            DELETE_CERTIFICATES,
            BOOT_TRACE,
            DIAGNOSIS,
            PUT_DIAGNOSIS,
            DELETE_DIAGNOSIS,
            AWAITED_BOOTS,
            WITH_BOOT_TRACE,
            BEGIN_BOOT_TRACE,
            UPDATE_BOOT_TRACE,
            DELETE_BOOT_TRACE,
            HOLDER,
            INSERT_NODE,
            INSERT_DOCUMENT,
            INSERT_PORT,
            INSERT_SESSION,
            INSERT_CONFIG_DRIVE,
            INSERT_ORDER,
            DELETE_ORDER,
            UPDATE_NODE,
            UPDATE_DOCUMENT,
            UPDATE_PORT,
            DELETE_PORT,
            REPLACE_SESSION,
            UPDATE_SESSION_DOCUMENT,
            DELETE_CONFIG_DRIVE,
            DELETE_NODE,
            TAKE,
            RENEW,
            RELEASE,
            EXPIRE,
            EXPIRE_ALL,
            CONDUCTORS,
            RENEW_CONDUCTOR,
            DELETE_CONDUCTOR,
            PASS,
            ISSUE_TOKEN,
            HEAR,
            include_str!("migrations/0001_initial.sql"),
            outlines.as_str(),
            records.as_str(),
        ];
        let here = include_str!("statements.rs").matches("pub(super) const ").count();
        assert_eq!(statements.len(), here - 1 + 1 + 2, "a statement is not looked at");
        // A statement that needs one of these needs two texts; `?` is no parameter of PostgreSQL.
        for word in [
            "?",
            "json",
            "datetime",
            "strftime",
            "ifnull",
            "rowid",
            "autoincrement",
            "pragma",
            " or replace",
            " or ignore",
            "blob",
            "glob ",
            "::",
            "now()",
            "serial",
            "jsonb",
            "ilike",
            "for update",
            "collate",
        ] {
            for statement in statements {
                let plain: String = statement.lines().filter(|line| !line.starts_with("--")).collect();
                assert!(!plain.to_ascii_lowercase().contains(word), "{word:?} in {statement}");
            }
        }
    }
}
