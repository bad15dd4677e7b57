//! The steps of cleanings, deployments and services, across heartbeats (section 3).

mod engine;
mod execution;
mod hooks;
mod preparation;
mod reserved;
mod retry;
mod source;
mod verdict;

pub(crate) use engine::{advance, begin, check, polled, refresh, resume};
pub(crate) use preparation::tear_down;
pub(crate) use source::invalid;
pub(crate) use verdict::{Verdict, judge};

/// How an operation left off. What it changed counts once the task is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It waits: for the agent, for the driver or for an operator.
    Waits,
    /// It is done.
    Done,
    /// It came to a point at which it is to end, because an operator wants that.
    Aborts,
}
