//! How long nodes stayed in their states, as this process has seen it.

use farrier_conductor::model::ProvisionState;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long nodes stayed in a state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateTime {
    /// How often a node left it.
    pub ended: u64,
    /// How long these nodes were in it, in all.
    pub total: Duration,
}

/// The same of each state.
#[derive(Debug, Default)]
pub(crate) struct StateTimes(Mutex<BTreeMap<ProvisionState, StateTime>>);

impl StateTimes {
    /// A node leaves a state after a time.
    pub(crate) fn end(&self, state: ProvisionState, after: time::Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let time = times.entry(state).or_default();
        time.ended += 1;
        // A clock that was set back gives no time.
        time.total += Duration::try_from(after).unwrap_or_default();
    }

    /// The times so far.
    pub(crate) fn so_far(&self) -> BTreeMap<ProvisionState, StateTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
