//! How what an interface does with an agent leaves off.

/// How a step, or an operation without steps, left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// What comes next may begin.
    Done,
    /// The agent calls when it can go on.
    Wait,
}
