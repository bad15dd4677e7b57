//! A lease that is kept for as long as somebody works (sections 12.2 and 13.7).

use crate::error::Error;
use crate::lease::claim::Claim;
use crate::records::PendingOrder;
use crate::services::Services;
use crate::store::{Lease, Record, StoreError};
use farrier_conductor::model::{Activity, Node};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use uuid::Uuid;

/// The lease of a node, renewed in the background until this is dropped.
///
/// The store refuses the writes of a conductor that was overtaken. A machine cannot refuse: so before each act on one
/// [`Self::hold`] has the store confirm the lease, and an act ends when the lease is known to be [lost](Self::lost). No
/// clock of this host decides: one stands still while the host is suspended, and the other jumps.
///
/// A node has at most one reservation in a process, whatever the clock says of its lease.
pub(super) struct Reservation {
    pub(super) lease: Lease,
    /// Why the lease is lost, once it is known to be.
    lost: Arc<watch::Sender<Option<LostLease>>>,
    renewal: AbortHandle,
    /// What becomes of the lease when this is dropped.
    pub(super) end: End,
    claim: Claim,
}

/// Why a lease is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostLease {
    /// Another conductor has taken it.
    Overtaken,
    /// The node was deleted.
    Gone,
}

impl LostLease {
    fn of(error: &StoreError) -> Option<Self> {
        match error {
            StoreError::Overtaken(_) => Some(Self::Overtaken),
            StoreError::Gone(_) => Some(Self::Gone),
            _ => None,
        }
    }

    fn error(self, node: Uuid) -> StoreError {
        match self {
            Self::Overtaken => StoreError::Overtaken(node),
            Self::Gone => StoreError::Gone(node),
        }
    }
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
    /// Takes the lease of a node, at once or not at all.
    ///
    /// The caller may be cancelled meanwhile; then it ends again, and is not left to expire.
    pub(super) async fn take(services: &Arc<Services>, uuid: Uuid) -> Result<(Self, Record), Error> {
        let services = Arc::clone(services);
        let taken = tokio::spawn(async move {
            if let Some(left) = Self::pick_up(&services, uuid).await? {
                return Ok(left);
            }
            let claim = Claim::of(&services, uuid)?;
            let (lease, record) = services.store.take(uuid, &services.terms()).await?;
            Ok((Self::new(claim, lease, End::of(&record)), record))
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
        let Some((claim, lease)) = Claim::of_left(services, uuid) else { return Ok(None) };
        let lease = Lease { follows_crash: false, ..lease };
        // Dropped on an error of the store, it is left again.
        let mut reservation = Self::new(claim, lease, End::Leave);
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

    fn new(claim: Claim, lease: Lease, end: End) -> Self {
        let lost = Arc::new(watch::Sender::new(None));
        let services = Arc::clone(&claim.services);
        let renewal = renew_until_dropped(services, lease.clone(), Arc::clone(&lost));
        let renewal = tokio::spawn(renewal).abort_handle();
        Self { lease, lost, renewal, end, claim }
    }

    /// Has the store confirm the lease, which lasts for a whole one from now on.
    pub(super) async fn hold(&self) -> Result<(), StoreError> {
        renew(&self.claim.services, &self.lease, &self.lost).await
    }

    /// Takes note of what the store has answered: it may have refused a lease that is lost.
    pub(super) fn answered<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        note_lost(&self.lost, &answer);
        answer
    }

    /// Waits until the lease is known to be lost.
    pub(super) async fn lost(&self) -> StoreError {
        let mut lost = self.lost.subscribe();
        // The sender lives as long as this.
        let found = lost.wait_for(Option::is_some).await.ok().and_then(|lost| *lost);
        match found {
            Some(lost) => lost.error(self.lease.node),
            None => std::future::pending().await,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.renewal.abort();
        if self.lost.borrow().is_some() {
            return;
        }
        match self.end {
            End::IsOver => {}
            End::Leave => self.claim.services.own_leases.leave(self.lease.clone()),
            End::Release => {
                let Ok(runtime) = Handle::try_current() else { return };
                let (services, lease) = (Arc::clone(&self.claim.services), self.lease.clone());
                runtime.spawn(async move {
                    if let Err(error) = services.store.release(&lease).await {
                        tracing::warn!("a lease is left to expire: {error}");
                    }
                });
            }
        }
    }
}

async fn renew_until_dropped(
    services: Arc<Services>,
    lease: Lease,
    lost: Arc<watch::Sender<Option<LostLease>>>,
) {
    loop {
        tokio::time::sleep(pause(services.settings.lease)).await;
        match renew(&services, &lease, &lost).await {
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

async fn renew(
    services: &Services,
    lease: &Lease,
    lost: &watch::Sender<Option<LostLease>>,
) -> Result<(), StoreError> {
    let renewed = services.store.renew(lease, services.terms().expires_at).await;
    note_lost(lost, &renewed);
    renewed
}

fn note_lost<T>(lost: &watch::Sender<Option<LostLease>>, answer: &Result<T, StoreError>) {
    if let Some(why) = answer.as_ref().err().and_then(LostLease::of) {
        lost.send_replace(Some(why));
    }
}

/// Three attempts fit into a lease.
fn pause(lease: Duration) -> Duration {
    lease / 4
}
