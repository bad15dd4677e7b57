//! Leases of nodes.

use crate::store::columns::micros;
use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::{Outcome, statements as sql};
use crate::store::{Held, Lease, StoreError, Terms};
use time::OffsetDateTime;
use uuid::Uuid;

/// Leases that one statement renews: SQLite and PostgreSQL take more parameters than these.
const MOST_RENEWED: usize = 10_000;

/// How often a lease is tried for whose holder changes meanwhile.
const ATTEMPTS: u32 = 3;

/// Takes the lease of a node. Its last holder is read first, since no statement of SQLite returns what it writes over; the
/// lease is taken only where it still has that holder.
pub async fn take(connection: &mut impl Connection, uuid: Uuid, terms: &Terms<'_>) -> Outcome<Lease> {
    let mut before = None;
    for _ in 0..ATTEMPTS {
        let last = holder(connection, uuid).await?.ok_or(StoreError::Gone(uuid))?;
        let take = Statement::new(sql::TAKE)
            .bind(uuid)
            .bind(terms.holder)
            .bind(terms.expires_at)
            .bind(terms.now)
            .bind(last.clone().unwrap_or_default());
        if let Some(row) = connection.fetch_one(take).await? {
            return Ok(Lease { node: uuid, epoch: row.number(0)?, follows_crash: last.is_some() });
        }
        if before.replace(last.clone()) == Some(last) {
            break;
        }
    }
    let holder = before.flatten().unwrap_or_default();
    Err(StoreError::Held { node: uuid, holder }.into())
}

/// Makes a lease last longer.
pub async fn renew(
    connection: &mut impl Connection,
    lease: &Lease,
    expires_at: OffsetDateTime,
) -> Outcome<()> {
    let renewed = of(sql::RENEW, lease).bind(expires_at);
    guarded(connection, lease, renewed).await
}

/// Makes leases last longer, and returns the nodes of those that there still are.
pub async fn renew_all(
    connection: &mut impl Connection,
    leases: &[Lease],
    expires_at: OffsetDateTime,
) -> Outcome<Vec<Uuid>> {
    let mut renewed = Vec::with_capacity(leases.len());
    for leases in leases.chunks(MOST_RENEWED) {
        let statement = Statement::composed(sql::renew_all(leases, micros(expires_at))).once();
        renewed.extend(connection.uuids(statement).await?);
    }
    Ok(renewed)
}

/// Ends a lease, unless it was overtaken.
pub fn release(lease: &Lease) -> Statement {
    of(sql::RELEASE, lease)
}

/// Has a lease expired, unless it was renewed since it was seen.
pub fn expire(held: &Held) -> Statement {
    Statement::new(sql::EXPIRE).bind(held.node).bind(held.epoch).bind(held.expires_at)
}

/// Has every lease of a holder expired.
pub fn expire_all(holder: &str) -> Statement {
    Statement::new(sql::EXPIRE_ALL).bind(holder)
}

/// Every lease that has not ended.
pub async fn held(readers: &mut impl Reader) -> Outcome<Vec<Held>> {
    let rows = readers.fetch(Statement::new(sql::HELD)).await?;
    let read = |row: &_| held_of(row);
    rows.iter().map(read).collect()
}

fn held_of(row: &impl Row) -> Outcome<Held> {
    Ok(Held {
        node: row.uuid("uuid")?,
        holder: row.text("reservation")?.to_owned(),
        epoch: row.number("lease_epoch")?,
        expires_at: row.time("lease_expires_at")?,
    })
}

/// The nodes that no conductor attends to.
pub async fn unattended(readers: &mut impl Reader, now: OffsetDateTime) -> Outcome<Vec<Uuid>> {
    readers.uuids(Statement::new(sql::UNATTENDED).bind(now)).await
}

/// Runs a statement that finds its row only while the lease holds.
pub async fn guarded(connection: &mut impl Connection, lease: &Lease, statement: Statement) -> Outcome<()> {
    if connection.execute(statement).await? == 1 {
        return Ok(());
    }
    Err(match holder(connection, lease.node).await? {
        Some(_) => StoreError::Overtaken(lease.node),
        None => StoreError::Gone(lease.node),
    }
    .into())
}

/// Who holds the lease of a node; nothing when the node is gone.
async fn holder(connection: &mut impl Connection, uuid: Uuid) -> Outcome<Option<Option<String>>> {
    let row = connection.fetch_one(Statement::new(sql::HOLDER).bind(uuid)).await?;
    row.map(|row| Ok(row.optional_text(0)?.map(str::to_owned))).transpose()
}

/// A statement whose first parameters are a node and its epoch.
pub fn of(statement: &'static str, lease: &Lease) -> Statement {
    Statement::new(statement).bind(lease.node).bind(lease.epoch)
}
