//! Reads records. None of this takes a lock.

use crate::records::{PendingOrder, Verb};
use crate::store::columns::{Column, SESSION, join, micros, time_of, value};
use crate::store::selection::{Kind, NODE, NodeColumn};
use crate::store::sqlite::{Outcome, bind};
use crate::store::{
    Documents, Held, Outline, OwnedPort, PortSelection, Record, Revision, Selection, statements,
};
use farrier_conductor::model::{AgentSession, InspectionData, MacAddress, Node, Port, ProvisionState};
use serde_json::{Value, json};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, ColumnIndex, Row, Sqlite, SqliteExecutor};
use std::net::IpAddr;
use time::OffsetDateTime;
use uuid::Uuid;

/// The record with this identity.
pub(super) async fn record(executor: impl SqliteExecutor<'_>, uuid: Uuid) -> Outcome<Option<Record>> {
    let rows = sqlx::query(statements::RECORD).bind(uuid.to_string()).fetch_all(executor).await?;
    of_nodes(&rows).next().map(record_of).transpose()
}

/// The record with this name.
pub(super) async fn record_by_name(readers: &SqlitePool, name: &str) -> Outcome<Option<Record>> {
    let rows = sqlx::query(statements::RECORD_BY_NAME).bind(name).fetch_all(readers).await?;
    of_nodes(&rows).next().map(record_of).transpose()
}

/// Selected records that can be read, in their order.
pub(super) async fn records(readers: &SqlitePool, selection: &Selection) -> Outcome<Vec<Record>> {
    Ok(readable(&rows(readers, statements::records(selection)).await?))
}

/// What columns of selected nodes say, in their order.
pub(super) async fn outlines(readers: &SqlitePool, selection: &Selection) -> Outcome<Vec<Outline>> {
    let found = rows(readers, statements::outlines(selection)).await?;
    found.iter().map(|row| outline_of(row, &selection.columns)).collect()
}

/// Selected nodes as they are kept, in their order.
pub(super) async fn documents(
    readers: &SqlitePool,
    selection: &Selection,
) -> Outcome<Vec<(Outline, Documents)>> {
    let found = rows(readers, statements::documents(selection)).await?;
    let columns = &selection.columns;
    let read = |row| Ok((outline_of(row, columns)?, documents_of(row, OUTLINE + columns.len())?));
    found.iter().map(read).collect()
}

/// Columns of an outline before those that are asked for: the identity, the holder of the lease, and when it expires.
const OUTLINE: usize = 3;

fn outline_of(row: &SqliteRow, columns: &[NodeColumn]) -> Outcome<Outline> {
    let uuid: &str = row.try_get(0)?;
    let reservation: Option<&str> = row.try_get(1)?;
    let lease_expires_at: Option<i64> = row.try_get(2)?;
    let mut fields = Vec::with_capacity(columns.len() + OUTLINE);
    fields.extend([("uuid", uuid.into()), ("reservation", reservation.into())]);
    for (at, NodeColumn { name, kind }) in columns.iter().enumerate() {
        fields.push((*name, value(column_at(row, OUTLINE + at, *kind)?)));
    }
    Ok(Outline { uuid: uuid.parse()?, fields, lease_expires_at: lease_expires_at.and_then(time_of) })
}

/// The documents that a row has from a column on.
fn documents_of(row: &SqliteRow, first: usize) -> Outcome<Documents> {
    let session = SESSION.iter().enumerate();
    let session =
        session.map(|(at, (name, kind))| Ok((*name, value(column_at(row, first + 2 + at, *kind)?))));
    Ok(Documents {
        node: row.try_get(first)?,
        session: row.try_get(first + 1)?,
        session_columns: session.collect::<Outcome<_>>()?,
    })
}

pub(super) async fn rows(
    readers: &SqlitePool,
    (text, values): statements::Selected,
) -> Outcome<Vec<SqliteRow>> {
    Ok(bind(sqlx::query(AssertSqlSafe(text)), values).fetch_all(readers).await?)
}

/// Selected ports, by their identity.
pub(super) async fn ports(readers: &SqlitePool, selection: &PortSelection) -> Outcome<Vec<OwnedPort>> {
    let found = rows(readers, statements::ports(selection)).await?;
    found.iter().filter_map(|row| owned_port(row).transpose()).collect()
}

/// The port with this name or identity.
pub(super) async fn port(readers: &SqlitePool, id: &str) -> Outcome<Option<OwnedPort>> {
    let row = sqlx::query(statements::PORT).bind(id.to_owned()).fetch_optional(readers).await?;
    Ok(row.as_ref().map(owned_port).transpose()?.flatten())
}

/// The ports of a node, in their order.
pub(super) async fn ports_of(executor: impl SqliteExecutor<'_>, node: &str) -> Outcome<Vec<Port>> {
    let rows = sqlx::query(statements::PORTS_OF_NODE).bind(node.to_owned()).fetch_all(executor).await?;
    rows.iter().filter_map(|row| port_of(row).transpose()).collect()
}

fn owned_port(row: &SqliteRow) -> Outcome<Option<OwnedPort>> {
    let node = row.try_get::<&str, _>("node")?.parse()?;
    Ok(port_of(row)?.map(|port| OwnedPort { node, port }))
}

/// The port of a row, if it has one that can be read.
fn port_of(row: &SqliteRow) -> Outcome<Option<Port>> {
    let Some(document) = row.try_get::<Option<&str>, _>("port_document")? else { return Ok(None) };
    let columns = [
        ("address", Column::Text(row.try_get("port_address")?)),
        ("name", Column::Text(row.try_get("port_name")?)),
        ("created_at", Column::Time(row.try_get("port_created_at")?)),
        ("updated_at", Column::Time(row.try_get("port_updated_at")?)),
    ];
    let port = join(document, columns, [("uuid", json!(row.try_get::<&str, _>("port_uuid")?))]);
    Ok(port.inspect_err(|error| tracing::error!("a port cannot be read and is left out: {error}")).ok())
}

/// The records that can be read: one that cannot stops nobody (lesson F42).
fn readable(rows: &[SqliteRow]) -> Vec<Record> {
    let read = |rows: &[SqliteRow]| match record_of(rows) {
        Ok(record) => Some(record),
        Err(failure) => {
            let uuid = rows[0].try_get::<&str, _>("uuid").unwrap_or("?");
            tracing::error!(node = uuid, "the record of a node cannot be read: {failure}");
            None
        }
    };
    of_nodes(rows).filter_map(read).collect()
}

/// The identities of selected nodes, in their order.
pub(super) async fn identities(readers: &SqlitePool, selection: &Selection) -> Outcome<Vec<Uuid>> {
    let found = rows(readers, statements::identities(selection)).await?;
    found.iter().map(|row| Ok(row.try_get::<&str, _>(0)?.parse()?)).collect()
}

/// What tells whether a record is as it was.
pub(super) async fn revision(readers: &SqlitePool, uuid: Uuid) -> Outcome<Option<Revision>> {
    let row = sqlx::query(statements::REVISION).bind(uuid.to_string()).fetch_optional(readers).await?;
    let Some(row) = row else { return Ok(None) };
    let lease_expires_at: Option<i64> = row.try_get("lease_expires_at")?;
    Ok(Some(Revision {
        node: row.try_get("node_version")?,
        session: row.try_get("session_version")?,
        epoch: row.try_get("lease_epoch")?,
        reservation: row.try_get("reservation")?,
        lease_expires_at: lease_expires_at.and_then(time_of),
    }))
}

/// How many nodes are in each shard.
pub(super) async fn shards(readers: &SqlitePool) -> Outcome<Vec<(Option<String>, u64)>> {
    let rows = sqlx::query(statements::SHARDS).fetch_all(readers).await?;
    let read = |row: &SqliteRow| {
        let counted: i64 = row.try_get("counted")?;
        Ok((row.try_get("shard")?, counted.cast_unsigned()))
    };
    rows.iter().map(read).collect()
}

/// The nodes that wait for a ramdisk and whose BMC has any of these addresses, each once.
pub(super) async fn at_bmc(readers: &SqlitePool, addresses: &[IpAddr]) -> Outcome<Vec<Uuid>> {
    let mut found: Vec<Uuid> = Vec::new();
    for address in addresses {
        let at = sqlx::query_scalar::<Sqlite, String>(statements::AT_BMC).bind(address.to_string());
        for node in at.fetch_all(readers).await? {
            found.push(node.parse()?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// How many nodes are in each provision state.
pub(super) async fn provision_states(readers: &SqlitePool) -> Outcome<Vec<(ProvisionState, u64)>> {
    let rows = sqlx::query(statements::PROVISION_STATES).fetch_all(readers).await?;
    let read = |row: &SqliteRow| -> Outcome<_> {
        let counted: i64 = row.try_get("counted")?;
        Ok((ProvisionState::named(row.try_get("provision_state")?), counted.cast_unsigned()))
    };
    let rows = rows.iter().map(read).collect::<Outcome<Vec<_>>>()?;
    Ok(rows.into_iter().filter_map(|(state, counted)| Some((state?, counted))).collect())
}

/// Every lease that has not ended.
pub(super) async fn held(readers: &SqlitePool) -> Outcome<Vec<Held>> {
    let rows = sqlx::query(statements::HELD).fetch_all(readers).await?;
    let read = |row: &SqliteRow| -> Outcome<Held> {
        Ok(Held {
            node: row.try_get::<&str, _>("uuid")?.parse()?,
            holder: row.try_get("reservation")?,
            epoch: row.try_get("lease_epoch")?,
            expires_at: time_of(row.try_get("lease_expires_at")?).unwrap_or(OffsetDateTime::UNIX_EPOCH),
        })
    };
    rows.iter().map(read).collect()
}

/// The nodes with any of these addresses, each once.
pub(super) async fn owners(readers: &SqlitePool, addresses: &[MacAddress]) -> Outcome<Vec<Uuid>> {
    let mut owners = Vec::new();
    for address in addresses {
        let owner = sqlx::query_scalar::<Sqlite, String>(statements::OWNER).bind(address.as_str());
        if let Some(owner) = owner.fetch_optional(readers).await? {
            owners.push(owner.parse()?);
        }
    }
    owners.sort_unstable();
    owners.dedup();
    Ok(owners)
}

/// The nodes that nobody attends to.
pub(super) async fn unattended(readers: &SqlitePool, now: OffsetDateTime) -> Outcome<Vec<Uuid>> {
    let found = sqlx::query_scalar::<Sqlite, String>(statements::UNATTENDED).bind(micros(now));
    let found = found.fetch_all(readers).await?;
    found.iter().map(|uuid| Ok(uuid.parse()?)).collect()
}

/// The config drive of a node.
pub(super) async fn config_drive(readers: &SqlitePool, uuid: Uuid) -> Outcome<Option<String>> {
    let content = sqlx::query_scalar(statements::CONFIG_DRIVE).bind(uuid.to_string());
    Ok(content.fetch_optional(readers).await?)
}

/// What the last inspection of a node told.
pub(super) async fn inspection(readers: &SqlitePool, uuid: Uuid) -> Outcome<Option<InspectionData>> {
    document(readers, statements::INSPECTION, uuid).await
}

/// What the ramdisk of a node posted.
pub(super) async fn received_inspection(readers: &SqlitePool, uuid: Uuid) -> Outcome<Option<InspectionData>> {
    document(readers, statements::RECEIVED_INSPECTION, uuid).await
}

async fn document(
    readers: &SqlitePool,
    statement: &'static str,
    uuid: Uuid,
) -> Outcome<Option<InspectionData>> {
    let found = sqlx::query_scalar::<Sqlite, Option<String>>(statement).bind(uuid.to_string());
    let document = found.fetch_optional(readers).await?.flatten();
    Ok(document.map(|document| serde_json::from_str(&document)).transpose()?)
}

/// The rows of each node: one for each of its ports, or one.
fn of_nodes(rows: &[SqliteRow]) -> impl Iterator<Item = &[SqliteRow]> {
    let uuid = |row: &SqliteRow| row.try_get::<String, _>("uuid").ok();
    rows.chunk_by(move |one, other| uuid(one) == uuid(other))
}

fn record_of(rows: &[SqliteRow]) -> Outcome<Record> {
    let row = &rows[0];
    let mut ports = Vec::new();
    for row in rows {
        ports.extend(port_of(row)?);
    }
    let reservation: Option<String> = row.try_get("reservation")?;
    let uuid: String = row.try_get("uuid")?;
    let elsewhere =
        [("uuid", json!(uuid)), ("reservation", json!(reservation)), ("ports", Value::Array(Vec::new()))];
    let node: Node = join(row.try_get("node_document")?, columns(row, NODE)?, elsewhere)?;
    let session: AgentSession = join(row.try_get("session_document")?, columns(row, SESSION)?, [])?;
    let lease_expires_at: Option<i64> = row.try_get("lease_expires_at")?;
    Ok(Record {
        node: Node { ports, ..node },
        session,
        order: order_of(row)?,
        epoch: row.try_get("lease_epoch")?,
        lease_expires_at: lease_expires_at.and_then(time_of),
    })
}

fn order_of(row: &SqliteRow) -> Outcome<Option<PendingOrder>> {
    let Some(verb) = row.try_get::<Option<&str>, _>("verb")?.and_then(Verb::named) else { return Ok(None) };
    let ordered_at = time_of(row.try_get("ordered_at")?).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    Ok(Some(PendingOrder { verb, ordered_at, attempts: row.try_get("attempts")? }))
}

fn columns(row: &SqliteRow, names: &[(&'static str, Kind)]) -> Outcome<Vec<(&'static str, Column)>> {
    names.iter().map(|(name, kind)| Ok((*name, column_at(row, *name, *kind)?))).collect()
}

fn column_at(row: &SqliteRow, at: impl ColumnIndex<SqliteRow>, kind: Kind) -> Outcome<Column> {
    Ok(match kind {
        Kind::Text => Column::Text(row.try_get(at)?),
        Kind::Time => Column::Time(row.try_get(at)?),
        Kind::Flag => Column::Flag(row.try_get(at)?),
    })
}
