//! One worker for each node that is not at rest.
//!
//! A worker ends when there is nothing to do for its node, and is started again by an order, a heartbeat or the next
//! round of [`Conductor::run`](super::Conductor::run). It keeps nothing that matters: whatever ends it, another one
//! goes on from the store.

mod pass;
mod power_check;
mod silence;
mod waiting;
mod work;

use crate::error::{Error, Reason, codes};
use crate::lease::HeldTask;
use crate::services::{Phase, Services};
use crate::store::{Changed, StoreError};
use crate::workers::pass::{Schedule, WorkerPass, WorkerState};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;
use uuid::Uuid;

/// Pause before a worker tries again what the store refused.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// How many workers make their first pass at a time: when a conductor starts, or thousands of orders come at once, BMCs,
/// networks and the store are not asked by all of them together.
const BEGINNERS: usize = 50;

/// How long a worker that begins keeps others from it: what hangs holds up nobody.
const HEAD_START: Duration = Duration::from_secs(1);

/// The workers of this conductor.
pub(crate) struct Workers {
    services: Arc<Services>,
    slots: Mutex<HashMap<Uuid, Arc<WorkerSlot>>>,
    passes: Passes,
    /// How many workers make their first pass at a time.
    begins: Semaphore,
    /// Told when a worker has ended.
    ended: Notify,
}

/// The passes that were made.
#[derive(Default)]
struct Passes {
    count: AtomicU64,
    micros: AtomicU64,
}

impl Passes {
    fn note(&self, took: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// What workers do, in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerFigures {
    /// Workers, one for each node that is not at rest.
    pub workers: usize,
    /// Passes that they made.
    pub passes: u64,
    /// How long these took together.
    pub pass_time: Duration,
    /// For how long the heartbeat or order waits that is served last.
    pub longest_wait: Duration,
}

/// Where a worker is told what happened to its node.
#[derive(Default)]
struct WorkerSlot {
    wake: Notify,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    /// Since when the worker is to look at its node.
    woken_at: Option<Instant>,
    /// Whether it waits for somebody else to give the lease back.
    waits_for_lease: bool,
    task: Option<HeldTask>,
}

impl Inbox {
    fn wake(&mut self) {
        self.woken_at.get_or_insert_with(Instant::now);
    }
}

impl WorkerSlot {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    /// Nobody works yet.
    pub(crate) fn new(services: Arc<Services>) -> Arc<Self> {
        let (slots, passes, ended) = Default::default();
        Arc::new(Self { services, slots, passes, begins: Semaphore::new(BEGINNERS), ended })
    }

    /// What the workers do.
    pub(crate) fn figures(&self) -> WorkerFigures {
        let slots = self.slots();
        let waits = slots.values().filter_map(|slot| Some(slot.inbox().woken_at?.elapsed()));
        WorkerFigures {
            workers: slots.len(),
            passes: self.passes.count.load(Ordering::Relaxed),
            pass_time: Duration::from_micros(self.passes.micros.load(Ordering::Relaxed)),
            longest_wait: waits.max().unwrap_or_default(),
        }
    }

    /// Hands a node over under its lease. A conductor that stops leaves it to the next one.
    pub(crate) fn hand_over(self: &Arc<Self>, task: HeldTask) {
        self.tell(task.node.uuid, |inbox| {
            inbox.wake();
            inbox.task = Some(task);
        });
    }

    /// Has a worker begin with a heartbeat of a node that no worker looks after; a worker that does is woken by the
    /// [changes](crate::store::NodeStore::changed) of the store.
    pub(crate) fn begin(self: &Arc<Self>, node: Uuid) {
        if !self.slots().contains_key(&node) {
            self.tell(node, Inbox::wake);
        }
    }

    /// Wakes the workers of nodes that have changed.
    pub(crate) fn wake(&self, changed: Changed) {
        self.wake_those(changed, |_| true);
    }

    /// Wakes the workers that wait for the lease of a node that a task of this process needs no more. A worker takes a lease
    /// up that was left.
    pub(crate) fn freed(self: &Arc<Self>, freed: Changed) {
        self.wake_those(freed, |inbox| inbox.waits_for_lease);
        if let Changed::Node(node) = freed
            && self.services.own_leases.is_left(node)
        {
            self.attend(node);
        }
    }

    fn wake_those(&self, changed: Changed, wants: impl Fn(&Inbox) -> bool) {
        let slots = self.slots();
        let wake = |slot: &Arc<WorkerSlot>| {
            let mut inbox = slot.inbox();
            if wants(&inbox) {
                inbox.wake();
                slot.wake.notify_one();
            }
        };
        match changed {
            Changed::Node(node) => slots.get(&node).into_iter().for_each(wake),
            Changed::Unknown => slots.values().for_each(wake),
        }
    }

    /// Whether a worker looks after a node.
    pub(crate) fn attends(&self, node: Uuid) -> bool {
        self.slots().contains_key(&node)
    }

    /// Has a worker look after a node, if none does.
    pub(crate) fn attend(self: &Arc<Self>, node: Uuid) {
        self.tell(node, |_| {});
    }

    fn tell(self: &Arc<Self>, node: Uuid, tell: impl FnOnce(&mut Inbox)) {
        if self.services.is_stopping() {
            return;
        }
        let mut slots = self.slots();
        let is_new = !slots.contains_key(&node);
        let slot = Arc::clone(slots.entry(node).or_default());
        let is_woken = {
            let mut inbox = slot.inbox();
            tell(&mut inbox);
            inbox.woken_at.is_some()
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

    /// Waits until no worker makes a pass any more, for as long as that may take. What takes longer is cut off. From then on
    /// none begins.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.services.phase.send_modify(|phase| *phase = (*phase).max(Phase::Drains));
        if timeout(limit, self.none_works()).await.is_err() {
            let nodes = self.slots().len();
            tracing::warn!(
                "{nodes} nodes are still busy after {} s; another conductor resumes them",
                limit.as_secs()
            );
            self.services.phase.send_replace(Phase::Ends);
            // Each is cut off soon, but for one whose driver blocks its thread.
            drop(timeout(STORE_PAUSE * 2, self.none_works()).await);
        }
        self.services.phase.send_replace(Phase::Ends);
    }

    async fn none_works(&self) {
        loop {
            let ended = self.ended.notified();
            if self.slots().is_empty() {
                return;
            }
            ended.await;
        }
    }

    async fn work(self: Arc<Self>, node: Uuid, slot: Arc<WorkerSlot>) {
        self.make_passes(node, &slot).await;
        // What was handed over to a conductor that stops is left to the next one.
        drop(slot.inbox().task.take());
        let mut slots = self.slots();
        if slots.get(&node).is_some_and(|known| Arc::ptr_eq(known, &slot)) {
            slots.remove(&node);
        }
        drop(slots);
        self.ended.notify_waiters();
    }

    async fn make_passes(self: &Arc<Self>, node: Uuid, slot: &WorkerSlot) {
        let mut begins = tokio::select! {
            begins = self.begins.acquire() => begins.ok(),
            () = self.services.reaches(Phase::Drains) => None,
        };
        let is_woken = slot.inbox().woken_at.is_some();
        let mut state = if is_woken { WorkerState::woken() } else { WorkerState::new() };
        loop {
            if self.services.is_stopping() {
                return;
            }
            let handed = {
                let mut inbox = slot.inbox();
                (inbox.woken_at, inbox.waits_for_lease) = (None, false);
                inbox.task.take()
            };
            let begun = Instant::now();
            let pass = self.in_task(node, async move |pass| (pass.take(handed, &mut state).await, state));
            let next = match paced(pass, begins.take()).await {
                Ok((next, after)) => {
                    state = after;
                    next
                }
                Err(_) if self.services.is_stopping() => return,
                Err(reason) => {
                    state = WorkerState::new();
                    self.fail(node, reason).await
                }
            };
            self.passes.note(begun.elapsed());
            let pause = match next {
                Ok(Schedule::Again) => continue,
                Ok(Schedule::Nothing) => match self.leave(node, slot) {
                    true => return,
                    false => continue,
                },
                Ok(Schedule::WhenFree) => {
                    slot.inbox().waits_for_lease = true;
                    self.services.settings.check_interval
                }
                Ok(Schedule::After(pause)) => pause,
                Err(error) => self.pause_after(&error),
            };
            tokio::select! {
                () = slot.wake.notified() => {}
                () = self.services.reaches(Phase::Drains) => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Makes a pass in a task of its own, so that a pass that panics, or does not end, ends the operation of its node
    /// and nothing else. What the pass holds is dropped with it.
    async fn in_task<T: Send + 'static, F: Future<Output = T> + Send>(
        self: &Arc<Self>,
        node: Uuid,
        work: impl FnOnce(WorkerPass) -> F + Send + 'static,
    ) -> Result<T, Reason> {
        let pass = WorkerPass::new(Arc::clone(&self.services), node);
        let limit = self.services.settings.pass_timeout;
        let mut task = tokio::spawn(async move { work(pass).await });
        let text = tokio::select! {
            ended = &mut task => {
                let crashed = "the conductor's own work crashed; see its log";
                return ended.map_err(|_| Reason::new(codes::WORKER_FAILED, crashed));
            }
            () = tokio::time::sleep(limit) => {
                format!("the conductor's own work did not end within {} s; see its log", limit.as_secs())
            }
            () = self.services.reaches(Phase::Ends) => "the conductor stopped".to_owned(),
        };
        task.abort();
        // What it holds is free when its last call returns, which may be never.
        if timeout(STORE_PAUSE, task).await.is_err() {
            tracing::error!(%node, "a call of the conductor's own work does not return");
        }
        Err(Reason::new(codes::WORKER_FAILED, text))
    }

    /// Ends the operation of a node whose pass has crashed. Should that crash as well, the node is left as it is
    /// recorded, and is taken up again.
    async fn fail(self: &Arc<Self>, node: Uuid, reason: Reason) -> Result<Schedule, Error> {
        let failed = self.in_task(node, async move |pass| pass.fail(&reason).await).await;
        failed.unwrap_or_else(|reason| {
            tracing::error!(%node, "the conductor cannot clean up after a failure: {reason}");
            Ok(Schedule::After(STORE_PAUSE))
        })
    }

    /// Leaves the slot, unless somebody has said something meanwhile.
    fn leave(&self, node: Uuid, slot: &WorkerSlot) -> bool {
        let mut slots = self.slots();
        let leaves = slot.inbox().woken_at.is_none();
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

/// Makes a pass, which keeps others from beginning for a while where it is the first one of its worker.
async fn paced<T>(pass: impl Future<Output = T>, begins: Option<SemaphorePermit<'_>>) -> T {
    let mut pass = std::pin::pin!(pass);
    match timeout(HEAD_START, &mut pass).await {
        Ok(done) => done,
        Err(_) => {
            drop(begins);
            pass.await
        }
    }
}
