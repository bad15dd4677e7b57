//! A clock that a test moves.

use crate::model::clock::{Clock, SystemClock};
use std::sync::{Arc, Mutex, PoisonError};
use time::{Duration, OffsetDateTime};

/// The clock of the system with an offset, which all clones share.
#[derive(Debug, Clone, Default)]
pub struct JumpingClock(Arc<Mutex<Duration>>);

impl JumpingClock {
    /// Sets the clock forward, or back by a negative duration.
    pub fn jump(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> OffsetDateTime {
        SystemClock.now() + *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
