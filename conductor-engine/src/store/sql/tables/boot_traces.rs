//! How far machines came that boot from the network.

use crate::evidence::boot_trace::BootTrace;
use crate::store::BootTraceChange;
use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::{Outcome, statements as sql};
use uuid::Uuid;

/// How often a trace is read again that another conductor adds to at the same time. Marks that are not noted then are lost;
/// the machine makes more of them.
const ATTEMPTS: u32 = 8;

/// Writes what changed of the trace of a node.
pub async fn write(connection: &mut impl Connection, node: Uuid, change: BootTraceChange) -> Outcome<()> {
    let statement = match change {
        BootTraceChange::Keep => return Ok(()),
        BootTraceChange::Begin => {
            let document = serde_json::to_string(&BootTrace::default())?;
            Statement::new(sql::BEGIN_BOOT_TRACE).bind(node).bind(document)
        }
        BootTraceChange::End => Statement::new(sql::DELETE_BOOT_TRACE).bind(node),
    };
    connection.execute(statement).await?;
    Ok(())
}

/// Adds to traces that have begun. All conductors go through the nodes in one order, so that none waits for the other.
pub async fn reach(connection: &mut impl Connection, reached: &[(Uuid, BootTrace)]) -> Outcome<()> {
    let mut reached: Vec<_> = reached.iter().collect();
    reached.sort_unstable_by_key(|(node, _)| *node);
    for (node, news) in reached {
        add(connection, *node, news).await?;
    }
    Ok(())
}

/// Adds to a trace, which is written only where it is as it was read.
async fn add(connection: &mut impl Connection, node: Uuid, news: &BootTrace) -> Outcome<()> {
    for _ in 0..ATTEMPTS {
        let known = connection.fetch_one(Statement::new(sql::BOOT_TRACE).bind(node)).await?;
        let Some(known) = known else { return Ok(()) };
        let before = known.text(0)?;
        let mut trace: BootTrace = serde_json::from_str(before)?;
        news.marks().iter().cloned().for_each(|mark| trace.reach(mark));
        let update = Statement::new(sql::UPDATE_BOOT_TRACE).bind(node);
        let update = update.bind(serde_json::to_string(&trace)?).bind(before);
        if connection.execute(update).await? > 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Traces of machines whose nodes wait for an agent that has not called.
pub async fn awaited(readers: &mut impl Reader) -> Outcome<Vec<BootTrace>> {
    readers.documents(Statement::new(sql::AWAITED_BOOTS)).await
}

/// The nodes whose trace has begun.
pub async fn nodes(readers: &mut impl Reader) -> Outcome<Vec<Uuid>> {
    readers.uuids(Statement::new(sql::WITH_BOOT_TRACE)).await
}

/// The trace of a node.
pub async fn of(readers: &mut impl Reader, node: Uuid) -> Outcome<Option<BootTrace>> {
    readers.document(Statement::new(sql::BOOT_TRACE).bind(node)).await
}
