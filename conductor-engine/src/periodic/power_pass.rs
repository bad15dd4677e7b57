//! One pass over machines: a bounded number of them is read at a time. One that does not answer soon gives up its slot and
//! is waited for beside the others, until its deadline, so that a hundred that hang hold up nobody. Of each node only what
//! the pass compares is kept, since there may be many.

use crate::error::Error;
use crate::lease::HeldTask;
use crate::services::Services;
use crate::store::{Record, StoreError};
use farrier_conductor::Error as TaskError;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Node, PowerState};
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use uuid::Uuid;

/// A machine that was read.
pub(crate) struct Reading {
    /// Its node.
    pub(crate) node: Uuid,
    /// The node's name.
    pub(crate) name: String,
    /// What was recorded before.
    pub(crate) recorded: Option<PowerState>,
    /// What the machine said.
    pub(crate) said: Result<PowerState, Error>,
    updated_at: OffsetDateTime,
}

impl Reading {
    fn new(node: Node, said: Result<PowerState, Error>) -> Self {
        let name = node.label();
        let Node { uuid, power_state, updated_at, .. } = node;
        Self { node: uuid, name, recorded: power_state, said, updated_at }
    }

    /// Whether the machine was asked: a driver that keeps from asking it for a while has read nothing.
    pub(crate) fn was_made(&self) -> bool {
        !matches!(self.said, Err(Error::Task(TaskError::Interface(InterfaceError::NotAsked(_)))))
    }

    /// Whether the machine says something else than what is recorded.
    pub(crate) fn contradicts(&self) -> bool {
        self.said.as_ref().is_ok_and(|said| self.recorded != Some(*said))
    }
}

/// Which nodes a pass is about.
pub(crate) type Wanted = fn(&Record, &Services) -> bool;

/// How sure a reading has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// What a machine says once counts.
    Nothing,
    /// What contradicts the record counts when the machine says it twice, with a pause between; else it is left out.
    Contradictions,
}

/// Machines that are read, the first ones first. Readings come when they are there.
pub(crate) struct PowerPass {
    services: Arc<Services>,
    nodes: std::vec::IntoIter<Uuid>,
    wanted: Wanted,
    doubt: Doubt,
    slots: Arc<Semaphore>,
    reading: JoinSet<Option<Reading>>,
}

impl PowerPass {
    /// One over the machines of those of `nodes` that are wanted.
    pub(crate) fn new(services: &Arc<Services>, nodes: Vec<Uuid>, wanted: Wanted, doubt: Doubt) -> Self {
        let most = services.settings.power_sync.sync_power_state_workers.max(1);
        let (slots, services) = (Arc::new(Semaphore::new(most)), Arc::clone(services));
        Self { services, nodes: nodes.into_iter(), wanted, doubt, slots, reading: JoinSet::new() }
    }

    /// The next reading; nothing when all are there.
    pub(crate) async fn next(&mut self) -> Option<Reading> {
        loop {
            let has_more = self.nodes.len() > 0;
            tokio::select! {
                Ok(slot) = Arc::clone(&self.slots).acquire_owned(), if has_more => {
                    let Some(node) = self.nodes.next() else { continue };
                    let (services, slots) = (Arc::clone(&self.services), Arc::clone(&self.slots));
                    self.reading.spawn(read_surely(services, slots, slot, node, self.wanted, self.doubt));
                }
                Some(read) = self.reading.join_next(), if !self.reading.is_empty() => {
                    if let Ok(Some(reading)) = read {
                        return Some(reading);
                    }
                }
                else => return None,
            }
        }
    }
}

/// Reads a machine as often as doubt wants it. What one reading needs is given back before a pause: many may pause.
async fn read_surely(
    services: Arc<Services>,
    slots: Arc<Semaphore>,
    slot: OwnedSemaphorePermit,
    node: Uuid,
    wanted: Wanted,
    doubt: Doubt,
) -> Option<Reading> {
    let first = Box::pin(read_one(&services, slot, node, wanted)).await?;
    if doubt == Doubt::Nothing || !first.contradicts() {
        return Some(first);
    }
    tokio::time::sleep(services.settings.check_interval).await;
    let slot = slots.acquire_owned().await.ok()?;
    let second = Box::pin(read_one(&services, slot, node, wanted)).await?;
    let is_sure = second.said.as_ref().map_or(true, |said| first.said.as_ref().ok() == Some(said));
    is_sure.then_some(second)
}

async fn read_one(
    services: &Arc<Services>,
    slot: OwnedSemaphorePermit,
    node: Uuid,
    wanted: Wanted,
) -> Option<Reading> {
    let record = match services.store.get(node).await {
        Ok(record) => record.filter(|record| wanted(record, services))?,
        // No node stops the others.
        Err(error) => {
            tracing::error!(%node, "the record of a node cannot be read: {error}");
            return None;
        }
    };
    let said = services.power_state_in(slot, &record.node).await;
    Some(Reading::new(record.node, said))
}

/// The node that was read, under its lease, unless anything happened to it since, or somebody has it.
pub(crate) async fn unchanged(services: &Arc<Services>, seen: &Reading) -> Result<Option<HeldTask>, Error> {
    match HeldTask::try_acquire(services, seen.node).await {
        Ok(task) if task.node.updated_at == seen.updated_at => Ok(Some(task)),
        Ok(task) => task.leave().await.map(|()| None),
        Err(Error::Store(StoreError::Held { .. } | StoreError::Gone(_))) => Ok(None),
        Err(error) => Err(error),
    }
}
