//! Writes records, each function within a transaction of its caller.

use super::super::columns::{Column, NODE, SESSION, micros, split};
use super::super::statements as sql;
use super::super::{Change, ConfigDrive, Lease, OrderChange, Record, SessionChange, StoreError, Terms};
use super::{Failure, Outcome};
use crate::model::{AgentSession, Node};
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection};
use time::OffsetDateTime;
use uuid::Uuid;

type Statement = Query<'static, Sqlite, SqliteArguments>;

/// Adds a node with its ports and its agent's session.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    node: &Node,
    session: &AgentSession,
) -> Outcome<()> {
    let uuid = node.uuid.to_string();
    let (columns, document) = split(node, NODE);
    let inserted = bind(sqlx::query(sql::INSERT_NODE).bind(uuid.clone()), columns);
    inserted.execute(&mut *connection).await.map_err(|error| taken(error, node))?;
    sqlx::query(sql::INSERT_DOCUMENT).bind(uuid.clone()).bind(document).execute(&mut *connection).await?;
    let (columns, document) = split(session, SESSION);
    let inserted = bind(sqlx::query(sql::INSERT_SESSION).bind(uuid.clone()), columns).bind(document);
    inserted.execute(&mut *connection).await?;
    for (place, port) in (0_i64..).zip(&node.ports) {
        let inserted = sqlx::query(sql::INSERT_PORT)
            .bind(port.address.to_string())
            .bind(uuid.clone())
            .bind(place)
            .bind(serde_json::to_string(port)?);
        let what = || format!("MAC address {}", port.address);
        inserted.execute(&mut *connection).await.map_err(|error| taken_or(error, what))?;
    }
    Ok(())
}

/// Gives a node its config drive.
pub(super) async fn insert_config_drive(
    connection: &mut SqliteConnection,
    uuid: Uuid,
    content: &str,
) -> Outcome<()> {
    let inserted = sqlx::query(sql::INSERT_CONFIG_DRIVE).bind(uuid.to_string()).bind(content.to_owned());
    inserted.execute(connection).await?;
    Ok(())
}

/// Takes the lease of a node.
pub(super) async fn take(connection: &mut SqliteConnection, uuid: Uuid, terms: &Terms<'_>) -> Outcome<Lease> {
    let epoch = sqlx::query_scalar(sql::TAKE)
        .bind(uuid.to_string())
        .bind(terms.holder.to_owned())
        .bind(micros(terms.expires_at))
        .bind(micros(terms.now))
        .fetch_optional(&mut *connection)
        .await?;
    match epoch {
        Some(epoch) => Ok(Lease { node: uuid, epoch }),
        None => Err(match holder(connection, uuid).await? {
            Some(holder) => StoreError::Held { node: uuid, holder: holder.unwrap_or_default() },
            None => StoreError::Gone(uuid),
        }
        .into()),
    }
}

/// Makes a lease last longer.
pub(super) async fn renew(
    connection: &mut SqliteConnection,
    lease: &Lease,
    expires_at: OffsetDateTime,
) -> Outcome<()> {
    let renewed = of_lease(sql::RENEW, lease).bind(micros(expires_at));
    guarded(connection, lease, renewed).await
}

/// Ends a lease, unless it was overtaken.
pub(super) async fn release(connection: &mut SqliteConnection, lease: &Lease) -> Outcome<()> {
    of_lease(sql::RELEASE, lease).execute(connection).await?;
    Ok(())
}

/// Has every lease of a holder expired.
pub(super) async fn expire_all(connection: &mut SqliteConnection, holder: &str) -> Outcome<()> {
    sqlx::query(sql::EXPIRE_ALL).bind(holder.to_owned()).execute(connection).await?;
    Ok(())
}

/// Writes what changed of a node. The row that is guarded by the epoch comes first: when it is refused, nothing else
/// is tried.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    lease: &Lease,
    change: &Change<'_>,
) -> Outcome<()> {
    let uuid = lease.node.to_string();
    let (columns, document) = split(change.node, NODE);
    let updated = bind(sqlx::query(sql::UPDATE_NODE).bind(uuid.clone()), columns).bind(lease.epoch);
    guarded(connection, lease, updated).await.map_err(|failure| match failure {
        Failure::Database(error) => taken(error, change.node),
        other => other,
    })?;
    sqlx::query(sql::UPDATE_DOCUMENT).bind(uuid.clone()).bind(document).execute(&mut *connection).await?;
    for port in &change.node.ports {
        let updated = sqlx::query(sql::UPDATE_PORT).bind(port.address.to_string()).bind(uuid.clone());
        updated.bind(serde_json::to_string(port)?).execute(&mut *connection).await?;
    }
    write_session(connection, &uuid, change.session).await?;
    match change.config_drive {
        ConfigDrive::Keep => {}
        ConfigDrive::Put(content) => {
            delete_config_drive(connection, &uuid).await?;
            insert_config_drive(connection, lease.node, content).await?;
        }
        ConfigDrive::Remove => delete_config_drive(connection, &uuid).await?,
    }
    write_order(connection, &uuid, change.order).await?;
    match change.ends_lease {
        true => release(connection, lease).await,
        false => Ok(()),
    }
}

async fn write_session(
    connection: &mut SqliteConnection,
    uuid: &str,
    change: SessionChange<'_>,
) -> Outcome<()> {
    let statement = match change {
        SessionChange::Keep => return Ok(()),
        SessionChange::Learned(session) => {
            let (_, document) = split(session, SESSION);
            sqlx::query(sql::UPDATE_SESSION_DOCUMENT).bind(uuid.to_owned()).bind(document)
        }
        SessionChange::Replace(session) => {
            let (columns, document) = split(session, SESSION);
            bind(sqlx::query(sql::REPLACE_SESSION).bind(uuid.to_owned()), columns).bind(document)
        }
    };
    statement.execute(connection).await?;
    Ok(())
}

async fn write_order(connection: &mut SqliteConnection, uuid: &str, change: OrderChange) -> Outcome<()> {
    if matches!(change, OrderChange::Keep) {
        return Ok(());
    }
    sqlx::query(sql::DELETE_ORDER).bind(uuid.to_owned()).execute(&mut *connection).await?;
    if let OrderChange::Put(order) = change {
        let inserted = sqlx::query(sql::INSERT_ORDER).bind(uuid.to_owned()).bind(order.verb.as_str());
        inserted.bind(micros(order.ordered_at)).bind(order.attempts).execute(connection).await?;
    }
    Ok(())
}

async fn delete_config_drive(connection: &mut SqliteConnection, uuid: &str) -> Outcome<()> {
    sqlx::query(sql::DELETE_CONFIG_DRIVE).bind(uuid.to_owned()).execute(connection).await?;
    Ok(())
}

/// Forgets a node. What belongs to it goes with it.
pub(super) async fn delete(connection: &mut SqliteConnection, lease: &Lease) -> Outcome<()> {
    guarded(connection, lease, of_lease(sql::DELETE_NODE, lease)).await
}

/// Issues a token, if nothing happened to the node since it was seen.
pub(super) async fn issue_token(
    connection: &mut SqliteConnection,
    seen: &Record,
    token: &str,
    now: OffsetDateTime,
) -> Outcome<bool> {
    let uuid = seen.node.uuid.to_string();
    let passed = sqlx::query(sql::PASS).bind(uuid.clone()).bind(seen.epoch).bind(micros(now));
    if passed.execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(false);
    }
    let issued = sqlx::query(sql::ISSUE_TOKEN).bind(uuid).bind(token.to_owned());
    Ok(issued.execute(connection).await?.rows_affected() == 1)
}

/// Writes down what an agent said.
pub(super) async fn hear(
    connection: &mut SqliteConnection,
    uuid: Uuid,
    heard: &AgentSession,
) -> Outcome<bool> {
    let (columns, _) = split(heard, SESSION);
    let heard = bind(sqlx::query(sql::HEAR).bind(uuid.to_string()), columns);
    Ok(heard.execute(connection).await?.rows_affected() == 1)
}

/// Runs a statement that finds its row only while the lease holds.
async fn guarded(connection: &mut SqliteConnection, lease: &Lease, statement: Statement) -> Outcome<()> {
    if statement.execute(&mut *connection).await?.rows_affected() == 1 {
        return Ok(());
    }
    Err(match holder(connection, lease.node).await? {
        Some(_) => StoreError::Overtaken(lease.node),
        None => StoreError::Gone(lease.node),
    }
    .into())
}

/// Who holds the lease of a node; nothing when the node is gone.
async fn holder(connection: &mut SqliteConnection, uuid: Uuid) -> Outcome<Option<Option<String>>> {
    Ok(sqlx::query_scalar(sql::HOLDER).bind(uuid.to_string()).fetch_optional(connection).await?)
}

fn of_lease(statement: &'static str, lease: &Lease) -> Statement {
    sqlx::query(statement).bind(lease.node.to_string()).bind(lease.epoch)
}

fn bind(statement: Statement, columns: Vec<Column>) -> Statement {
    columns.into_iter().fold(statement, |statement, column| match column {
        Column::Text(text) => statement.bind(text),
        Column::Time(micros) => statement.bind(micros),
        Column::Flag(flag) => statement.bind(flag),
    })
}

/// Names and instances belong to one node.
fn taken(error: sqlx::Error, node: &Node) -> Failure {
    let is_instance = error.to_string().contains("instance_uuid");
    taken_or(error, || match node.instance_uuid.get() {
        Some(instance) if is_instance => format!("instance {instance}"),
        _ => format!("the name {:?}", node.name),
    })
}

fn taken_or(error: sqlx::Error, what: impl FnOnce() -> String) -> Failure {
    match error.as_database_error().is_some_and(|error| error.is_unique_violation()) {
        true => StoreError::Taken { what: what() }.into(),
        false => error.into(),
    }
}
