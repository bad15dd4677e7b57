//! Reads records. None of this takes a lock.

use super::super::columns::{Column, Kind, NODE, SESSION, join, micros, time_of};
use super::super::{Held, Record, statements};
use super::Outcome;
use crate::model::{AgentSession, MacAddress, Node, Order, Port, Verb};
use serde_json::{Value, json};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, Sqlite, SqliteExecutor};
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

/// Every record that can be read, by name: one that cannot stops nobody (lesson F42).
pub(super) async fn records(readers: &SqlitePool) -> Outcome<Vec<Record>> {
    let rows = sqlx::query(statements::RECORDS).fetch_all(readers).await?;
    let read = |rows: &[SqliteRow]| match record_of(rows) {
        Ok(record) => Some(record),
        Err(failure) => {
            let name = rows[0].try_get::<&str, _>("name").unwrap_or("?");
            tracing::error!(node = name, "the record of a node cannot be read: {failure}");
            None
        }
    };
    Ok(of_nodes(&rows).filter_map(read).collect())
}

/// Every node.
pub(super) async fn identities(readers: &SqlitePool) -> Outcome<Vec<Uuid>> {
    let found = sqlx::query_scalar::<Sqlite, String>(statements::IDENTITIES).fetch_all(readers).await?;
    found.iter().map(|uuid| Ok(uuid.parse()?)).collect()
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

/// The rows of each node: one for each of its ports, or one.
fn of_nodes(rows: &[SqliteRow]) -> impl Iterator<Item = &[SqliteRow]> {
    let uuid = |row: &SqliteRow| row.try_get::<String, _>("uuid").ok();
    rows.chunk_by(move |one, other| uuid(one) == uuid(other))
}

fn record_of(rows: &[SqliteRow]) -> Outcome<Record> {
    let row = &rows[0];
    let mut ports = Vec::new();
    for row in rows {
        if let Some(document) = row.try_get::<Option<&str>, _>("port_document")? {
            match serde_json::from_str::<Port>(document) {
                Ok(port) => ports.push(port),
                Err(error) => tracing::error!("a port cannot be read and is left out: {error}"),
            }
        }
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

fn order_of(row: &SqliteRow) -> Outcome<Option<Order>> {
    let Some(verb) = row.try_get::<Option<&str>, _>("verb")?.and_then(Verb::named) else { return Ok(None) };
    let ordered_at = time_of(row.try_get("ordered_at")?).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    Ok(Some(Order { verb, ordered_at, attempts: row.try_get("attempts")? }))
}

fn columns(row: &SqliteRow, names: &[(&'static str, Kind)]) -> Outcome<Vec<(&'static str, Column)>> {
    let read = names.iter().map(|(name, kind)| {
        let column = match kind {
            Kind::Text => Column::Text(row.try_get(*name)?),
            Kind::Time => Column::Time(row.try_get(*name)?),
            Kind::Flag => Column::Flag(row.try_get(*name)?),
        };
        Ok((*name, column))
    });
    read.collect()
}
