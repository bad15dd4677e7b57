//! One worker for each node that is not at rest.
//!
//! A worker ends when there is nothing to do for its node, and is started again by an order, a heartbeat or the next
//! round of [`Conductor::run`](super::Conductor::run). It keeps nothing that matters: whatever ends it, another one
//! goes on from the store.

mod pass;
mod silence;
mod waiting;
mod work;

use crate::error::Error;
use crate::lease::HeldTask;
use crate::services::Services;
use crate::store::{Changed, StoreError};
use crate::workers::pass::{Schedule, WorkerPass, WorkerState};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

/// Pause before a worker tries again what the store refused.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The workers of this conductor.
pub(crate) struct Workers {
    services: Arc<Services>,
    slots: Mutex<HashMap<Uuid, Arc<WorkerSlot>>>,
}

/// Where a worker is told what happened to its node.
#[derive(Default)]
struct WorkerSlot {
    wake: Notify,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    is_woken: bool,
    task: Option<HeldTask>,
}

impl WorkerSlot {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    /// Nobody works yet.
    pub(crate) fn new(services: Arc<Services>) -> Arc<Self> {
        Arc::new(Self { services, slots: Mutex::default() })
    }

    /// Hands a node over under its lease.
    pub(crate) fn hand_over(self: &Arc<Self>, task: HeldTask) {
        self.tell(task.node.uuid, |inbox| (inbox.is_woken, inbox.task) = (true, Some(task)));
    }

    /// Has a worker begin with a heartbeat of a node that no worker looks after; a worker that does is woken by the
    /// [changes](crate::store::NodeStore::changed) of the store.
    pub(crate) fn begin(self: &Arc<Self>, node: Uuid) {
        if !self.slots().contains_key(&node) {
            self.tell(node, |inbox| inbox.is_woken = true);
        }
    }

    /// Wakes the workers of nodes that have changed.
    pub(crate) fn wake(&self, changed: Changed) {
        let slots = self.slots();
        let wake = |slot: &Arc<WorkerSlot>| {
            slot.inbox().is_woken = true;
            slot.wake.notify_one();
        };
        match changed {
            Changed::Node(node) => slots.get(&node).into_iter().for_each(wake),
            Changed::Unknown => slots.values().for_each(wake),
        }
    }

    /// Has a worker look after a node, if none does.
    pub(crate) fn attend(self: &Arc<Self>, node: Uuid) {
        self.tell(node, |_| {});
    }

    fn tell(self: &Arc<Self>, node: Uuid, tell: impl FnOnce(&mut Inbox)) {
        let mut slots = self.slots();
        let is_new = !slots.contains_key(&node);
        let slot = Arc::clone(slots.entry(node).or_default());
        let is_woken = {
            let mut inbox = slot.inbox();
            tell(&mut inbox);
            inbox.is_woken
        };
        if is_new {
            tokio::spawn(Arc::clone(self).work(node, slot));
        } else if is_woken {
            slot.wake.notify_one();
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<WorkerSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(self: Arc<Self>, node: Uuid, slot: Arc<WorkerSlot>) {
        let mut state = if slot.inbox().is_woken { WorkerState::woken() } else { WorkerState::new() };
        loop {
            let handed = {
                let mut inbox = slot.inbox();
                inbox.is_woken = false;
                inbox.task.take()
            };
            let pass = WorkerPass::new(Arc::clone(&self.services), node);
            // A task of its own, so that work that panics ends its node's operation and nothing else.
            let taken = tokio::spawn(async move {
                let next = pass.take(handed, &mut state).await;
                (next, state)
            });
            let next = match taken.await {
                Ok((next, after)) => {
                    state = after;
                    next
                }
                Err(_) => {
                    state = WorkerState::new();
                    let pass = WorkerPass::new(Arc::clone(&self.services), node);
                    pass.fail("the conductor's own work crashed; see its log").await
                }
            };
            let pause = match next {
                Ok(Schedule::Again) => continue,
                Ok(Schedule::Nothing) => match self.leave(node, &slot) {
                    true => return,
                    false => continue,
                },
                Ok(Schedule::After(pause)) => pause,
                Err(error) => self.pause_after(&error),
            };
            tokio::select! {
                () = slot.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Leaves the slot, unless somebody has said something meanwhile.
    fn leave(&self, node: Uuid, slot: &WorkerSlot) -> bool {
        let mut slots = self.slots();
        let leaves = !slot.inbox().is_woken;
        if leaves {
            slots.remove(&node);
        }
        leaves
    }

    /// Errors of the store end no operation: what is recorded is gone on with when it works again.
    fn pause_after(&self, error: &Error) -> Duration {
        match error {
            Error::Store(StoreError::Held { .. } | StoreError::Overtaken(_)) => {
                tracing::debug!("{error}");
                self.services.settings.node_locked_pause
            }
            error => {
                tracing::error!("work on a node pauses: {error}");
                STORE_PAUSE
            }
        }
    }
}
