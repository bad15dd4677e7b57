//! How often passwords may be tried: a few at once, then one every few seconds, of each network for each name. Whoever
//! guesses a password so delays nobody else: no other network, no other name, nobody who shows a token, and nobody
//! whose password was found right a short while ago, since that is not tried again.

use crate::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Attempts at once.
const AT_ONCE: u32 = 10;

/// Time that another one takes to be earned.
const EARNED_IN: Duration = Duration::from_secs(5);

/// Most lanes that are remembered: then the one that is nearest to being free is forgotten.
const MOST: usize = 4096;

/// Whose attempts are counted together. Names that nobody has are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    /// The address, or the /64 network of IPv6.
    pub(super) network: IpAddr,
    pub(super) name: Option<String>,
}

impl Lane {
    pub(super) fn new(peer: IpAddr, name: Option<&str>) -> Self {
        Self { network: network::of(peer), name: name.map(str::to_owned) }
    }
}

/// The attempts of late: for each lane, when all of them will have been earned.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<HashMap<Lane, Instant>>);

impl Attempts {
    /// Takes one; else tells how long to wait for one.
    pub(super) fn take(&self, lane: &Lane, now: Instant) -> Result<(), Duration> {
        let mut lanes = self.lanes();
        let earned = lanes.get(lane).copied().unwrap_or(now).max(now) + EARNED_IN;
        let most = now + EARNED_IN * AT_ONCE;
        if earned > most {
            return Err(earned - most);
        }
        if lanes.len() >= MOST && !lanes.contains_key(lane) {
            lanes.retain(|_, earned| *earned > now);
            make_room(&mut lanes);
        }
        lanes.insert(lane.clone(), earned);
        Ok(())
    }

    /// Forgets what came before a right password.
    pub(super) fn forget(&self, lane: &Lane) {
        self.lanes().remove(lane);
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Lane, Instant>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn make_room(lanes: &mut HashMap<Lane, Instant>) {
    if lanes.len() >= MOST
        && let Some(lane) = lanes.iter().min_by_key(|(_, earned)| **earned).map(|(lane, _)| lane.clone())
    {
        lanes.remove(&lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(peer: &str, name: Option<&str>) -> Lane {
        Lane::new(peer.parse().unwrap(), name)
    }

    #[test]
    fn guesses_are_slowed_and_nobody_else_is() {
        let (attempts, begin) = (Attempts::default(), Instant::now());
        let guesser = lane("2001:db8::1", Some("admin"));
        for _ in 0..AT_ONCE {
            assert_eq!(attempts.take(&guesser, begin), Ok(()));
        }
        assert_eq!(attempts.take(&guesser, begin), Err(EARNED_IN));
        assert!(attempts.take(&lane("2001:db8::2", Some("admin")), begin).is_err(), "of the same network");
        for other in [
            lane("2001:db8:0:1::1", Some("admin")),
            lane("192.0.2.1", Some("admin")),
            lane("2001:db8::1", Some("other")),
            lane("2001:db8::1", None),
        ] {
            assert_eq!(attempts.take(&other, begin), Ok(()), "{other:?}");
        }
        assert!(attempts.take(&guesser, begin + EARNED_IN / 2).is_err());
        assert_eq!(attempts.take(&guesser, begin + EARNED_IN), Ok(()));
        assert!(attempts.take(&guesser, begin + EARNED_IN).is_err());
        attempts.forget(&guesser);
        assert_eq!(attempts.take(&guesser, begin + EARNED_IN), Ok(()));
    }

    #[test]
    fn a_crowd_takes_no_more_memory_and_frees_none_of_those_that_wait_longest() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let guesser = lane("192.0.2.1", Some("admin"));
        while attempts.take(&guesser, now).is_ok() {}
        for number in 0..2 * u32::try_from(MOST).unwrap() {
            assert_eq!(attempts.take(&Lane::new(IpAddr::V4(number.into()), None), now), Ok(()));
        }
        assert_eq!(attempts.lanes().len(), MOST);
        assert!(attempts.take(&guesser, now).is_err());
    }
}
