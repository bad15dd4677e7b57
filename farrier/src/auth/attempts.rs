//! How often something may be tried, such as passwords: a few times at once, then one every few seconds, of each network
//! for each name, and more often for all names together. Known and unknown names are
//! counted alike, so the throttle does not tell names. Guesses delay no other network, no token, and no user whose
//! password was right a short while ago, since that is not checked again.

use crate::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often something may be tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Attempts at once.
    pub(super) at_once: u32,
    /// Time that another one takes to be earned.
    pub(super) earned_in: Duration,
}

/// Of one name.
const OF_NAME: Pace = Pace { at_once: 10, earned_in: Duration::from_secs(5) };

/// Of all names together: each costs a processor some tenths of a second.
const OF_NETWORK: Pace = Pace { at_once: 64, earned_in: Duration::from_secs(1) };

/// Most lanes that are remembered: then the one that is nearest to being free is forgotten.
const MOST: usize = 4096;

/// Whose attempts are counted together: those for one name, or for all.
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
    /// Takes one for a name, or returns the time to wait for one.
    pub(super) fn take(&self, lane: &Lane, now: Instant) -> Result<(), Duration> {
        self.take_of(&Lane { name: None, ..lane.clone() }, OF_NETWORK, now)?;
        self.take_of(lane, OF_NAME, now)
    }

    /// Takes one at this pace, or returns the time to wait for one.
    pub(super) fn take_of(&self, lane: &Lane, pace: Pace, now: Instant) -> Result<(), Duration> {
        let mut lanes = self.lanes();
        let earned = lanes.get(lane).copied().unwrap_or(now).max(now) + pace.earned_in;
        let most = now + pace.earned_in * pace.at_once;
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
    fn n21_guesses_are_slowed_whether_there_is_such_a_name_or_not() {
        let (attempts, begin) = (Attempts::default(), Instant::now());
        let guesser = lane("2001:db8::1", Some("admin"));
        for _ in 0..OF_NAME.at_once {
            assert_eq!(attempts.take(&guesser, begin), Ok(()));
        }
        assert_eq!(attempts.take(&guesser, begin), Err(OF_NAME.earned_in));
        assert!(attempts.take(&lane("2001:db8::2", Some("admin")), begin).is_err(), "of the same network");
        for other in [
            lane("2001:db8:0:1::1", Some("admin")),
            lane("192.0.2.1", Some("admin")),
            lane("2001:db8::1", Some("other")),
        ] {
            assert_eq!(attempts.take(&other, begin), Ok(()), "{other:?}");
        }
        assert!(attempts.take(&guesser, begin + OF_NAME.earned_in / 2).is_err());
        assert_eq!(attempts.take(&guesser, begin + OF_NAME.earned_in), Ok(()));
        assert!(attempts.take(&guesser, begin + OF_NAME.earned_in).is_err());
        attempts.forget(&guesser);
        assert_eq!(attempts.take(&guesser, begin + OF_NAME.earned_in), Ok(()));
    }

    #[test]
    fn n21_all_names_together_are_slowed_too() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let made_up = |number: u32| lane("192.0.2.1", Some(&format!("made-up-{number}")));
        for number in 0..OF_NETWORK.at_once {
            assert_eq!(attempts.take(&made_up(number), now), Ok(()));
        }
        assert!(attempts.take(&made_up(OF_NETWORK.at_once), now).is_err());
        assert!(attempts.take(&lane("192.0.2.1", Some("admin")), now).is_err(), "as any other name");
        assert_eq!(attempts.take(&lane("192.0.2.2", Some("admin")), now), Ok(()));
    }

    #[test]
    fn a_crowd_takes_no_more_memory_and_frees_none_of_those_that_wait_longest() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let guesser = lane("192.0.2.1", Some("admin"));
        while attempts.take(&guesser, now).is_ok() {}
        for number in 0..2 * u32::try_from(MOST).unwrap() {
            assert_eq!(attempts.take(&Lane::new(IpAddr::V4(number.into()), Some("x")), now), Ok(()));
        }
        assert_eq!(attempts.lanes().len(), MOST);
        assert!(attempts.take(&guesser, now).is_err());
    }
}
