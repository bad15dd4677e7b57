//! Reads and writes plain resources.

use crate::records::{Resource, ResourceKind};
use crate::store::ResourceSelection;
use crate::store::sql::constraints::{Constraint, taken_or};
use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::{Failure, Outcome, statements as sql};
use uuid::Uuid;

/// The one of a kind with this name or identity.
pub async fn one(readers: &mut impl Reader, kind: ResourceKind, id: &str) -> Outcome<Option<Resource>> {
    readers.document(Statement::new(sql::RESOURCE).bind(kind.as_str()).bind(id)).await
}

/// Selected ones, by their identity.
pub async fn selected(readers: &mut impl Reader, selection: &ResourceSelection) -> Outcome<Vec<Resource>> {
    readers.documents(Statement::composed(sql::resources(selection))).await
}

/// Adds one.
pub async fn insert(connection: &mut impl Connection, resource: &Resource) -> Outcome<()> {
    let statement = Statement::new(sql::INSERT_RESOURCE).bind(resource.uuid).bind(resource.kind.as_str());
    let inserted = connection.execute(columns(statement, resource)?).await;
    inserted.map_err(|failure| taken(failure, resource))?;
    Ok(())
}

/// Writes one that is as before, and returns whether it was.
pub async fn update(connection: &mut impl Connection, before: &Resource, after: &Resource) -> Outcome<bool> {
    let known = Statement::new(sql::RESOURCE).bind(before.kind.as_str()).bind(before.uuid);
    let Some(known) = connection.fetch_one(known).await? else { return Ok(false) };
    let document = known.text(0)?;
    if serde_json::from_str::<Resource>(document)? != *before {
        return Ok(false);
    }
    let updated = columns(Statement::new(sql::UPDATE_RESOURCE).bind(before.uuid), after)?.bind(document);
    let updated = connection.execute(updated).await.map_err(|failure| taken(failure, after))?;
    Ok(updated == 1)
}

/// Forgets one.
pub async fn delete(connection: &mut impl Connection, uuid: Uuid) -> Outcome<()> {
    connection.execute(Statement::new(sql::DELETE_RESOURCE).bind(uuid)).await?;
    Ok(())
}

fn columns(statement: Statement, resource: &Resource) -> Outcome<Statement> {
    Ok(statement
        .bind(resource.name.clone())
        .bind(resource.node_uuid)
        .bind(resource.natural_key())
        .bind(serde_json::to_string(resource)?))
}

fn taken(failure: Failure, resource: &Resource) -> Failure {
    taken_or(failure, resource.uuid, |constraint| match (constraint, &resource.name) {
        (Constraint::ResourceName, Some(name)) => format!("a {} with the name {name:?}", resource.kind),
        _ => format!("a {} with {}", resource.kind, resource.natural_key().unwrap_or_default()),
    })
}
