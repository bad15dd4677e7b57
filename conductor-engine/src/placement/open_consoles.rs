//! The consoles that this process has opened: a BMC has one session, which is this conductor's while it leads the node.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The nodes whose consoles this process has opened.
#[derive(Debug, Default)]
pub(crate) struct OpenConsoles(Mutex<HashSet<Uuid>>);

impl OpenConsoles {
    /// Whether this process has opened the console of a node.
    pub(crate) fn has(&self, node: Uuid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&node)
    }

    /// Takes note that this process has opened the console of a node, or closed it.
    pub(crate) fn note(&self, node: Uuid, is_open: bool) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match is_open {
            true => open.insert(node),
            false => open.remove(&node),
        };
    }
}
