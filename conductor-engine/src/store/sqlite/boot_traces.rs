//! How far machines came that boot from the network.

use crate::evidence::boot_trace::BootTrace;
use crate::store::BootTraceChange;
use crate::store::sqlite::Outcome;
use crate::store::statements as sql;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};
use uuid::Uuid;

/// Writes what changed of the trace of a node.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    node: Uuid,
    change: BootTraceChange,
) -> Outcome<()> {
    let statement = match change {
        BootTraceChange::Keep => return Ok(()),
        BootTraceChange::Begin => {
            let document = serde_json::to_string(&BootTrace::default())?;
            sqlx::query(sql::BEGIN_BOOT_TRACE).bind(node.to_string()).bind(document)
        }
        BootTraceChange::End => sqlx::query(sql::DELETE_BOOT_TRACE).bind(node.to_string()),
    };
    statement.execute(connection).await?;
    Ok(())
}

/// Adds to traces that have begun.
pub(super) async fn reach(connection: &mut SqliteConnection, reached: &[(Uuid, BootTrace)]) -> Outcome<()> {
    for (node, news) in reached {
        let known = sqlx::query_scalar::<Sqlite, String>(sql::BOOT_TRACE).bind(node.to_string());
        let Some(document) = known.fetch_optional(&mut *connection).await? else { continue };
        let mut trace: BootTrace = serde_json::from_str(&document)?;
        news.marks().iter().cloned().for_each(|mark| trace.reach(mark));
        let update = sqlx::query(sql::UPDATE_BOOT_TRACE).bind(node.to_string());
        update.bind(serde_json::to_string(&trace)?).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Traces of machines whose nodes wait for an agent that has not called.
pub(super) async fn awaited(readers: &SqlitePool) -> Outcome<Vec<BootTrace>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::AWAITED_BOOTS).fetch_all(readers).await?;
    found.iter().map(|document| Ok(serde_json::from_str(document)?)).collect()
}

/// The nodes whose trace has begun.
pub(super) async fn nodes(readers: &SqlitePool) -> Outcome<Vec<Uuid>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::WITH_BOOT_TRACE).fetch_all(readers).await?;
    found.iter().map(|node| Ok(node.parse()?)).collect()
}

/// The trace of a node.
pub(super) async fn of(readers: &SqlitePool, node: Uuid) -> Outcome<Option<BootTrace>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::BOOT_TRACE).bind(node.to_string());
    let found = found.fetch_optional(readers).await?;
    Ok(found.map(|document| serde_json::from_str(&document)).transpose()?)
}
