//! The sessions of users who have signed in.

use super::{BrowserId, Credentials};
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use time::{Duration, OffsetDateTime};

/// A session without a request ends after this time.
pub(crate) const IDLE: Duration = Duration::hours(1);

/// Every session ends after this time.
pub(crate) const LONGEST: Duration = Duration::hours(12);

/// Most sessions; the one that was used least recently makes room for another.
const MOST: usize = 1024;

/// Sessions by the digest of the identity of their browser, in the memory of this conductor alone.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

struct Session {
    credentials: Credentials,
    begun: OffsetDateTime,
    used: OffsetDateTime,
}

impl Session {
    fn is_over(&self, now: OffsetDateTime) -> bool {
        now - self.used >= IDLE || now - self.begun >= LONGEST
    }
}

impl Sessions {
    /// Begins one, under an identity that no one has had before.
    pub(crate) fn begin(&self, credentials: Credentials, now: OffsetDateTime) -> BrowserId {
        let browser = BrowserId::new();
        let mut sessions = self.lock();
        sessions.retain(|_, session| !session.is_over(now));
        if sessions.len() >= MOST
            && let Some(oldest) = sessions.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key)
        {
            sessions.remove(&oldest);
        }
        sessions.insert(key(&browser), Session { credentials, begun: now, used: now });
        browser
    }

    /// What the user of a browser has signed in with; nothing when its session is over, or there was none. A session that
    /// `is_used` stays for longer.
    pub(crate) fn credentials(
        &self,
        browser: &BrowserId,
        now: OffsetDateTime,
        is_used: bool,
    ) -> Option<Credentials> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(&key(browser))?;
        if session.is_over(now) {
            sessions.remove(&key(browser));
            return None;
        }
        if is_used {
            session.used = now;
        }
        Some(session.credentials.clone())
    }

    /// Ends one.
    pub(crate) fn end(&self, browser: &BrowserId) {
        self.lock().remove(&key(browser));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look-up by a digest takes a time that tells nothing of the identities that there are.
fn key(browser: &BrowserId) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, browser.bytes()).as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(sessions: &Sessions, now: OffsetDateTime) -> BrowserId {
        sessions.begin(Credentials::token("t").unwrap(), now)
    }

    #[test]
    fn a_session_ends_when_it_is_idle_when_it_is_old_and_when_its_user_says_so() {
        let (sessions, start) = (Sessions::default(), OffsetDateTime::UNIX_EPOCH);
        let second = Duration::SECOND;
        let idle = begin(&sessions, start);
        assert!(sessions.credentials(&idle, start + IDLE - second, true).is_some());
        assert!(
            sessions.credentials(&idle, start + IDLE * 2 - second * 2, true).is_some(),
            "it was used meanwhile"
        );
        assert!(sessions.credentials(&idle, start + IDLE * 3, true).is_none());
        assert!(sessions.credentials(&idle, start, true).is_none(), "it does not come back");
        let old = begin(&sessions, start);
        let uses = (0..).map(|number| start + Duration::MINUTE * number * 59.0);
        assert!(
            uses.take_while(|at| *at - start < LONGEST)
                .all(|at| sessions.credentials(&old, at, true).is_some())
        );
        assert!(sessions.credentials(&old, start + LONGEST, true).is_none());
        let left = begin(&sessions, start);
        sessions.end(&left);
        assert!(sessions.credentials(&left, start, true).is_none());
        assert!(sessions.credentials(&BrowserId::new(), start, true).is_none());
    }

    #[test]
    fn what_a_page_asks_for_by_itself_keeps_no_session_alive() {
        let (sessions, start) = (Sessions::default(), OffsetDateTime::UNIX_EPOCH);
        let open = begin(&sessions, start);
        for minute in 1..60 {
            assert!(sessions.credentials(&open, start + Duration::MINUTE * minute, false).is_some());
        }
        assert!(sessions.credentials(&open, start + IDLE, false).is_none());
    }

    #[test]
    fn the_session_that_was_used_least_recently_makes_room() {
        let (sessions, start) = (Sessions::default(), OffsetDateTime::UNIX_EPOCH);
        let first = begin(&sessions, start);
        let second = begin(&sessions, start);
        let later = start + Duration::SECOND;
        assert!(sessions.credentials(&first, later, true).is_some());
        for _ in 0..MOST - 1 {
            begin(&sessions, later);
        }
        assert!(sessions.credentials(&first, later, true).is_some());
        assert!(sessions.credentials(&second, later, true).is_none());
    }
}
