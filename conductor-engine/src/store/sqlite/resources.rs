//! Reads and writes plain resources.

use crate::records::{Resource, ResourceKind};
use crate::store::ResourceSelection;
use crate::store::constraints::Constraint;
use crate::store::sqlite::writing::taken_or;
use crate::store::sqlite::{Outcome, Statement, reading};
use crate::store::statements as sql;
use sqlx::sqlite::SqlitePool;
use sqlx::{Row, Sqlite, SqliteConnection, SqliteExecutor};
use uuid::Uuid;

/// The one of a kind with this name or identity.
pub(super) async fn one(
    executor: impl SqliteExecutor<'_>,
    kind: ResourceKind,
    id: &str,
) -> Outcome<Option<Resource>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::RESOURCE).bind(kind.as_str()).bind(id.to_owned());
    Ok(found.fetch_optional(executor).await?.map(|document| serde_json::from_str(&document)).transpose()?)
}

/// Selected ones, by their identity.
pub(super) async fn selected(readers: &SqlitePool, selection: &ResourceSelection) -> Outcome<Vec<Resource>> {
    let rows = reading::rows(readers, sql::resources(selection)).await?;
    rows.iter().map(|row| Ok(serde_json::from_str(row.try_get("document")?)?)).collect()
}

/// Adds one.
pub(super) async fn insert(connection: &mut SqliteConnection, resource: &Resource) -> Outcome<()> {
    let statement = sqlx::query(sql::INSERT_RESOURCE).bind(resource.uuid.to_string());
    let inserted = columns(statement.bind(resource.kind.as_str()), resource)?.execute(connection).await;
    inserted.map_err(|error| taken(error, resource))?;
    Ok(())
}

/// Writes one, and tells whether it was as before. Its caller has the turn to write.
pub(super) async fn update(
    connection: &mut SqliteConnection,
    before: &Resource,
    after: &Resource,
) -> Outcome<bool> {
    let uuid = before.uuid.to_string();
    if one(&mut *connection, before.kind, &uuid).await?.as_ref() != Some(before) {
        return Ok(false);
    }
    let updated = columns(sqlx::query(sql::UPDATE_RESOURCE).bind(uuid), after)?.execute(connection).await;
    updated.map_err(|error| taken(error, after))?;
    Ok(true)
}

/// Forgets one.
pub(super) async fn delete(connection: &mut SqliteConnection, uuid: Uuid) -> Outcome<()> {
    sqlx::query(sql::DELETE_RESOURCE).bind(uuid.to_string()).execute(connection).await?;
    Ok(())
}

fn columns(statement: Statement, resource: &Resource) -> Outcome<Statement> {
    Ok(statement
        .bind(resource.name.clone())
        .bind(resource.node_uuid.map(|uuid| uuid.to_string()))
        .bind(resource.natural_key())
        .bind(serde_json::to_string(resource)?))
}

fn taken(error: sqlx::Error, resource: &Resource) -> super::Failure {
    taken_or(error, resource.uuid, |constraint| match (constraint, &resource.name) {
        (Constraint::ResourceName, Some(name)) => format!("a {} with the name {name:?}", resource.kind),
        _ => format!("a {} with {}", resource.kind, resource.natural_key().unwrap_or_default()),
    })
}
