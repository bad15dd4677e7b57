//! One round over machines: a bounded number of them is read at a time, and none holds up the others for longer than
//! its deadline. Of each node only what the round compares is kept, since there may be many.

use crate::error::Error;
use crate::model::{Node, PowerState};
use crate::power_reading::power_state;
use crate::services::Services;
use crate::store::{Record, StoreError};
use crate::task::Task;
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::task::JoinSet;
use uuid::Uuid;

/// A machine that was read.
pub(super) struct Reading {
    /// Its node.
    pub(super) node: Uuid,
    /// The node's name.
    pub(super) name: String,
    /// What was recorded before.
    pub(super) recorded: Option<PowerState>,
    /// What the machine said.
    pub(super) said: Result<PowerState, Error>,
    updated_at: OffsetDateTime,
}

impl Reading {
    fn new(node: Node, said: Result<PowerState, Error>) -> Self {
        let name = node.label();
        let Node { uuid, power_state, updated_at, .. } = node;
        Self { node: uuid, name, recorded: power_state, said, updated_at }
    }

    /// Whether the machine says something else than what is recorded.
    pub(super) fn contradicts(&self) -> bool {
        self.said.as_ref().is_ok_and(|said| self.recorded != Some(*said))
    }
}

/// Which nodes a round is about.
pub(super) type Wanted = fn(&Record, OffsetDateTime) -> bool;

/// Reads the machines of those of `nodes` that are wanted, in no order.
pub(super) async fn read(services: &Arc<Services>, nodes: Vec<Uuid>, wanted: Wanted) -> Vec<Reading> {
    let most = services.settings.power_sync.sync_power_state_workers.max(1);
    let (mut readings, mut reading) = (Vec::new(), JoinSet::new());
    for node in nodes {
        if reading.len() >= most {
            readings.extend(reading.join_next().await.and_then(Result::ok).flatten());
        }
        reading.spawn(read_one(Arc::clone(services), node, wanted));
    }
    readings.extend(reading.join_all().await.into_iter().flatten());
    readings
}

async fn read_one(services: Arc<Services>, node: Uuid, wanted: Wanted) -> Option<Reading> {
    let record = match services.store.get(node).await {
        Ok(record) => record.filter(|record| wanted(record, services.now()))?,
        // No node stops the others.
        Err(error) => {
            tracing::error!(%node, "the record of a node cannot be read: {error}");
            return None;
        }
    };
    let said = power_state(&services, &record.node).await;
    Some(Reading::new(record.node, said))
}

/// The node that was read, under its lease, unless anything happened to it since, or somebody has it.
pub(super) async fn unchanged(services: &Arc<Services>, seen: &Reading) -> Result<Option<Task>, Error> {
    match Task::try_acquire(services, seen.node).await {
        Ok(task) if task.node.updated_at == seen.updated_at => Ok(Some(task)),
        Ok(task) => task.leave().await.map(|()| None),
        Err(Error::Store(StoreError::Held { .. } | StoreError::Gone(_))) => Ok(None),
        Err(error) => Err(error),
    }
}
