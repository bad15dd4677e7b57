//! Writes records, each function within a transaction of its caller.

use crate::store::columns::{PORT, SESSION, micros, split};
use crate::store::constraints::Constraint;
use crate::store::selection::NODE;
use crate::store::sqlite::{
    Failure, Outcome, Statement, allocations, bind, boot_traces, certificates, diagnosis, history, reading,
};
use crate::store::statements as sql;
use crate::store::{
    Change, ConfigDrive, Held, InspectionChange, Lease, OrderChange, Record, SessionChange, StoreError, Terms,
};
use farrier_conductor::inventory::bmc_addresses;
use farrier_conductor::model::{AgentSession, Node, Port};
use sqlx::{AssertSqlSafe, Row, Sqlite, SqliteConnection};
use std::collections::HashSet;
use time::OffsetDateTime;
use uuid::Uuid;

/// Leases that one statement renews: SQLite and PostgreSQL take more parameters than these.
const MOST_RENEWED: usize = 10_000;

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
    for port in &node.ports {
        insert_port(connection, node, port).await?;
    }
    write_keys(connection, node).await
}

/// Writes what a node is searched for by and may have several of, as far as it has changed.
async fn write_keys(connection: &mut SqliteConnection, node: &Node) -> Outcome<()> {
    let uuid = node.uuid.to_string();
    let stored = sqlx::query_as::<Sqlite, (String, String)>(sql::KEYS_OF_NODE).bind(uuid.clone());
    let stored: HashSet<_> = stored.fetch_all(&mut *connection).await?.into_iter().collect();
    let keys: HashSet<_> = keys_of(node).collect();
    let changes = keys.difference(&stored).map(|key| (sql::INSERT_KEY, key));
    for (statement, (kind, value)) in
        changes.chain(stored.difference(&keys).map(|key| (sql::DELETE_KEY, key)))
    {
        let changed = sqlx::query(statement).bind(uuid.clone()).bind(kind.clone()).bind(value.clone());
        changed.execute(&mut *connection).await?;
    }
    Ok(())
}

/// What a node is searched for by and may have several of.
fn keys_of(node: &Node) -> impl Iterator<Item = (String, String)> {
    let traits = node.traits.iter().map(|name| ("trait".to_owned(), name.clone()));
    traits.chain(bmc_addresses::noted(node).map(|address| ("bmc_address".to_owned(), address.to_string())))
}

async fn insert_port(connection: &mut SqliteConnection, node: &Node, port: &Port) -> Outcome<()> {
    let (columns, document) =
        split(&Port { created_at: port.created_at.or(Some(node.updated_at)), ..port.clone() }, PORT);
    let inserted = bind(sqlx::query(sql::INSERT_PORT).bind(port.uuid.to_string()), columns);
    let inserted = inserted.bind(document).bind(node.uuid.to_string());
    inserted.execute(connection).await.map_err(|error| port_taken(error, port))?;
    Ok(())
}

/// Writes the ports that are new or have changed, and forgets those that are gone.
async fn write_ports(connection: &mut SqliteConnection, node: &Node) -> Outcome<()> {
    let stored = reading::ports_of(&mut *connection, &node.uuid.to_string()).await?;
    let stays = |port: &Port| node.ports.iter().any(|other| other.uuid == port.uuid);
    check_each_once(&node.ports)?;
    for port in stored.iter().filter(|port| !stays(port)) {
        sqlx::query(sql::DELETE_PORT).bind(port.uuid.to_string()).execute(&mut *connection).await?;
    }
    for port in &node.ports {
        match stored.iter().find(|other| other.uuid == port.uuid) {
            None => insert_port(connection, node, port).await?,
            Some(before) if is_as_before(port, before) => {}
            Some(_) => {
                let (mut columns, document) = split(port, PORT);
                // When it was written down first does not change.
                columns.pop();
                let updated = bind(sqlx::query(sql::UPDATE_PORT).bind(port.uuid.to_string()), columns);
                let updated = updated.bind(document).execute(&mut *connection).await;
                updated.map_err(|error| port_taken(error, port))?;
            }
        }
    }
    Ok(())
}

/// A second port with the UUID of the first one would be written over it.
fn check_each_once(ports: &[Port]) -> Result<(), StoreError> {
    let mut seen = HashSet::new();
    match ports.iter().find(|port| !seen.insert(port.uuid)) {
        Some(port) => Err(StoreError::Taken { what: format!("a port with UUID {}", port.uuid) }),
        None => Ok(()),
    }
}

fn is_as_before(port: &Port, before: &Port) -> bool {
    *port == Port { created_at: port.created_at, ..before.clone() }
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
    let before = holder(connection, uuid).await?;
    let epoch = sqlx::query_scalar(sql::TAKE)
        .bind(uuid.to_string())
        .bind(terms.holder.to_owned())
        .bind(micros(terms.expires_at))
        .bind(micros(terms.now))
        .fetch_optional(&mut *connection)
        .await?;
    match epoch {
        Some(epoch) => Ok(Lease { node: uuid, epoch, follows_crash: before.flatten().is_some() }),
        None => Err(match before {
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

/// Makes leases last longer, and tells the nodes of those that there still are.
pub(super) async fn renew_all(
    connection: &mut SqliteConnection,
    leases: &[Lease],
    expires_at: OffsetDateTime,
) -> Outcome<Vec<Uuid>> {
    let mut renewed = Vec::with_capacity(leases.len());
    for leases in leases.chunks(MOST_RENEWED) {
        let (text, values) = sql::renew_all(leases, micros(expires_at));
        // Its text is another one each time.
        let statement = bind(sqlx::query(AssertSqlSafe(text)), values).persistent(false);
        for row in statement.fetch_all(&mut *connection).await? {
            renewed.push(row.try_get::<&str, _>(0)?.parse()?);
        }
    }
    Ok(renewed)
}

/// Ends a lease, unless it was overtaken.
pub(super) async fn release(connection: &mut SqliteConnection, lease: &Lease) -> Outcome<()> {
    of_lease(sql::RELEASE, lease).execute(connection).await?;
    Ok(())
}

/// Has a lease expired, unless it was renewed since it was seen.
pub(super) async fn expire(connection: &mut SqliteConnection, held: &Held) -> Outcome<bool> {
    let expired = sqlx::query(sql::EXPIRE)
        .bind(held.node.to_string())
        .bind(held.epoch)
        .bind(micros(held.expires_at))
        .execute(connection)
        .await?;
    Ok(expired.rows_affected() > 0)
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
    let updated = sqlx::query(sql::UPDATE_DOCUMENT).bind(uuid.clone()).bind(document);
    if updated.execute(&mut *connection).await?.rows_affected() > 0 {
        write_keys(connection, change.node).await?;
    }
    write_ports(connection, change.node).await?;
    allocations::end(connection, lease.node, change.node.allocation_uuid).await?;
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
    write_inspection(connection, &uuid, change.inspection).await?;
    certificates::write(connection, lease.node, change.certificates).await?;
    boot_traces::write(connection, lease.node, change.boot_trace).await?;
    diagnosis::write(connection, lease.node, change.diagnosis).await?;
    history::add(connection, lease.node, change.history).await?;
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

async fn write_inspection(
    connection: &mut SqliteConnection,
    uuid: &str,
    change: InspectionChange<'_>,
) -> Outcome<()> {
    let (statement, data) = match change {
        InspectionChange::Keep => return Ok(()),
        InspectionChange::Receive(data) => (sql::RECEIVE_INSPECTION, data),
        InspectionChange::Put(data) => (sql::PUT_INSPECTION, data),
    };
    let document = serde_json::to_string(data)?;
    sqlx::query(statement).bind(uuid.to_owned()).bind(document).execute(connection).await?;
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

/// UUIDs, names and instances belong to one node.
fn taken(error: sqlx::Error, node: &Node) -> Failure {
    taken_or(error, node.uuid, |constraint| match (constraint, node.instance_uuid.get()) {
        (Constraint::NodeInstance, Some(instance)) => format!("a node with instance {instance}"),
        _ => format!("a node with the name {:?}", node.label()),
    })
}

/// UUIDs, addresses and names belong to one port.
fn port_taken(error: sqlx::Error, port: &Port) -> Failure {
    taken_or(error, port.uuid, |constraint| match (constraint, &port.name) {
        (Constraint::PortName, Some(name)) => format!("a port with the name {name:?}"),
        _ => format!("a port with MAC address {}", port.address),
    })
}

/// What a record has that another one has already: its UUID, or what `what` says of the constraint that was violated.
pub(super) fn taken_or(error: sqlx::Error, uuid: Uuid, what: impl FnOnce(Constraint) -> String) -> Failure {
    let what = match Constraint::violated(&error) {
        None => return error.into(),
        Some(Constraint::Uuid) => format!("a record with UUID {uuid}"),
        Some(constraint) => what(constraint),
    };
    StoreError::Taken { what }.into()
}
