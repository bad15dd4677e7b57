//! When a BMC or Keystone is believed that refuses a password.
//!
//! BMCs refuse passwords that are right: while their sessions are used up, or when an answer is spoilt on its way; Keystone does
//! while what it asks, such as LDAP, does not answer. So a refusal counts when it came a second time some seconds later, and a
//! third time where the password has worked before. Then the password is left alone for a while, lest the user be locked out, and
//! tried once after each such rest.

use std::time::Duration;
use tokio::time::Instant;

/// How often a password is tried that never worked, and one that did.
const ATTEMPTS: u32 = 2;
const ATTEMPTS_OF_PROVEN: u32 = 3;

/// How long a password waits that was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    /// Before it is tried again, for whether the refusal counts.
    pub(crate) again: Duration,
    /// Once the refusal counts.
    pub(crate) rest: Duration,
}

/// What was said of a password.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals {
    has_worked: bool,
    count: u32,
    until: Option<Instant>,
}

/// Whether a password may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// Now.
    BeTried,
    /// From this moment on, for whether the refusal counts.
    BeTriedAt(Instant),
    /// The refusal counts.
    Rest,
}

impl Refusals {
    /// Whether the password may be tried.
    pub(crate) fn may(&self) -> May {
        match self.until {
            Some(until) if Instant::now() < until && self.is_believed() => May::Rest,
            Some(until) if Instant::now() < until => May::BeTriedAt(until),
            _ => May::BeTried,
        }
    }

    /// The password has worked.
    pub(crate) fn worked(&mut self) {
        *self = Self { has_worked: true, count: 0, until: None };
    }

    /// The password was refused.
    pub(crate) fn refused(&mut self, pauses: Pauses) {
        self.count = self.count.saturating_add(1);
        let pause = if self.is_believed() { pauses.rest } else { pauses.again };
        self.until = Some(Instant::now() + pause);
    }

    fn is_believed(&self) -> bool {
        self.count >= if self.has_worked { ATTEMPTS_OF_PROVEN } else { ATTEMPTS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn c01_a_refusal_counts_when_it_came_again_and_rests_are_ended_by_one_attempt() {
        let pauses = Pauses { again: Duration::from_secs(5), rest: Duration::from_secs(300) };
        for (has_worked, attempts) in [(false, 2), (true, 3)] {
            let mut refusals = Refusals::default();
            if has_worked {
                refusals.worked();
            }
            for _ in 1..attempts {
                assert_eq!(refusals.may(), May::BeTried);
                refusals.refused(pauses);
                let May::BeTriedAt(at) = refusals.may() else { panic!("{refusals:?}") };
                assert_eq!(at - Instant::now(), pauses.again);
                tokio::time::sleep_until(at).await;
            }
            for _ in 0..2 {
                refusals.refused(pauses);
                assert_eq!(refusals.may(), May::Rest);
                tokio::time::sleep(pauses.rest).await;
                assert_eq!(refusals.may(), May::BeTried);
            }
            refusals.worked();
            refusals.refused(pauses);
            assert!(matches!(refusals.may(), May::BeTriedAt(_)), "it has worked in between");
        }
    }
}
