//! One lock per node: whoever holds it is the only one who changes the node (contract 12.2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

/// The locks of all nodes. A lock ends with its guard, so a task that panics locks nobody out.
#[derive(Debug, Default)]
pub(crate) struct NodeLocks(Mutex<HashMap<Uuid, Arc<tokio::sync::Mutex<()>>>>);

impl NodeLocks {
    /// The lock of a node, or nothing when somebody holds it.
    pub(crate) fn try_lock(&self, node: Uuid) -> Option<OwnedMutexGuard<()>> {
        self.of(node).try_lock_owned().ok()
    }

    /// Whether somebody holds the lock of a node.
    pub(crate) fn is_locked(&self, node: Uuid) -> bool {
        self.of(node).try_lock().is_err()
    }

    /// Forgets a node that was deleted.
    pub(crate) fn forget(&self, node: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
    }

    fn of(&self, node: Uuid) -> Arc<tokio::sync::Mutex<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(node).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_ends_with_it() {
        let locks = NodeLocks::default();
        let guard = locks.try_lock(Uuid::nil()).unwrap();
        assert!(locks.is_locked(Uuid::nil()));
        assert!(locks.try_lock(Uuid::nil()).is_none());
        assert!(!locks.is_locked(Uuid::new_v4()));
        drop(guard);
        assert!(!locks.is_locked(Uuid::nil()));
    }
}
