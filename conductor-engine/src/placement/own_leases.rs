//! The leases that tasks of this process have, which decide before any clock does: a node that this process works on is taken
//! by no other task of it.

use crate::store::Lease;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The leases of this process.
#[derive(Debug, Default)]
pub(crate) struct OwnLeases(Mutex<HashMap<Uuid, OwnLease>>);

/// A lease of this process.
#[derive(Debug)]
enum OwnLease {
    /// A task has it, or takes it now.
    Held,
    /// Its task ended without a word, because its client went away, it panicked, or the store failed, while the node was
    /// worked on, or may have been. The task that takes up the node in this process has it.
    Left(Lease),
}

impl OwnLeases {
    fn table(&self) -> MutexGuard<'_, HashMap<Uuid, OwnLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes whose lease was left.
    pub(crate) fn left(&self) -> Vec<Uuid> {
        let table = self.table();
        let left = table.iter().filter(|(_, lease)| matches!(lease, OwnLease::Left(_)));
        left.map(|(node, _)| *node).collect()
    }

    /// Whether this process has the lease of a node, be it left.
    pub(crate) fn has(&self, node: Uuid) -> bool {
        self.table().contains_key(&node)
    }

    /// Lets one task take the lease of a node, unless this process has it.
    pub(crate) fn claim(&self, node: Uuid) -> bool {
        let mut table = self.table();
        let is_free = !table.contains_key(&node);
        if is_free {
            table.insert(node, OwnLease::Held);
        }
        is_free
    }

    /// Lets one task have the lease of a node that was left.
    pub(crate) fn claim_left(&self, node: Uuid) -> Option<Lease> {
        let mut table = self.table();
        let own = table.get_mut(&node)?;
        match std::mem::replace(own, OwnLease::Held) {
            OwnLease::Left(lease) => Some(lease),
            OwnLease::Held => None,
        }
    }

    /// Leaves the lease to the task that takes up the node.
    pub(crate) fn leave(&self, lease: Lease) {
        self.table().insert(lease.node, OwnLease::Left(lease));
    }

    /// A task needs the lease of a node no more, unless it was left.
    pub(crate) fn end(&self, node: Uuid) {
        let mut table = self.table();
        if matches!(table.get(&node), Some(OwnLease::Held)) {
            table.remove(&node);
        }
    }
}
