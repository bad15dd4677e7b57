//! The parts of pages that are kept as they are now, and their versions.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use uuid::Uuid;

/// Beginning of the `id` of a row of the list.
const ROW: &str = "n-";

/// The `id` of the numbers of nodes by state.
pub(crate) const STATES: &str = "states";

/// The `id` of the part that every page of a node has.
pub(crate) const STANDING: &str = "standing";

/// The `id` of the timeline of a node.
pub(crate) const LIFE: &str = "life";

/// The `id` of what a node waits for.
pub(crate) const TOLD: &str = "told";

/// The `id` of the orders of a node. They hang on its row alone: what a user types there outlives the progress of a step.
pub(crate) const ORDERS: &str = "orders";

/// A part of a list, by its `id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The row of a node in the list.
    Row(Uuid),
    /// How many nodes are in each state.
    States,
}

impl Part {
    /// The part with this `id`.
    pub(crate) fn named(id: &str) -> Option<Self> {
        match id {
            STATES => Some(Self::States),
            id => Some(Self::Row(id.strip_prefix(ROW)?.parse().ok()?)),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(uuid) => write!(formatter, "{ROW}{uuid}"),
            Self::States => formatter.write_str(STATES),
        }
    }
}

/// The version of what a part shows: another one where that differs. It has no order, and needs none: a page asks for the
/// part whenever its version is another one, and never twice at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u32);

impl Version {
    /// The version of a part that shows this.
    pub(crate) fn of(shown: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        shown.hash(&mut hasher);
        Self(hasher.finish() as u32)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_id() {
        for part in [Part::States, Part::Row(Uuid::new_v4())] {
            assert_eq!(Part::named(&part.to_string()), Some(part));
        }
        for id in ["", "n-", "n-1", "rows", &format!("x-{}", Uuid::nil()), &"9".repeat(40)] {
            assert_eq!(Part::named(id), None, "{id}");
        }
        assert_eq!(Version::of("a").to_string(), Version::of("a").to_string());
        assert_ne!(Version::of("a"), Version::of("b"));
    }
}
