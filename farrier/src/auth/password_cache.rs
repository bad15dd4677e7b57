//! Passwords that were found right a short while ago, so that a client with a thousand requests costs one check of its
//! password. Kept is a keyed digest of name, password and hash, with a key that dies with the process; who is removed
//! or has a new password is so unknown at once.

use rand::TryRngCore;
use rand::rngs::OsRng;
use ring::hmac::{Context, HMAC_SHA256, Key};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// How long a password need not be checked again.
const LIFE: Duration = Duration::from_secs(300);

/// Whether a password is right; those who ask at the same time wait for one answer.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) is_right: OnceCell<bool>,
    since: Instant,
}

/// Verdicts of late.
pub(super) struct PasswordCache {
    key: Key,
    verdicts: Mutex<HashMap<[u8; 32], Arc<Verdict>>>,
}

impl PasswordCache {
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        OsRng.try_fill_bytes(&mut key).expect("the kernel has random bytes");
        Self { key: Key::new(HMAC_SHA256, &key), verdicts: Mutex::default() }
    }

    /// The verdict about a password, which the first request for it has to find. Of those that are there, only right
    /// ones are kept.
    pub(super) fn of(&self, name: &str, password: &[u8], hash: &str, now: Instant) -> Arc<Verdict> {
        let digest = self.digest(&[name.as_bytes(), password, hash.as_bytes()]);
        let mut verdicts = self.verdicts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        verdicts.retain(|_, verdict| {
            let is_needed = verdict.is_right.get() == Some(&true) || Arc::strong_count(verdict) > 1;
            is_needed && now.duration_since(verdict.since) < LIFE
        });
        let new = || Arc::new(Verdict { is_right: OnceCell::new(), since: now });
        Arc::clone(verdicts.entry(digest).or_insert_with(new))
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = Context::with_key(&self.key);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        context.sign().as_ref().try_into().expect("HMAC with SHA-256 has 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_passwords_are_remembered_for_a_while_and_wrong_ones_are_not() {
        let (cache, now) = (PasswordCache::new(), Instant::now());
        let known = |password: &[u8], hash: &str, now: Instant| {
            cache.of("a", password, hash, now).is_right.get().copied()
        };
        cache.of("a", b"right", "h", now).is_right.set(true).unwrap();
        cache.of("a", b"wrong", "h", now).is_right.set(false).unwrap();
        assert_eq!(known(b"right", "h", now), Some(true));
        assert_eq!(known(b"wrong", "h", now), None);
        assert_eq!(known(b"right", "another hash", now), None);
        assert_eq!(cache.of("ar", b"ight", "h", now).is_right.get(), None);
        assert_eq!(known(b"right", "h", now + LIFE), None);
        let waits = cache.of("a", b"later", "h", now);
        assert!(Arc::ptr_eq(&waits, &cache.of("a", b"later", "h", now)), "one answer for both");
        assert!(cache.verdicts.lock().unwrap().len() <= 2);
    }
}
