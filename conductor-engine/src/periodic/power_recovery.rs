//! Ends the maintenance of nodes whose power could not be read, once it can (section 12.4).

use crate::error::Error;
use crate::periodic::power_pass::{Doubt, PowerPass, Reading, unchanged};
use crate::services::Services;
use crate::store::{Filter, NodeColumn, Record, Selection};
use farrier_conductor::model::{Fault, PowerState};
use std::sync::Arc;

/// Looks once at every node with the fault `power failure`.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn pass(services: &Arc<Services>) -> Result<(), Error> {
    let column = |name| NodeColumn::named(name).expect("it is a column");
    let fault = Filter::IsOneOf(column("fault"), vec![Fault::Power.as_str().to_owned()]);
    let given_up = Selection::all(vec![fault, Filter::Flag(column("maintenance"), true)]);
    let nodes = services.store.identities(&given_up).await?;
    let mut pass = PowerPass::new(services, nodes, is_given_up, Doubt::Nothing);
    while let Some(reading) = pass.next().await {
        let Ok(state) = reading.said else { continue };
        // No node stops the others.
        if let Err(error) = end_maintenance(services, &reading, state).await {
            tracing::error!(node = %reading.name, "its maintenance cannot be ended: {error}");
        }
    }
    Ok(())
}

fn is_given_up(record: &Record, services: &Services) -> bool {
    record.node.maintenance && record.node.fault == Some(Fault::Power) && services.leads(&record.node)
}

async fn end_maintenance(services: &Arc<Services>, seen: &Reading, state: PowerState) -> Result<(), Error> {
    let Some(mut task) = unchanged(services, seen).await? else { return Ok(()) };
    tracing::info!(node = %task.node.label(), "the power can be read again ({state}); maintenance ends");
    task.node.power_state = Some(state);
    (task.node.maintenance, task.node.maintenance_reason, task.node.fault) = (false, None, None);
    task.finish().await
}
