//! What was undone by hand to see whether cells turn red.

/// A fix that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The fix and where it is.
    pub what: &'static str,
    /// What was run: words of `--only`, or a test.
    pub run: &'static str,
    /// How many cells or tests were run, and how many of them were red.
    pub count: usize,
    pub red: usize,
}

/// All of them.
pub const UNDONE: &[Undone] = &[];
