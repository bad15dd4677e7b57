//! Writes nodes.

use crate::store::columns::{SESSION, split};
use crate::store::selection::NODE;
use crate::store::sql::constraints::{Constraint, taken_or};
use crate::store::sql::statement::{Connection, Row, Statement};
use crate::store::sql::tables::{allocations, boot_traces, certificates, diagnosis, history, leases, ports};
use crate::store::sql::{Failure, Outcome, statements as sql};
use crate::store::{Change, ConfigDrive, InspectionChange, Lease, OrderChange, Record, SessionChange};
use farrier_conductor::inventory::bmc_addresses;
use farrier_conductor::model::{AgentSession, Node};
use std::collections::HashSet;
use time::OffsetDateTime;
use uuid::Uuid;

/// Adds a node with its ports and its agent's session.
pub async fn insert(connection: &mut impl Connection, node: &Node, session: &AgentSession) -> Outcome<()> {
    let (columns, document) = split(node, NODE);
    let inserted = Statement::new(sql::INSERT_NODE).bind(node.uuid).bind_all(columns);
    connection.execute(inserted).await.map_err(|failure| taken(failure, node))?;
    connection.execute(Statement::new(sql::INSERT_DOCUMENT).bind(node.uuid).bind(document)).await?;
    let (columns, document) = split(session, SESSION);
    let inserted = Statement::new(sql::INSERT_SESSION).bind(node.uuid).bind_all(columns);
    connection.execute(inserted.bind(document)).await?;
    for port in &node.ports {
        ports::insert(connection, node, port).await?;
    }
    write_keys(connection, node).await
}

/// Writes what a node is searched for by and may have several of, as far as it has changed.
async fn write_keys(connection: &mut impl Connection, node: &Node) -> Outcome<()> {
    let rows = connection.fetch(Statement::new(sql::KEYS_OF_NODE).bind(node.uuid)).await?;
    let stored = rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
    let stored = stored.collect::<Outcome<HashSet<_>>>()?;
    let keys: HashSet<_> = keys_of(node).collect();
    let changes = keys.difference(&stored).map(|key| (sql::INSERT_KEY, key));
    for (statement, (kind, value)) in
        changes.chain(stored.difference(&keys).map(|key| (sql::DELETE_KEY, key)))
    {
        let changed = Statement::new(statement).bind(node.uuid).bind(kind.clone()).bind(value.clone());
        connection.execute(changed).await?;
    }
    Ok(())
}

/// What a node is searched for by and may have several of.
fn keys_of(node: &Node) -> impl Iterator<Item = (String, String)> {
    let traits = node.traits.iter().map(|name| ("trait".to_owned(), name.clone()));
    traits.chain(bmc_addresses::noted(node).map(|address| ("bmc_address".to_owned(), address.to_string())))
}

/// Writes what changed of a node. The row that is guarded by the epoch comes first: when it is refused, nothing else
/// is tried, and no one else writes what belongs to the node until the transaction ends.
pub async fn write(connection: &mut impl Connection, lease: &Lease, change: &Change<'_>) -> Outcome<()> {
    let (columns, document) = split(change.node, NODE);
    let updated = Statement::new(sql::UPDATE_NODE).bind(lease.node).bind_all(columns).bind(lease.epoch);
    let guarded = leases::guarded(connection, lease, updated).await;
    guarded.map_err(|failure| taken(failure, change.node))?;
    let updated = Statement::new(sql::UPDATE_DOCUMENT).bind(lease.node).bind(document);
    if connection.execute(updated).await? > 0 {
        write_keys(connection, change.node).await?;
    }
    ports::write(connection, change.node).await?;
    allocations::end(connection, lease.node, change.node.allocation_uuid).await?;
    write_session(connection, lease.node, change.session).await?;
    write_config_drive(connection, lease.node, change.config_drive).await?;
    write_order(connection, lease.node, change.order).await?;
    write_inspection(connection, lease.node, change.inspection).await?;
    certificates::write(connection, lease.node, change.certificates).await?;
    boot_traces::write(connection, lease.node, change.boot_trace).await?;
    diagnosis::write(connection, lease.node, change.diagnosis).await?;
    history::add(connection, lease.node, change.history).await?;
    if change.ends_lease {
        connection.execute(leases::release(lease)).await?;
    }
    Ok(())
}

async fn write_session(
    connection: &mut impl Connection,
    node: Uuid,
    change: SessionChange<'_>,
) -> Outcome<()> {
    let statement = match change {
        SessionChange::Keep => return Ok(()),
        SessionChange::Learned(session) => {
            let (_, document) = split(session, SESSION);
            Statement::new(sql::UPDATE_SESSION_DOCUMENT).bind(node).bind(document)
        }
        SessionChange::Replace(session) => {
            let (columns, document) = split(session, SESSION);
            Statement::new(sql::REPLACE_SESSION).bind(node).bind_all(columns).bind(document)
        }
    };
    connection.execute(statement).await?;
    Ok(())
}

async fn write_config_drive(
    connection: &mut impl Connection,
    node: Uuid,
    change: ConfigDrive<'_>,
) -> Outcome<()> {
    if matches!(change, ConfigDrive::Keep) {
        return Ok(());
    }
    connection.execute(Statement::new(sql::DELETE_CONFIG_DRIVE).bind(node)).await?;
    if let ConfigDrive::Put(content) = change {
        connection.execute(Statement::new(sql::INSERT_CONFIG_DRIVE).bind(node).bind(content)).await?;
    }
    Ok(())
}

async fn write_order(connection: &mut impl Connection, node: Uuid, change: OrderChange) -> Outcome<()> {
    if matches!(change, OrderChange::Keep) {
        return Ok(());
    }
    connection.execute(Statement::new(sql::DELETE_ORDER).bind(node)).await?;
    if let OrderChange::Put(order) = change {
        let inserted = Statement::new(sql::INSERT_ORDER).bind(node).bind(order.verb.as_str());
        connection.execute(inserted.bind(order.ordered_at).bind(order.attempts)).await?;
    }
    Ok(())
}

async fn write_inspection(
    connection: &mut impl Connection,
    node: Uuid,
    change: InspectionChange<'_>,
) -> Outcome<()> {
    let (statement, data) = match change {
        InspectionChange::Keep => return Ok(()),
        InspectionChange::Receive(data) => (sql::RECEIVE_INSPECTION, data),
        InspectionChange::Put(data) => (sql::PUT_INSPECTION, data),
    };
    connection.execute(Statement::new(statement).bind(node).bind(serde_json::to_string(data)?)).await?;
    Ok(())
}

/// Forgets a node. What belongs to it goes with it.
pub async fn delete(connection: &mut impl Connection, lease: &Lease) -> Outcome<()> {
    leases::guarded(connection, lease, leases::of(sql::DELETE_NODE, lease)).await
}

/// Issues a token, if nothing happened to the node since it was seen.
pub async fn issue_token(
    connection: &mut impl Connection,
    seen: &Record,
    token: &str,
    now: OffsetDateTime,
) -> Outcome<bool> {
    let passed = Statement::new(sql::PASS).bind(seen.node.uuid).bind(seen.epoch).bind(now);
    if connection.execute(passed).await? == 0 {
        return Ok(false);
    }
    let issued = Statement::new(sql::ISSUE_TOKEN).bind(seen.node.uuid).bind(token);
    Ok(connection.execute(issued).await? == 1)
}

/// Writes down what an agent said.
pub fn hear(node: Uuid, heard: &AgentSession) -> Statement {
    let (columns, _) = split(heard, SESSION);
    Statement::new(sql::HEAR).bind(node).bind_all(columns)
}

/// UUIDs, names and instances belong to one node.
fn taken(failure: Failure, node: &Node) -> Failure {
    taken_or(failure, node.uuid, |constraint| match (constraint, node.instance_uuid.get()) {
        (Constraint::NodeInstance, Some(instance)) => format!("a node with instance {instance}"),
        _ => format!("a node with the name {:?}", node.label()),
    })
}
