//! A fault that waits for its moment, and what came of it.

use super::plan::Fault;
use std::time::{Duration, Instant};

/// A fault of the life that a machine is in.
#[derive(Debug, Clone)]
pub struct Armed {
    /// The fault.
    pub fault: Fault,
    /// When it took effect first.
    since: Option<Instant>,
}

impl From<Fault> for Armed {
    fn from(fault: Fault) -> Self {
        Self { fault, since: None }
    }
}

impl Armed {
    /// Whether it has taken effect.
    pub fn has_struck(&self) -> bool {
        self.since.is_some()
    }

    /// Strikes once, or each time where nothing recovers from it. Tells whether it did.
    pub fn strike(&mut self) -> bool {
        let strikes = !self.has_struck() || !self.fault.recoverable;
        self.since.get_or_insert_with(Instant::now);
        strikes
    }

    /// Strikes from the first time on for as long as it lasts, and tells for how long it still does: for ever where nothing
    /// recovers from it.
    pub fn strike_for(&mut self, lasts: Duration) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        match self.fault.recoverable {
            true => lasts.checked_sub(since.elapsed()).filter(|left| !left.is_zero()),
            false => Some(Duration::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Class, Kind};
    use crate::life::Operation;

    fn armed(recoverable: bool) -> Armed {
        let (class, kind, operation) = (Class::Bmc, Kind::ForgetsPower, Operation::Deploy);
        Fault { class, kind, operation, recoverable, lasts: Duration::ZERO }.into()
    }

    #[test]
    fn what_passes_strikes_once_and_the_rest_each_time() {
        let (mut passing, mut lasting) = (armed(true), armed(false));
        assert!(!passing.has_struck());
        assert_eq!([passing.strike(), passing.strike()], [true, false]);
        assert_eq!([lasting.strike(), lasting.strike()], [true, true]);
        assert!(passing.has_struck() && lasting.has_struck());
    }

    #[test]
    fn what_lasts_for_a_while_ends_unless_nothing_recovers_from_it() {
        let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
        assert!(armed(true).strike_for(long).is_some_and(|left| left <= long));
        assert_eq!(armed(true).strike_for(none), None);
        assert_eq!(armed(false).strike_for(none), Some(Duration::MAX));
    }
}
