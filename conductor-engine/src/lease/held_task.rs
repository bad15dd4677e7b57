//! A task with the lease of its node: what the conductor itself works with, and lends to interfaces.

use crate::error::Error;
use crate::evidence::diagnosis::Diagnosis;
use crate::lease::node_lease::NodeLease;
use crate::lease::reservation::Reservation;
use crate::records::PendingOrder;
use crate::services::Services;
use crate::store::{Changed, Changes, ConfigDrive, Record, StoreError};
use farrier_conductor::model::{Activity, Node};
use farrier_conductor::{Host, Settings, Task};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;
use uuid::Uuid;

/// A task that holds the lease of its node.
pub(crate) struct HeldTask(Task<NodeLease>);

impl Deref for HeldTask {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.0
    }
}

impl DerefMut for HeldTask {
    fn deref_mut(&mut self) -> &mut Task {
        &mut self.0
    }
}

impl HeldTask {
    /// Takes the lease of a node, at once or not at all.
    pub(crate) async fn try_acquire(services: &Arc<Services>, uuid: Uuid) -> Result<Self, Error> {
        let (reservation, record) = Reservation::take(services, uuid).await?;
        Ok(Self::of(services, reservation, record))
    }

    /// Goes on with a node that a task of this process left, if one did and nobody else took it meanwhile.
    pub(crate) async fn pick_up(services: &Arc<Services>, uuid: Uuid) -> Result<Option<Self>, Error> {
        let left = Reservation::pick_up(services, uuid).await?;
        Ok(left.map(|(reservation, record)| Self::of(services, reservation, record)))
    }

    fn of(services: &Arc<Services>, reservation: Reservation, record: Record) -> Self {
        let lease = NodeLease::new(Arc::clone(services), reservation, &record);
        Self(Task::new(record.node, record.session, lease))
    }

    /// Takes the lease of a node for an operator, with some patience. What is ordered already is carried out before: an order
    /// never replaces another one, and least of all the cleanup of what has failed.
    ///
    /// When a task of this process has the node, this goes on as soon as that task has ended; another conductor's is looked
    /// at again now and then.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] when that takes longer.
    pub(crate) async fn acquire(services: &Arc<Services>, id: &str) -> Result<Self, Error> {
        let Settings { node_locked_attempts, node_locked_pause, .. } = services.settings;
        let end = Instant::now() + node_locked_pause * node_locked_attempts.saturating_sub(1);
        let mut freed = services.own_leases.freed();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match Self::acquire_once(services, id).await {
                Err(Error::Store(StoreError::Held { node, .. })) if !left.is_zero() => {
                    // Should time run out meanwhile, it is tried once more.
                    drop(timeout(left.min(node_locked_pause), is_freed(&mut freed, node)).await);
                }
                other => return other,
            }
        }
    }

    async fn acquire_once(services: &Arc<Services>, id: &str) -> Result<Self, Error> {
        let record = services.find(id).await?;
        let node = record.node.uuid;
        let held = || StoreError::Held { node, holder: services.settings.conductor_name.clone() };
        if is_ordered(&record.node, record.order.as_ref()) {
            return Err(held().into());
        }
        let task = Self::try_acquire(services, node).await?;
        match is_ordered(&task.node, task.order()) {
            // Dropped, the lease is left to the worker.
            true => Err(held().into()),
            false => Ok(task),
        }
    }

    /// What all tasks share.
    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.0.host().services
    }

    /// Whether the conductor that worked on the node before stopped in the middle.
    pub(crate) fn follows_crash(&self) -> bool {
        self.0.host().follows_crash()
    }

    /// What is ordered.
    pub(crate) fn order(&self) -> Option<&PendingOrder> {
        self.0.host().order.as_ref()
    }

    /// What is ordered; changes count once saved.
    pub(crate) fn order_mut(&mut self) -> &mut Option<PendingOrder> {
        &mut self.0.host_mut().order
    }

    /// Nothing is proven any more of the disks, which counts once saved.
    pub(crate) fn forget_certificates(&mut self) {
        self.0.host_mut().certificates.forget();
        self.node.driver_internal_info.erasure = None;
    }

    /// Forgets why an earlier boot of the machine failed, which counts once saved.
    pub(crate) fn forget_diagnosis(&mut self) {
        self.0.host_mut().forget_diagnosis();
    }

    /// Keeps what could be had of the machine, which counts once saved.
    pub(crate) fn note_diagnosis(&mut self, words: Diagnosis) {
        self.0.host_mut().diagnosis.note(words);
    }

    /// Stores what changed, and the config drive.
    pub(crate) async fn save_with(&mut self, config_drive: ConfigDrive<'_>) -> Result<(), Error> {
        self.write(config_drive, false).await
    }

    /// Stores what changed, and leaves the node to others.
    pub(crate) async fn finish(self) -> Result<(), Error> {
        self.finish_with(ConfigDrive::Keep).await
    }

    /// Stores what changed, and the config drive, and leaves the node to others.
    pub(crate) async fn finish_with(mut self, config_drive: ConfigDrive<'_>) -> Result<(), Error> {
        self.write(config_drive, true).await
    }

    /// Leaves the node to others. What changed and was not saved never was.
    pub(crate) async fn leave(mut self) -> Result<(), Error> {
        Ok(self.0.host_mut().release().await?)
    }

    /// Forgets the node itself.
    pub(crate) async fn delete(mut self) -> Result<(), Error> {
        Ok(self.0.host_mut().delete().await?)
    }

    async fn write(&mut self, config_drive: ConfigDrive<'_>, ends_lease: bool) -> Result<(), Error> {
        let (change, lease) = self.0.changes();
        lease.write(change, config_drive, ends_lease).await?;
        self.0.mark_saved();
        Ok(())
    }
}

/// Waits until a task of this process needs a node no more.
async fn is_freed(freed: &mut Changes, node: Uuid) {
    while let Some(Changed::Node(other)) = freed.next().await
        && other != node
    {}
}

/// Whether something is ordered of a node that is carried out before anything else can be. The order of an operation that
/// waits goes with the operation.
fn is_ordered(node: &Node, order: Option<&PendingOrder>) -> bool {
    match (node.provision_state.activity(), order) {
        (_, None) => false,
        (Activity::Work | Activity::Wait, Some(order)) => order.verb.power_action().is_some(),
        (Activity::Rest | Activity::Hold | Activity::Failed, Some(_)) => true,
    }
}
