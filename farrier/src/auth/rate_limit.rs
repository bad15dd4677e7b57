//! How often something may be tried, such as passwords: a few times at once, then one every few seconds, of each network
//! for each name, and more often for all names together. Known and unknown names are
//! counted alike, so the throttle does not reveal names. Guesses delay no other network, no token, and no user whose
//! password was right a short while ago, since that is not checked again.

use crate::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often something may be tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimit {
    /// Attempts at once.
    pub(super) burst: u32,
    /// Time after which another one is allowed.
    pub(super) interval: Duration,
}

/// Of one name.
const OF_NAME: RateLimit = RateLimit { burst: 10, interval: Duration::from_secs(5) };

/// Of all names together: each costs a processor some tenths of a second.
const OF_NETWORK: RateLimit = RateLimit { burst: 64, interval: Duration::from_secs(1) };

/// Most entries: then the one whose attempts are allowed again soonest is forgotten.
const MOST: usize = 4096;

/// Whose attempts are counted together: those for one name, or for all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RateLimitKey {
    /// The address, or the /64 network of IPv6.
    pub(super) network: IpAddr,
    pub(super) name: Option<String>,
}

impl RateLimitKey {
    pub(super) fn new(peer: IpAddr, name: Option<&str>) -> Self {
        Self { network: network::of(peer), name: name.map(str::to_owned) }
    }
}

/// The latest attempts: for each key, when all of them are allowed again.
#[derive(Debug, Default)]
pub(super) struct RateLimiter(Mutex<HashMap<RateLimitKey, Instant>>);

impl RateLimiter {
    /// Takes one for a name, or returns the time to wait for one.
    pub(super) fn take(&self, key: &RateLimitKey, now: Instant) -> Result<(), Duration> {
        self.take_of(&RateLimitKey { name: None, ..key.clone() }, OF_NETWORK, now)?;
        self.take_of(key, OF_NAME, now)
    }

    /// Takes one within this rate limit, or returns the time to wait for one.
    pub(super) fn take_of(&self, key: &RateLimitKey, limit: RateLimit, now: Instant) -> Result<(), Duration> {
        let mut entries = self.entries();
        let earned = entries.get(key).copied().unwrap_or(now).max(now) + limit.interval;
        let most = now + limit.interval * limit.burst;
        if earned > most {
            return Err(earned - most);
        }
        if entries.len() >= MOST && !entries.contains_key(key) {
            entries.retain(|_, earned| *earned > now);
            make_room(&mut entries);
        }
        entries.insert(key.clone(), earned);
        Ok(())
    }

    /// Forgets what came before a right password.
    pub(super) fn forget(&self, key: &RateLimitKey) {
        self.entries().remove(key);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<RateLimitKey, Instant>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn make_room(entries: &mut HashMap<RateLimitKey, Instant>) {
    if entries.len() >= MOST
        && let Some(key) = entries.iter().min_by_key(|(_, earned)| **earned).map(|(key, _)| key.clone())
    {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(peer: &str, name: Option<&str>) -> RateLimitKey {
        RateLimitKey::new(peer.parse().unwrap(), name)
    }

    #[test]
    fn n21_guesses_are_slowed_whether_there_is_such_a_name_or_not() {
        let (limiter, begin) = (RateLimiter::default(), Instant::now());
        let guesser = key("2001:db8::1", Some("admin"));
        for _ in 0..OF_NAME.burst {
            assert_eq!(limiter.take(&guesser, begin), Ok(()));
        }
        assert_eq!(limiter.take(&guesser, begin), Err(OF_NAME.interval));
        assert!(limiter.take(&key("2001:db8::2", Some("admin")), begin).is_err(), "of the same network");
        for other in [
            key("2001:db8:0:1::1", Some("admin")),
            key("192.0.2.1", Some("admin")),
            key("2001:db8::1", Some("other")),
        ] {
            assert_eq!(limiter.take(&other, begin), Ok(()), "{other:?}");
        }
        assert!(limiter.take(&guesser, begin + OF_NAME.interval / 2).is_err());
        assert_eq!(limiter.take(&guesser, begin + OF_NAME.interval), Ok(()));
        assert!(limiter.take(&guesser, begin + OF_NAME.interval).is_err());
        limiter.forget(&guesser);
        assert_eq!(limiter.take(&guesser, begin + OF_NAME.interval), Ok(()));
    }

    #[test]
    fn n21_all_names_together_are_slowed_too() {
        let (limiter, now) = (RateLimiter::default(), Instant::now());
        let made_up = |number: u32| key("192.0.2.1", Some(&format!("made-up-{number}")));
        for number in 0..OF_NETWORK.burst {
            assert_eq!(limiter.take(&made_up(number), now), Ok(()));
        }
        assert!(limiter.take(&made_up(OF_NETWORK.burst), now).is_err());
        assert!(limiter.take(&key("192.0.2.1", Some("admin")), now).is_err(), "as any other name");
        assert_eq!(limiter.take(&key("192.0.2.2", Some("admin")), now), Ok(()));
    }

    #[test]
    fn a_crowd_takes_no_more_memory_and_frees_none_of_those_that_wait_longest() {
        let (limiter, now) = (RateLimiter::default(), Instant::now());
        let guesser = key("192.0.2.1", Some("admin"));
        while limiter.take(&guesser, now).is_ok() {}
        for number in 0..2 * u32::try_from(MOST).unwrap() {
            assert_eq!(limiter.take(&RateLimitKey::new(IpAddr::V4(number.into()), Some("x")), now), Ok(()));
        }
        assert_eq!(limiter.entries().len(), MOST);
        assert!(limiter.take(&guesser, now).is_err());
    }
}
