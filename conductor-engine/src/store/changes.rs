//! Hints of a store that a node has something for its worker.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

/// Most hints that wait for a receiver. A receiver that is later gets [`Changed::Unknown`].
const KEPT: usize = 1024;

/// Where a store publishes what has changed.
#[derive(Debug, Clone)]
pub struct ChangeFeed(broadcast::Sender<Uuid>);

/// What has changed from now on: hints, of which any may be missing. The records are the truth, and are read again now and
/// then.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Uuid>);

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// A heartbeat of this node was recorded, or an order was written.
    Node(Uuid),
    /// The same of some nodes, whose identities are lost because the receiver was late.
    Unknown,
}

impl Default for ChangeFeed {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl ChangeFeed {
    /// Publishes that a heartbeat of a node was recorded, or an order written.
    pub fn publish(&self, node: Uuid) {
        // It fails where nothing receives.
        drop(self.0.send(node));
    }

    /// What is published from now on.
    pub fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }
}

impl Changes {
    /// Waits for the next change. Nothing when the store is gone.
    pub async fn next(&mut self) -> Option<Changed> {
        match self.0.recv().await {
            Ok(node) => Some(Changed::Node(node)),
            Err(RecvError::Lagged(_)) => Some(Changed::Unknown),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_receiver_that_is_late_learns_that_it_missed_changes() {
        let feed = ChangeFeed::default();
        let mut changes = feed.changes();
        for _ in 0..=KEPT {
            feed.publish(Uuid::nil());
        }
        assert_eq!(changes.next().await, Some(Changed::Unknown));
        assert_eq!(changes.next().await, Some(Changed::Node(Uuid::nil())));
        drop(feed);
        while changes.next().await.is_some() {}
    }
}
