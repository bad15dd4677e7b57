//! How long writers wait for their turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// Records and orders.
    Record,
    /// Heartbeats and leases.
    Mailbox,
}

impl WriteKind {
    /// All kinds.
    pub const ALL: &[Self] = &[Self::Record, Self::Mailbox];

    /// The kind as it is named in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Mailbox => "mailbox",
        }
    }
}

/// How often writers of a kind got their turn, and how long they waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waited {
    /// Turns.
    pub turns: u64,
    /// All waits together.
    pub total: Duration,
}

/// Counts the waits of a store.
#[derive(Debug, Default)]
pub struct Waits([(AtomicU64, AtomicU64); 2]);

impl Waits {
    /// Counts a wait.
    pub fn note(&self, kind: WriteKind, waited: Duration) {
        let (turns, micros) = &self.0[kind as usize];
        turns.fetch_add(1, Ordering::Relaxed);
        micros.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The waits of a kind since the store was opened.
    pub fn of(&self, kind: WriteKind) -> Waited {
        let (turns, micros) = &self.0[kind as usize];
        let total = Duration::from_micros(micros.load(Ordering::Relaxed));
        Waited { turns: turns.load(Ordering::Relaxed), total }
    }
}
