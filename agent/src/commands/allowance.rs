//! The part of the machine's memory that is for what conductors send: the bodies of requests, the parameters of
//! commands, config drives. It is a quarter, so that a client with the token cannot get the agent killed either.

use farrier_linux::sysfs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes, some of which are claimed.
#[derive(Debug)]
pub struct Allowance {
    capacity: usize,
    claimed: AtomicUsize,
}

/// Bytes that a client has of an allowance, until this is dropped.
#[derive(Debug)]
pub struct Claim {
    allowance: Arc<Allowance>,
    bytes: usize,
}

impl Allowance {
    /// A quarter of this machine's memory; of the smallest machine's where it is not known.
    pub fn of_machine() -> Arc<Self> {
        let quarter = sysfs::total_bytes().unwrap_or(256 << 20) / 4;
        Self::of(quarter.try_into().unwrap_or(usize::MAX))
    }

    /// An allowance of so many bytes.
    pub fn of(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, claimed: AtomicUsize::default() })
    }

    /// Bytes of all claims together at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// A claim of nothing, which may grow.
    pub fn claim(self: &Arc<Self>) -> Claim {
        Claim { allowance: Arc::clone(self), bytes: 0 }
    }
}

impl Claim {
    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves this many bytes instead of the previous ones; false, and unchanged, if others have too many.
    #[must_use]
    pub fn resize(&mut self, bytes: usize) -> bool {
        let resized = |claimed: usize| {
            claimed.checked_sub(self.bytes)?.checked_add(bytes).filter(|sum| *sum <= self.allowance.capacity)
        };
        let is_granted = self.update(resized);
        if is_granted {
            self.bytes = bytes;
        }
        is_granted
    }

    /// Takes all free bytes, at most this many.
    pub fn take_rest(&mut self, most: usize) {
        let (own, capacity) = (self.bytes, self.allowance.capacity);
        let mut rest = 0;
        self.update(|claimed| {
            let others = claimed.checked_sub(own)?;
            rest = capacity.saturating_sub(others).min(most);
            Some(others + rest)
        });
        self.bytes = rest;
    }

    fn update(&self, change: impl FnMut(usize) -> Option<usize>) -> bool {
        self.allowance.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.allowance.claimed.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x43_claims_together_never_have_more_than_there_is() {
        let allowance = Allowance::of(100);
        let (mut first, mut second) = (allowance.claim(), allowance.claim());
        assert!(first.resize(60) && second.resize(40));
        assert!(!second.resize(41), "one byte too many");
        assert_eq!(second.bytes(), 40);
        assert!(first.resize(10) && second.resize(90));
        drop(second);
        let mut rest = allowance.claim();
        rest.take_rest(1000);
        assert_eq!(rest.bytes(), 90);
        assert!(!first.resize(11));
        rest.take_rest(20);
        assert_eq!(rest.bytes(), 20);
        assert!(first.resize(80));
        drop((first, rest));
        assert!(allowance.claim().resize(100) && !allowance.claim().resize(101));
    }
}
