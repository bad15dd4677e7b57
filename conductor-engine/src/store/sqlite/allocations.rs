//! Reads and writes allocations.

use crate::records::{Allocation, AllocationState};
use crate::store::AllocationSelection;
use crate::store::sqlite::writing::taken_or;
use crate::store::sqlite::{Outcome, Statement, reading};
use crate::store::statements as sql;
use sqlx::sqlite::SqlitePool;
use sqlx::{Row, Sqlite, SqliteConnection};
use uuid::Uuid;

/// The allocation with this name or identity.
pub(super) async fn one(readers: &SqlitePool, id: &str) -> Outcome<Option<Allocation>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::ALLOCATION).bind(id.to_owned());
    Ok(found.fetch_optional(readers).await?.map(|document| serde_json::from_str(&document)).transpose()?)
}

/// Selected allocations, by their identity.
pub(super) async fn selected(
    readers: &SqlitePool,
    selection: &AllocationSelection,
) -> Outcome<Vec<Allocation>> {
    let rows = reading::rows(readers, sql::allocations(selection)).await?;
    rows.iter().map(|row| Ok(serde_json::from_str(row.try_get("document")?)?)).collect()
}

/// Adds an allocation.
pub(super) async fn insert(connection: &mut SqliteConnection, allocation: &Allocation) -> Outcome<()> {
    let inserted = columns(sql::INSERT_ALLOCATION, allocation)?.execute(connection).await;
    inserted.map_err(|error| taken(error, allocation))?;
    Ok(())
}

/// Writes an allocation that was in a state, and tells whether it was.
pub(super) async fn update(
    connection: &mut SqliteConnection,
    allocation: &Allocation,
    was: AllocationState,
) -> Outcome<bool> {
    let updated = columns(sql::UPDATE_ALLOCATION, allocation)?.bind(was.as_str()).execute(connection).await;
    Ok(updated.map_err(|error| taken(error, allocation))?.rows_affected() == 1)
}

/// Forgets an allocation.
pub(super) async fn delete(connection: &mut SqliteConnection, uuid: Uuid) -> Outcome<()> {
    sqlx::query(sql::DELETE_ALLOCATION).bind(uuid.to_string()).execute(connection).await?;
    Ok(())
}

/// Forgets the allocations that a node had, but for the one that it has.
pub(super) async fn end(connection: &mut SqliteConnection, node: Uuid, but: Option<Uuid>) -> Outcome<()> {
    let kept = but.map(|uuid| uuid.to_string()).unwrap_or_default();
    sqlx::query(sql::END_ALLOCATIONS).bind(node.to_string()).bind(kept).execute(connection).await?;
    Ok(())
}

fn columns(statement: &'static str, allocation: &Allocation) -> Outcome<Statement> {
    Ok(sqlx::query(statement)
        .bind(allocation.uuid.to_string())
        .bind(allocation.name.clone())
        .bind(allocation.state.as_str())
        .bind(allocation.node_uuid.map(|uuid| uuid.to_string()))
        .bind(allocation.resource_class.clone())
        .bind(allocation.owner.clone())
        .bind(serde_json::to_string(allocation)?))
}

fn taken(error: sqlx::Error, allocation: &Allocation) -> super::Failure {
    let name = allocation.name.as_deref().unwrap_or_default();
    taken_or(error, allocation.uuid, |_| format!("an allocation with the name {name:?}"))
}
