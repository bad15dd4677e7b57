//! Stopping a write from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by the thread that runs a write and those that may stop it.
#[derive(Debug, Clone, Default)]
pub struct CancelHandle(Arc<AtomicBool>);

impl CancelHandle {
    /// Asks the write to stop; it ends as a failure (P11).
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether that was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
