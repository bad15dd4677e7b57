//! The leases that tasks of this process have, which decide before any clock does: a node that this process works on is taken
//! by no other task of it.

use crate::store::{ChangeFeed, Changes, Lease, StoreError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use uuid::Uuid;

/// The leases of this process.
#[derive(Debug, Default)]
pub(crate) struct OwnLeases {
    table: Mutex<HashMap<Uuid, OwnLease>>,
    /// The nodes whose lease a task gave up.
    freed: ChangeFeed,
    renewed: AtomicU64,
    lost: AtomicU64,
}

/// A lease of this process.
#[derive(Debug)]
enum OwnLease {
    /// A task takes it now.
    Claimed,
    /// A task has it, and learns of its loss.
    Held(HeldLease),
    /// Its task ended without a word, because its client went away, it panicked, or the store failed, while the node was
    /// worked on, or may have been. The task that takes up the node in this process has it.
    Left(Lease),
}

/// A lease that a task has.
#[derive(Debug, Clone)]
pub(crate) struct HeldLease {
    pub(crate) lease: Lease,
    /// Why it is lost, once it is known to be.
    lost: Arc<watch::Sender<Option<LostLease>>>,
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

impl HeldLease {
    /// Whether it is known to be lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Waits until it is known to be lost.
    pub(crate) async fn lost(&self) -> StoreError {
        let mut lost = self.lost.subscribe();
        // The sender lives as long as this.
        let found = lost.wait_for(Option::is_some).await.ok().and_then(|lost| *lost);
        match found {
            Some(lost) => lost.error(self.lease.node),
            None => std::future::pending().await,
        }
    }
}

impl OwnLeases {
    fn table(&self) -> MutexGuard<'_, HashMap<Uuid, OwnLease>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes whose lease was left.
    pub(crate) fn left(&self) -> Vec<Uuid> {
        let table = self.table();
        let left = table.iter().filter(|(_, lease)| matches!(lease, OwnLease::Left(_)));
        left.map(|(node, _)| *node).collect()
    }

    /// The leases that tasks have.
    pub(crate) fn held(&self) -> Vec<HeldLease> {
        let table = self.table();
        let held = table.values().filter_map(|own| match own {
            OwnLease::Held(held) => Some(held.clone()),
            OwnLease::Claimed | OwnLease::Left(_) => None,
        });
        held.collect()
    }

    /// Whether a task has this lease now.
    pub(crate) fn holds(&self, lease: &Lease) -> bool {
        matches!(self.table().get(&lease.node), Some(OwnLease::Held(held)) if held.lease == *lease)
    }

    /// Whether the lease of a node was left.
    pub(crate) fn is_left(&self, node: Uuid) -> bool {
        matches!(self.table().get(&node), Some(OwnLease::Left(_)))
    }

    /// Whether a task of this process has the lease of a node, left it, or claims it.
    pub(crate) fn has(&self, node: Uuid) -> bool {
        self.table().contains_key(&node)
    }

    /// Whether this process knows the lease of a node: a task has it, or left it. A task that only claims it does not know yet
    /// whose lease the store has, which may be one whose answer was lost on its way to this process.
    pub(crate) fn knows(&self, node: Uuid) -> bool {
        matches!(self.table().get(&node), Some(OwnLease::Held(_) | OwnLease::Left(_)))
    }

    /// Lets one task take the lease of a node, unless this process has it.
    pub(crate) fn claim(&self, node: Uuid) -> bool {
        let mut table = self.table();
        let is_free = !table.contains_key(&node);
        if is_free {
            table.insert(node, OwnLease::Claimed);
        }
        is_free
    }

    /// Lets one task have the lease of a node that was left.
    pub(crate) fn claim_left(&self, node: Uuid) -> Option<Lease> {
        let mut table = self.table();
        let own = table.get_mut(&node).filter(|own| matches!(own, OwnLease::Left(_)))?;
        match std::mem::replace(own, OwnLease::Claimed) {
            OwnLease::Left(lease) => Some(lease),
            OwnLease::Claimed | OwnLease::Held(_) => None,
        }
    }

    /// A task has the lease that it claimed.
    pub(crate) fn hold(&self, lease: Lease) -> HeldLease {
        let held = HeldLease { lease, lost: Arc::new(watch::Sender::new(None)) };
        self.table().insert(held.lease.node, OwnLease::Held(held.clone()));
        held
    }

    /// Leaves the lease to the task that takes up the node.
    pub(crate) fn leave(&self, lease: Lease) {
        self.table().insert(lease.node, OwnLease::Left(lease));
    }

    /// A task gives up the lease of a node. Requests and workers that wait for the node continue.
    pub(crate) fn end(&self, node: Uuid) {
        let mut table = self.table();
        if !matches!(table.get(&node), Some(OwnLease::Left(_))) {
            table.remove(&node);
        }
        drop(table);
        self.freed.publish(node);
    }

    /// The nodes whose lease a task of this process gives up from now on.
    pub(crate) fn freed(&self) -> Changes {
        self.freed.changes()
    }

    /// Takes note of what the store has answered: it may have refused a lease that is lost.
    pub(crate) fn note<T>(&self, held: &HeldLease, answer: &Result<T, StoreError>) {
        if let Some(why) = answer.as_ref().err().and_then(LostLease::of)
            && held.lost.send_replace(Some(why)).is_none()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many leases were renewed.
    pub(crate) fn count_renewed(&self, leases: usize) {
        self.renewed.fetch_add(leases as u64, Ordering::Relaxed);
    }

    /// How many leases this process has, has renewed, and has lost.
    pub(crate) fn counts(&self) -> (usize, u64, u64) {
        let held = self.table().len();
        (held, self.renewed.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}
