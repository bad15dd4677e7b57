//! The steps of cleanings, deployments and services, across heartbeats (section 3).

mod after_step;
mod execution;
mod outcome;
mod preparation;
pub mod raid;
mod reserved;
mod retry;
mod runner;
mod source;

pub use preparation::tear_down;
pub use runner::{advance, begin, check, list, polled, resume};
pub use source::invalid;

/// How an operation left off. What it changed counts once the task is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It waits: for the agent, for the driver or for an operator.
    Waits,
    /// It waits for an agent that cannot be reached, for this reason: it is silent, and only its deadline fails what
    /// waits for it.
    Unreached(String),
    /// It is done.
    Done,
    /// It came to a point at which it should end, because an operator wants that.
    Aborts,
}
