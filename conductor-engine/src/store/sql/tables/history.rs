//! What happened to nodes.

use crate::records::{HISTORY_LIMIT, HistoryEntry, HistoryKind, Severity};
use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::{Outcome, statements as sql};
use uuid::Uuid;

/// Adds to the history of a node, and forgets its oldest entries where it is too long.
pub async fn add(connection: &mut impl Connection, node: Uuid, entries: &[HistoryEntry]) -> Outcome<()> {
    for entry in entries {
        let inserted = Statement::new(sql::INSERT_HISTORY)
            .bind(entry.uuid)
            .bind(node)
            .bind(entry.created_at)
            .bind(entry.severity.as_str())
            .bind(entry.event_type.as_str())
            .bind(entry.event.clone())
            .bind(entry.conductor.clone())
            .bind(entry.user.clone())
            .bind(entry.beginning.as_ref().map(serde_json::to_string).transpose()?);
        connection.execute(inserted).await?;
    }
    if !entries.is_empty() {
        let trimmed = Statement::new(sql::TRIM_HISTORY).bind(node).bind(i64::from(HISTORY_LIMIT));
        connection.execute(trimmed).await?;
    }
    Ok(())
}

/// What happened to a node, the oldest first. Entries of kinds that later versions have are left out.
pub async fn of(readers: &mut impl Reader, node: Uuid) -> Outcome<Vec<HistoryEntry>> {
    let rows = readers.fetch(Statement::new(sql::HISTORY).bind(node)).await?;
    rows.iter().filter_map(|row| entry(row).transpose()).collect()
}

fn entry(row: &impl Row) -> Outcome<Option<HistoryEntry>> {
    let severity = Severity::named(row.text("severity")?);
    let event_type = HistoryKind::named(row.text("event_type")?);
    let (Some(severity), Some(event_type)) = (severity, event_type) else { return Ok(None) };
    Ok(Some(HistoryEntry {
        uuid: row.uuid("uuid")?,
        created_at: row.time("created_at")?,
        severity,
        event_type,
        event: row.text("event")?.to_owned(),
        conductor: row.text("conductor")?.to_owned(),
        user: row.optional_text("by_user")?.map(str::to_owned),
        // What later versions begin is left out.
        beginning: row.optional_text("beginning")?.and_then(|text| serde_json::from_str(text).ok()),
    }))
}
