//! Ends the maintenance of nodes whose power could not be read, once it can (section 12.4).

use super::power_round::{read, unchanged};
use crate::error::Error;
use crate::model::Fault;
use crate::services::Services;
use std::sync::Arc;

/// Looks once at every node with the fault `power failure`.
///
/// # Errors
///
/// [`Error::Store`].
pub(super) async fn round(services: &Arc<Services>) -> Result<(), Error> {
    let mut records = services.store.list().await?;
    records.retain(|record| record.node.maintenance && record.node.fault == Some(Fault::Power));
    for (record, reading) in read(services, records).await {
        let Ok(state) = reading else { continue };
        if let Some(mut task) = unchanged(services, &record).await? {
            tracing::info!(node = %task.node.name, "the power can be read again ({state}); maintenance ends");
            task.node.power_state = Some(state);
            (task.node.maintenance, task.node.maintenance_reason, task.node.fault) = (false, None, None);
            task.finish().await?;
        }
    }
    Ok(())
}
