//! Reads and writes deploy templates and runbooks.

use super::super::statements as sql;
use super::super::{StoreError, WorkflowSelection};
use super::Outcome;
use crate::model::{Workflow, WorkflowKind};
use sqlx::sqlite::SqlitePool;
use sqlx::{Sqlite, SqliteConnection};
use uuid::Uuid;

/// The one of a kind with this name or identity.
pub(super) async fn one(readers: &SqlitePool, kind: WorkflowKind, id: &str) -> Outcome<Option<Workflow>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::WORKFLOW).bind(kind.as_str()).bind(id.to_owned());
    Ok(found.fetch_optional(readers).await?.map(|document| serde_json::from_str(&document)).transpose()?)
}

/// Selected ones, by their identity.
pub(super) async fn selected(readers: &SqlitePool, selection: &WorkflowSelection) -> Outcome<Vec<Workflow>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::WORKFLOWS)
        .bind(selection.kind.as_str())
        .bind(selection.after.map(|uuid| uuid.to_string()))
        .bind(i64::from(selection.limit));
    let documents = found.fetch_all(readers).await?;
    documents.iter().map(|document| Ok(serde_json::from_str(document)?)).collect()
}

/// Adds one.
pub(super) async fn insert(connection: &mut SqliteConnection, workflow: &Workflow) -> Outcome<()> {
    let inserted = sqlx::query(sql::INSERT_WORKFLOW)
        .bind(workflow.uuid.to_string())
        .bind(workflow.kind.as_str())
        .bind(workflow.name.clone())
        .bind(serde_json::to_string(workflow)?);
    inserted.execute(connection).await.map_err(|error| taken(error, workflow))?;
    Ok(())
}

/// Writes one, and tells whether it was as before.
pub(super) async fn update(
    connection: &mut SqliteConnection,
    before: &Workflow,
    after: &Workflow,
) -> Outcome<bool> {
    let updated = sqlx::query(sql::UPDATE_WORKFLOW)
        .bind(before.uuid.to_string())
        .bind(after.name.clone())
        .bind(serde_json::to_string(after)?)
        .bind(serde_json::to_string(before)?);
    Ok(updated.execute(connection).await.map_err(|error| taken(error, after))?.rows_affected() == 1)
}

/// Forgets one.
pub(super) async fn delete(connection: &mut SqliteConnection, uuid: Uuid) -> Outcome<()> {
    sqlx::query(sql::DELETE_WORKFLOW).bind(uuid.to_string()).execute(connection).await?;
    Ok(())
}

fn taken(error: sqlx::Error, workflow: &Workflow) -> super::Failure {
    match error.as_database_error().is_some_and(|error| error.is_unique_violation()) {
        true => StoreError::Taken { what: format!("the {} {:?}", workflow.kind, workflow.name) }.into(),
        false => error.into(),
    }
}
