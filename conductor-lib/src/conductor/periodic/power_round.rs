//! One round over machines: a bounded number of them is read at a time, and none holds up the others for longer than
//! its deadline.

use crate::error::Error;
use crate::model::PowerState;
use crate::power_reading::power_state;
use crate::services::Services;
use crate::store::{Record, StoreError};
use crate::task::Task;
use std::sync::Arc;
use tokio::task::JoinSet;

/// What a machine said, with its record as it was before.
pub(super) type Reading = (Record, Result<PowerState, Error>);

/// Reads the machines of these records, in no order.
pub(super) async fn read(services: &Arc<Services>, records: Vec<Record>) -> Vec<Reading> {
    let most = services.settings.power_sync.sync_power_state_workers.max(1);
    let (mut readings, mut reading) = (Vec::new(), JoinSet::new());
    for record in records {
        if reading.len() >= most {
            readings.extend(reading.join_next().await.and_then(Result::ok));
        }
        let services = Arc::clone(services);
        reading.spawn(async move {
            let state = power_state(&services, &record.node).await;
            (record, state)
        });
    }
    readings.extend(reading.join_all().await);
    readings
}

/// The node of a record under its lease, unless anything happened to it since it was read, or somebody has it.
pub(super) async fn unchanged(services: &Arc<Services>, seen: &Record) -> Result<Option<Task>, Error> {
    match Task::try_acquire(services, seen.node.uuid).await {
        Ok(task) if task.node.updated_at == seen.node.updated_at => Ok(Some(task)),
        Ok(task) => task.leave().await.map(|()| None),
        Err(Error::Store(StoreError::Held { .. } | StoreError::Gone(_))) => Ok(None),
        Err(error) => Err(error),
    }
}
