//! A lease that is kept for as long as somebody works (sections 12.2 and 13.7).

use crate::error::Error;
use crate::lease::claim::Claim;
use crate::lease::renewal;
use crate::placement::own_leases::HeldLease;
use crate::records::PendingOrder;
use crate::services::Services;
use crate::store::{Lease, Record, StoreError};
use farrier_conductor::model::{Activity, Node};
use std::sync::Arc;
use tokio::runtime::Handle;
use uuid::Uuid;

/// The lease of a node, [renewed](super::renewal) until this is dropped.
///
/// The store refuses the writes of a conductor that was overtaken. A machine cannot refuse: so before each act on one
/// [`Self::hold`] has the store confirm the lease, and an act ends when the lease is known to be [lost](Self::lost). No
/// clock of this host decides: one stands still while the host is suspended, and the other jumps.
///
/// A node has at most one reservation in a process, whatever the clock says of its lease.
pub(super) struct Reservation {
    held: HeldLease,
    /// What becomes of the lease when this is dropped.
    pub(super) end: End,
    /// Nothing once the lease ends in the background.
    claim: Option<Claim>,
    services: Arc<Services>,
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
        let renewed = services.store.renew(reservation.lease(), services.terms().expires_at).await;
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
        let services = Arc::clone(&claim.services);
        let held = services.own_leases.hold(lease);
        Self { held, end, claim: Some(claim), services }
    }

    /// The lease.
    pub(super) fn lease(&self) -> &Lease {
        &self.held.lease
    }

    /// Has the store confirm the lease, which lasts for a whole one from now on.
    pub(super) async fn hold(&self) -> Result<(), StoreError> {
        renewal::renew(&self.services, &self.held).await
    }

    /// Takes note of what the store has answered: it may have refused a lease that is lost.
    pub(super) fn answered<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.services.own_leases.note(&self.held, &answer);
        answer
    }

    /// Waits until the lease is known to be lost.
    pub(super) async fn lost(&self) -> StoreError {
        self.held.lost().await
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.held.is_lost() {
            return;
        }
        match self.end {
            End::IsOver => {}
            End::Leave => self.services.own_leases.leave(self.lease().clone()),
            End::Release => {
                let Ok(runtime) = Handle::try_current() else { return };
                let (services, lease) = (Arc::clone(&self.services), self.lease().clone());
                let claim = self.claim.take();
                runtime.spawn(async move {
                    if let Err(error) = services.store.release(&lease).await {
                        tracing::warn!("a lease is left to expire: {error}");
                    }
                    // Those that wait for the node find it free.
                    drop(claim);
                });
            }
        }
    }
}
