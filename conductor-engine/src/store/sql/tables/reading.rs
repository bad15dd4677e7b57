//! Reads nodes. None of this takes a lock.

use crate::records::{PendingOrder, Verb};
use crate::store::columns::{Column, SESSION, join, value};
use crate::store::selection::{Kind, NODE, NodeColumn};
use crate::store::sql::statement::{Reader, Row, Statement};
use crate::store::sql::statements::Dialect;
use crate::store::sql::tables::ports;
use crate::store::sql::{Outcome, statements as sql};
use crate::store::{Documents, Outline, Record, Revision, Selection};
use farrier_conductor::model::{AgentSession, Node, ProvisionState};
use serde_json::{Value, json};
use std::net::IpAddr;
use uuid::Uuid;

/// The record with this identity.
pub async fn record(readers: &mut impl Reader, uuid: Uuid) -> Outcome<Option<Record>> {
    let rows = readers.fetch(Statement::new(sql::RECORD).bind(uuid)).await?;
    of_nodes(&rows).next().map(record_of).transpose()
}

/// The record with this name.
pub async fn record_by_name(readers: &mut impl Reader, name: &str) -> Outcome<Option<Record>> {
    let rows = readers.fetch(Statement::new(sql::RECORD_BY_NAME).bind(name)).await?;
    of_nodes(&rows).next().map(record_of).transpose()
}

/// Selected records that can be read, in their order.
pub async fn records(
    readers: &mut impl Reader,
    dialect: Dialect,
    selection: &Selection,
) -> Outcome<Vec<Record>> {
    Ok(readable(&readers.fetch(Statement::composed(sql::records(dialect, selection))).await?))
}

/// What columns of selected nodes say, in their order.
pub async fn outlines(
    readers: &mut impl Reader,
    dialect: Dialect,
    selection: &Selection,
) -> Outcome<Vec<Outline>> {
    let found = readers.fetch(Statement::composed(sql::outlines(dialect, selection))).await?;
    found.iter().map(|row| outline_of(row, &selection.columns)).collect()
}

/// Selected nodes as they are kept, in their order.
pub async fn documents(
    readers: &mut impl Reader,
    dialect: Dialect,
    selection: &Selection,
) -> Outcome<Vec<(Outline, Documents)>> {
    let found = readers.fetch(Statement::composed(sql::documents(dialect, selection))).await?;
    let columns = &selection.columns;
    let read = |row| Ok((outline_of(row, columns)?, documents_of(row, OUTLINE + columns.len())?));
    found.iter().map(read).collect()
}

/// Columns of an outline before those that are asked for: the identity, the holder of the lease, and when it expires.
const OUTLINE: usize = 3;

fn outline_of(row: &impl Row, columns: &[NodeColumn]) -> Outcome<Outline> {
    let uuid = row.text(0)?;
    let mut fields = Vec::with_capacity(columns.len() + OUTLINE);
    fields.extend([("uuid", uuid.into()), ("reservation", row.optional_text(1)?.into())]);
    for (at, NodeColumn { name, kind }) in columns.iter().enumerate() {
        fields.push((*name, value(row.column(OUTLINE + at, *kind)?)));
    }
    Ok(Outline { uuid: uuid.parse()?, fields, lease_expires_at: row.optional_time(2)? })
}

/// The documents that a row has from a column on.
fn documents_of(row: &impl Row, first: usize) -> Outcome<Documents> {
    let session = SESSION.iter().enumerate();
    let session = session.map(|(at, (name, kind))| Ok((*name, value(row.column(first + 2 + at, *kind)?))));
    Ok(Documents {
        node: row.text(first)?.to_owned(),
        session: row.text(first + 1)?.to_owned(),
        session_columns: session.collect::<Outcome<_>>()?,
    })
}

/// The records that can be read: one that cannot stops nobody (lesson F42).
fn readable<R: Row>(rows: &[R]) -> Vec<Record> {
    let read = |rows: &[R]| match record_of(rows) {
        Ok(record) => Some(record),
        Err(failure) => {
            let uuid = rows[0].text("uuid").unwrap_or("?");
            tracing::error!(node = uuid, "the record of a node cannot be read: {failure}");
            None
        }
    };
    of_nodes(rows).filter_map(read).collect()
}

/// The identities of selected nodes, in their order.
pub async fn identities(
    readers: &mut impl Reader,
    dialect: Dialect,
    selection: &Selection,
) -> Outcome<Vec<Uuid>> {
    readers.uuids(Statement::composed(sql::identities(dialect, selection))).await
}

/// The revision of a record.
pub async fn revision(readers: &mut impl Reader, uuid: Uuid) -> Outcome<Option<Revision>> {
    let row = readers.fetch_one(Statement::new(sql::REVISION).bind(uuid)).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Revision {
        node: row.number("node_version")?,
        session: row.number("session_version")?,
        epoch: row.number("lease_epoch")?,
        reservation: row.optional_text("reservation")?.map(str::to_owned),
        lease_expires_at: row.optional_time("lease_expires_at")?,
    }))
}

/// How many nodes are in each shard.
pub async fn shards(readers: &mut impl Reader) -> Outcome<Vec<(Option<String>, u64)>> {
    counted(readers, sql::SHARDS).await
}

/// How many nodes are in each provision state.
pub async fn provision_states(readers: &mut impl Reader) -> Outcome<Vec<(ProvisionState, u64)>> {
    let counted = counted(readers, sql::PROVISION_STATES).await?.into_iter();
    let named = |state: Option<String>| ProvisionState::named(&state.unwrap_or_default());
    Ok(counted.filter_map(|(state, counted)| Some((named(state)?, counted))).collect())
}

/// Texts, and how many nodes have each.
async fn counted(readers: &mut impl Reader, statement: &'static str) -> Outcome<Vec<(Option<String>, u64)>> {
    let rows = readers.fetch(Statement::new(statement)).await?;
    let read = |row: &_| text_and_count(row);
    rows.iter().map(read).collect()
}

fn text_and_count(row: &impl Row) -> Outcome<(Option<String>, u64)> {
    Ok((row.optional_text(0)?.map(str::to_owned), row.number(1)?.cast_unsigned()))
}

/// The nodes that wait for a ramdisk and whose BMC has any of these addresses, each once.
pub async fn at_bmc(readers: &mut impl Reader, addresses: &[IpAddr]) -> Outcome<Vec<Uuid>> {
    let mut found: Vec<Uuid> = Vec::new();
    for address in addresses {
        found.extend(readers.uuids(Statement::new(sql::AT_BMC).bind(address.to_string())).await?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The config drive of a node.
pub async fn config_drive(readers: &mut impl Reader, uuid: Uuid) -> Outcome<Option<String>> {
    let row = readers.fetch_one(Statement::new(sql::CONFIG_DRIVE).bind(uuid)).await?;
    row.map(|row| Ok(row.text(0)?.to_owned())).transpose()
}

/// The rows of each node: one for each of its ports, or one.
fn of_nodes<R: Row>(rows: &[R]) -> impl Iterator<Item = &[R]> {
    rows.chunk_by(
        |one, other| matches!((one.text("uuid"), other.text("uuid")), (Ok(one), Ok(other)) if one == other),
    )
}

fn record_of<R: Row>(rows: &[R]) -> Outcome<Record> {
    let row = &rows[0];
    let mut ports = Vec::new();
    for row in rows {
        ports.extend(ports::of_row(row)?);
    }
    let reservation = row.optional_text("reservation")?;
    let uuid = row.text("uuid")?;
    let elsewhere =
        [("uuid", json!(uuid)), ("reservation", json!(reservation)), ("ports", Value::Array(Vec::new()))];
    let node: Node = join(row.text("node_document")?, columns(row, NODE)?, elsewhere)?;
    let session: AgentSession = join(row.text("session_document")?, columns(row, SESSION)?, [])?;
    Ok(Record {
        node: Node { ports, ..node },
        session,
        order: order_of(row)?,
        epoch: row.number("lease_epoch")?,
        lease_expires_at: row.optional_time("lease_expires_at")?,
    })
}

fn order_of(row: &impl Row) -> Outcome<Option<PendingOrder>> {
    let Some(verb) = row.optional_text("verb")?.and_then(Verb::named) else { return Ok(None) };
    Ok(Some(PendingOrder { verb, ordered_at: row.time("ordered_at")?, attempts: row.number("attempts")? }))
}

fn columns(row: &impl Row, names: &[(&'static str, Kind)]) -> Outcome<Vec<(&'static str, Column)>> {
    names.iter().map(|(name, kind)| Ok((*name, row.column(*name, *kind)?))).collect()
}
