//! The ports of nodes.

use crate::store::columns::{Column, PORT, join, split};
use crate::store::sql::constraints::{Constraint, taken_or};
use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::{Failure, Outcome, statements as sql};
use crate::store::{OwnedPort, PortSelection, StoreError};
use farrier_conductor::model::{MacAddress, Node, Port};
use serde_json::json;
use std::collections::HashSet;
use uuid::Uuid;

/// Selected ports, by their identity.
pub async fn selected(readers: &mut impl Reader, selection: &PortSelection) -> Outcome<Vec<OwnedPort>> {
    let found = readers.fetch(Statement::composed(sql::ports(selection))).await?;
    found.iter().filter_map(|row| owned(row).transpose()).collect()
}

/// The port with this name or identity.
pub async fn one(readers: &mut impl Reader, id: &str) -> Outcome<Option<OwnedPort>> {
    let row = readers.fetch_one(Statement::new(sql::PORT).bind(id)).await?;
    Ok(row.as_ref().map(owned).transpose()?.flatten())
}

/// The nodes with any of these addresses, each once.
pub async fn owners(readers: &mut impl Reader, addresses: &[MacAddress]) -> Outcome<Vec<Uuid>> {
    let mut owners = Vec::new();
    for address in addresses {
        owners.extend(readers.uuids(Statement::new(sql::OWNER).bind(address.as_str())).await?);
    }
    owners.sort_unstable();
    owners.dedup();
    Ok(owners)
}

fn owned(row: &impl Row) -> Outcome<Option<OwnedPort>> {
    let node = row.uuid("node")?;
    Ok(of_row(row)?.map(|port| OwnedPort { node, port }))
}

/// The port of a row, if it has one that can be read.
pub fn of_row(row: &impl Row) -> Outcome<Option<Port>> {
    let Some(document) = row.optional_text("port_document")? else { return Ok(None) };
    let text = |name| Ok::<_, Failure>(Column::from(row.optional_text(name)?.map(str::to_owned)));
    let columns = [
        ("address", text("port_address")?),
        ("name", text("port_name")?),
        ("created_at", row.optional_number("port_created_at")?.into()),
        ("updated_at", row.optional_number("port_updated_at")?.into()),
    ];
    let port = join(document, columns, [("uuid", json!(row.text("port_uuid")?))]);
    Ok(port.inspect_err(|error| tracing::error!("a port cannot be read and is left out: {error}")).ok())
}

/// Adds a port to a node.
pub async fn insert(connection: &mut impl Connection, node: &Node, port: &Port) -> Outcome<()> {
    let (columns, document) =
        split(&Port { created_at: port.created_at.or(Some(node.updated_at)), ..port.clone() }, PORT);
    let inserted = Statement::new(sql::INSERT_PORT).bind(port.uuid).bind_all(columns);
    let inserted = inserted.bind(document).bind(node.uuid);
    connection.execute(inserted).await.map_err(|failure| taken(failure, port))?;
    Ok(())
}

/// Writes the ports that are new or have changed, and forgets those that are gone.
pub async fn write(connection: &mut impl Connection, node: &Node) -> Outcome<()> {
    let stored = connection.fetch(Statement::new(sql::PORTS_OF_NODE).bind(node.uuid)).await?;
    let stored = stored.iter().filter_map(|row| of_row(row).transpose()).collect::<Outcome<Vec<_>>>()?;
    let stays = |port: &Port| node.ports.iter().any(|other| other.uuid == port.uuid);
    check_each_once(&node.ports)?;
    for port in stored.iter().filter(|port| !stays(port)) {
        connection.execute(Statement::new(sql::DELETE_PORT).bind(port.uuid)).await?;
    }
    for port in &node.ports {
        match stored.iter().find(|other| other.uuid == port.uuid) {
            None => insert(connection, node, port).await?,
            Some(before) if is_as_before(port, before) => {}
            Some(_) => update(connection, port).await?,
        }
    }
    Ok(())
}

async fn update(connection: &mut impl Connection, port: &Port) -> Outcome<()> {
    let (mut columns, document) = split(port, PORT);
    // When it was written down first does not change.
    columns.pop();
    let updated = Statement::new(sql::UPDATE_PORT).bind(port.uuid).bind_all(columns).bind(document);
    connection.execute(updated).await.map_err(|failure| taken(failure, port))?;
    Ok(())
}

/// A second port with the UUID of the first one would be written over it.
fn check_each_once(ports: &[Port]) -> Result<(), StoreError> {
    let mut seen = HashSet::new();
    match ports.iter().find(|port| !seen.insert(port.uuid)) {
        Some(port) => Err(StoreError::Taken { what: format!("a port with UUID {}", port.uuid) }),
        None => Ok(()),
    }
}

fn is_as_before(port: &Port, before: &Port) -> bool {
    *port == Port { created_at: port.created_at, ..before.clone() }
}

/// UUIDs, addresses and names belong to one port.
fn taken(failure: Failure, port: &Port) -> Failure {
    taken_or(failure, port.uuid, |constraint| match (constraint, &port.name) {
        (Constraint::PortName, Some(name)) => format!("a port with the name {name:?}"),
        _ => format!("a port with MAC address {}", port.address),
    })
}
