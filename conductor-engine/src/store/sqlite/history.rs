//! What happened to nodes.

use crate::records::{HistoryEntry, HistoryKind, Severity};
use crate::store::HISTORY_LIMIT;
use crate::store::columns::{micros, time_of};
use crate::store::sqlite::Outcome;
use crate::store::statements as sql;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection, SqlitePool};
use time::OffsetDateTime;
use uuid::Uuid;

/// Adds to the history of a node, and forgets its oldest entries where it is too long.
pub(super) async fn add(
    connection: &mut SqliteConnection,
    node: Uuid,
    entries: &[HistoryEntry],
) -> Outcome<()> {
    for entry in entries {
        let inserted = sqlx::query(sql::INSERT_HISTORY)
            .bind(entry.uuid.to_string())
            .bind(node.to_string())
            .bind(micros(entry.created_at))
            .bind(entry.severity.as_str())
            .bind(entry.event_type.as_str())
            .bind(entry.event.clone())
            .bind(entry.conductor.clone())
            .bind(entry.user.clone());
        inserted.execute(&mut *connection).await?;
    }
    if !entries.is_empty() {
        let trimmed = sqlx::query(sql::TRIM_HISTORY).bind(node.to_string()).bind(i64::from(HISTORY_LIMIT));
        trimmed.execute(connection).await?;
    }
    Ok(())
}

/// What happened to a node, the oldest first. Entries of kinds that later versions have are left out.
pub(super) async fn of(readers: &SqlitePool, node: Uuid) -> Outcome<Vec<HistoryEntry>> {
    let rows = sqlx::query(sql::HISTORY).bind(node.to_string()).fetch_all(readers).await?;
    rows.iter().filter_map(|row| entry(row).transpose()).collect()
}

fn entry(row: &SqliteRow) -> Outcome<Option<HistoryEntry>> {
    let severity = Severity::named(row.try_get("severity")?);
    let event_type = HistoryKind::named(row.try_get("event_type")?);
    let (Some(severity), Some(event_type)) = (severity, event_type) else { return Ok(None) };
    Ok(Some(HistoryEntry {
        uuid: row.try_get::<&str, _>("uuid")?.parse()?,
        created_at: time_of(row.try_get("created_at")?).unwrap_or(OffsetDateTime::UNIX_EPOCH),
        severity,
        event_type,
        event: row.try_get("event")?,
        conductor: row.try_get("conductor")?,
        user: row.try_get("by_user")?,
    }))
}
