//! A lease that is kept for as long as somebody works (sections 12.2 and 13.7).

use crate::error::Error;
use crate::records::PendingOrder;
use crate::services::Services;
use crate::store::{Lease, Record, StoreError};
use farrier_conductor::model::{Activity, Node};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant};
use uuid::Uuid;

/// The lease of a node, renewed in the background until this is dropped.
///
/// The store refuses the writes of a conductor whose lease was taken. A machine cannot refuse: so before each act on one
/// [`Self::hold`] makes sure that the lease lasts. A conductor that was stopped for longer than its lease finds out
/// there, or by its next write, that somebody else works on the node.
pub(super) struct Reservation {
    services: Arc<Services>,
    pub(super) lease: Lease,
    /// When the lease was last known to be ours.
    held_at: Arc<Mutex<Instant>>,
    renewal: AbortHandle,
    /// What becomes of the lease when this is dropped.
    pub(super) end: End,
}

/// What becomes of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It has ended in the store already.
    IsOver,
    /// It ends at once: nobody needs it.
    Release,
    /// It stays, because the node is worked on: a task that goes on in this process has it, and when none does, it expires.
    Leave,
}

impl End {
    fn of(record: &Record) -> Self {
        Self::when(&record.node, record.order.as_ref())
    }

    /// What becomes of the lease of a node that is recorded like this. A node that waits has its deadline.
    pub(super) fn when(node: &Node, order: Option<&PendingOrder>) -> Self {
        match (node.provision_state.activity(), order) {
            (Activity::Work, _) => Self::Leave,
            (Activity::Wait, _) => Self::Release,
            (Activity::Rest | Activity::Hold | Activity::Failed, Some(_)) => Self::Leave,
            (Activity::Rest | Activity::Hold | Activity::Failed, None) => Self::Release,
        }
    }
}

impl Reservation {
    /// Takes the lease of a node, at once or not at all. Tells whether this process had left it.
    ///
    /// The caller may be cancelled meanwhile; then it ends again, and is not left to expire.
    pub(super) async fn take(services: &Arc<Services>, uuid: Uuid) -> Result<(Self, Record, bool), Error> {
        let services = Arc::clone(services);
        let taken = tokio::spawn(async move {
            if let Some((reservation, record)) = Self::pick_up(&services, uuid).await? {
                return Ok((reservation, record, true));
            }
            let taken_at = Instant::now();
            let (lease, record) = services.store.take(uuid, &services.terms()).await?;
            Ok((Self::new(&services, lease, End::of(&record), taken_at), record, false))
        });
        match taken.await {
            Ok(taken) => taken,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and this with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Goes on with the lease that a task of this process left, unless it was overtaken.
    pub(super) async fn pick_up(
        services: &Arc<Services>,
        uuid: Uuid,
    ) -> Result<Option<(Self, Record)>, Error> {
        let Some(lease) = services.left_leases().remove(&uuid) else { return Ok(None) };
        // Dropped on an error of the store, it is left again.
        let mut reservation = Self::new(services, lease, End::Leave, Instant::now());
        let renewed = services.store.renew(&reservation.lease, services.terms().expires_at).await;
        let record = services.store.get(uuid).await?;
        match (renewed, record) {
            (Ok(()), Some(record)) => {
                reservation.end = End::of(&record);
                Ok(Some((reservation, record)))
            }
            (Ok(()) | Err(StoreError::Overtaken(_) | StoreError::Gone(_)), _) => {
                reservation.end = End::IsOver;
                Ok(None)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    fn new(services: &Arc<Services>, lease: Lease, end: End, taken_at: Instant) -> Self {
        let held_at = Arc::new(Mutex::new(taken_at));
        let renewal = renew_until_dropped(Arc::clone(services), lease.clone(), Arc::clone(&held_at));
        let renewal = tokio::spawn(renewal).abort_handle();
        Self { services: Arc::clone(services), lease, held_at, renewal, end }
    }

    /// Makes sure that the lease lasts for a while yet, and renews it where it does not.
    pub(super) async fn hold(&self) -> Result<(), StoreError> {
        let held_at = *self.held_at.lock().unwrap_or_else(PoisonError::into_inner);
        if held_at.elapsed() < self.services.settings.lease / 2 {
            return Ok(());
        }
        renew(&self.services, &self.lease, &self.held_at).await
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.renewal.abort();
        match self.end {
            End::IsOver => {}
            End::Leave => {
                self.services.left_leases().insert(self.lease.node, self.lease.clone());
            }
            End::Release => {
                let Ok(runtime) = Handle::try_current() else { return };
                let (services, lease) = (Arc::clone(&self.services), self.lease.clone());
                runtime.spawn(async move {
                    if let Err(error) = services.store.release(&lease).await {
                        tracing::warn!("a lease is left to expire: {error}");
                    }
                });
            }
        }
    }
}

async fn renew_until_dropped(services: Arc<Services>, lease: Lease, held_at: Arc<Mutex<Instant>>) {
    loop {
        tokio::time::sleep(pause(services.settings.lease)).await;
        match renew(&services, &lease, &held_at).await {
            Ok(()) => {}
            Err(error @ (StoreError::Overtaken(_) | StoreError::Gone(_))) => {
                tracing::warn!("work on a node ends: {error}");
                return;
            }
            // The lease lasts for two more attempts.
            Err(error) => tracing::warn!("a lease cannot be renewed: {error}"),
        }
    }
}

async fn renew(services: &Services, lease: &Lease, held_at: &Mutex<Instant>) -> Result<(), StoreError> {
    let renewed_at = Instant::now();
    services.store.renew(lease, services.terms().expires_at).await?;
    *held_at.lock().unwrap_or_else(PoisonError::into_inner) = renewed_at;
    Ok(())
}

/// Three attempts fit into a lease.
fn pause(lease: Duration) -> Duration {
    lease / 4
}
