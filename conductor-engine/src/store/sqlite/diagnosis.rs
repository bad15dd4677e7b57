//! What could be had of machines that stayed silent.

use crate::evidence::diagnosis::Diagnosis;
use crate::store::DiagnosisChange;
use crate::store::sqlite::Outcome;
use crate::store::statements as sql;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};
use uuid::Uuid;

/// Writes what changed of that of a node.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    node: Uuid,
    change: DiagnosisChange<'_>,
) -> Outcome<()> {
    let statement = match change {
        DiagnosisChange::Keep => return Ok(()),
        DiagnosisChange::Put(words) => {
            let document = serde_json::to_string(words)?;
            sqlx::query(sql::PUT_DIAGNOSIS).bind(node.to_string()).bind(document)
        }
        DiagnosisChange::Remove => sqlx::query(sql::DELETE_DIAGNOSIS).bind(node.to_string()),
    };
    statement.execute(connection).await?;
    Ok(())
}

/// That of a node.
pub(super) async fn of(readers: &SqlitePool, node: Uuid) -> Outcome<Option<Diagnosis>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::DIAGNOSIS).bind(node.to_string());
    let found = found.fetch_optional(readers).await?;
    Ok(found.map(|document| serde_json::from_str(&document)).transpose()?)
}
