//! Reads and writes allocations.

use crate::records::{Allocation, AllocationState};
use crate::store::AllocationSelection;
use crate::store::sql::constraints::taken_or;
use crate::store::sql::statement::{Connection, Reader, Statement};
use crate::store::sql::{Failure, Outcome, statements as sql};
use uuid::Uuid;

/// The allocation with this name or identity.
pub async fn one(readers: &mut impl Reader, id: &str) -> Outcome<Option<Allocation>> {
    readers.document(Statement::new(sql::ALLOCATION).bind(id)).await
}

/// Selected allocations, by their identity.
pub async fn selected(
    readers: &mut impl Reader,
    selection: &AllocationSelection,
) -> Outcome<Vec<Allocation>> {
    readers.documents(Statement::composed(sql::allocations(selection))).await
}

/// Adds an allocation.
pub async fn insert(connection: &mut impl Connection, allocation: &Allocation) -> Outcome<()> {
    let inserted = connection.execute(columns(sql::INSERT_ALLOCATION, allocation)?).await;
    inserted.map_err(|failure| taken(failure, allocation))?;
    Ok(())
}

/// Writes an allocation that was in a state, and returns whether it was.
pub async fn update(
    connection: &mut impl Connection,
    allocation: &Allocation,
    was: AllocationState,
) -> Outcome<bool> {
    let updated = columns(sql::UPDATE_ALLOCATION, allocation)?.bind(was.as_str());
    let updated = connection.execute(updated).await.map_err(|failure| taken(failure, allocation))?;
    Ok(updated == 1)
}

/// Forgets an allocation.
pub async fn delete(connection: &mut impl Connection, uuid: Uuid) -> Outcome<()> {
    connection.execute(Statement::new(sql::DELETE_ALLOCATION).bind(uuid)).await?;
    Ok(())
}

/// Forgets the allocations that a node had, but for the one that it has.
pub async fn end(connection: &mut impl Connection, node: Uuid, but: Option<Uuid>) -> Outcome<()> {
    let kept = but.map(|uuid| uuid.to_string()).unwrap_or_default();
    connection.execute(Statement::new(sql::END_ALLOCATIONS).bind(node).bind(kept)).await?;
    Ok(())
}

fn columns(statement: &'static str, allocation: &Allocation) -> Outcome<Statement> {
    Ok(Statement::new(statement)
        .bind(allocation.uuid)
        .bind(allocation.name.clone())
        .bind(allocation.state.as_str())
        .bind(allocation.node_uuid)
        .bind(allocation.resource_class.clone())
        .bind(allocation.owner.clone())
        .bind(serde_json::to_string(allocation)?))
}

fn taken(failure: Failure, allocation: &Allocation) -> Failure {
    let name = allocation.name.as_deref().unwrap_or_default();
    taken_or(failure, allocation.uuid, |_| format!("an allocation with the name {name:?}"))
}
