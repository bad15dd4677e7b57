//! What could be had of machines that stayed silent.

use crate::evidence::diagnosis::Diagnosis;
use crate::store::DiagnosisChange;
use crate::store::sql::statement::{Connection, Reader, Statement};
use crate::store::sql::{Outcome, statements as sql};
use uuid::Uuid;

/// Writes what changed of that of a node.
pub async fn write(connection: &mut impl Connection, node: Uuid, change: DiagnosisChange<'_>) -> Outcome<()> {
    let statement = match change {
        DiagnosisChange::Keep => return Ok(()),
        DiagnosisChange::Put(words) => {
            Statement::new(sql::PUT_DIAGNOSIS).bind(node).bind(serde_json::to_string(words)?)
        }
        DiagnosisChange::Remove => Statement::new(sql::DELETE_DIAGNOSIS).bind(node),
    };
    connection.execute(statement).await?;
    Ok(())
}

/// That of a node.
pub async fn of(readers: &mut impl Reader, node: Uuid) -> Outcome<Option<Diagnosis>> {
    readers.document(Statement::new(sql::DIAGNOSIS).bind(node)).await
}
