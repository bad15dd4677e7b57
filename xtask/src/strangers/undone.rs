//! What was undone by hand to see whether rows turn red.

/// A fix that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The fix and where it is.
    pub what: &'static str,
    /// The row that was run.
    pub row: &'static str,
    /// What was seen, where at most so much is allowed.
    pub seen: &'static str,
}

/// All of them.
pub const UNDONE: &[Undone] = &[];
