//! What was undone by hand to see whether cells turn red.

/// A fix that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The fix and where it is.
    pub what: &'static str,
    /// The words of `--only`.
    pub only: &'static str,
    /// Cells that were run, and how many of them were red.
    pub cells: usize,
    pub red: usize,
}

/// All of them.
pub const UNDONE: &[Undone] = &[];
