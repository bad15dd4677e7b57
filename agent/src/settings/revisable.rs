//! Values that the answer to the lookup may replace, once.
//!
//! The agent needs its settings before a conductor has said what it thinks of them. Whoever holds such
//! a value reads the newer one from then on, without asking which stage the agent is in.

use std::ops::Deref;
use std::sync::OnceLock;

/// A value with at most one revision.
#[derive(Debug)]
pub struct Revisable<T> {
    first: T,
    revised: OnceLock<T>,
}

impl<T> Revisable<T> {
    /// A value that stands until it is revised.
    pub fn new(first: T) -> Self {
        Self { first, revised: OnceLock::new() }
    }

    /// Replaces the value. Only the first revision counts: what was promised to the conductor after
    /// it must not change any more.
    pub fn revise(&self, value: T) {
        self.revised.set(value).ok();
    }
}

impl<T> Deref for Revisable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.revised.get().unwrap_or(&self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_revision_counts() {
        let value = Revisable::new(1);
        assert_eq!(*value, 1);
        value.revise(2);
        value.revise(3);
        assert_eq!(*value, 2);
    }
}
