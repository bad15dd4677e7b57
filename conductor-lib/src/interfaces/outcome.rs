//! How what an interface does leaves off: with the agent, or by itself (section 3.12).

/// How a step, or an operation without steps, left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// What comes next may begin.
    Done,
    /// The agent calls when it can continue.
    Wait,
}

/// How a step left off that an interface runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverStep {
    /// It is done.
    Done,
    /// The machine is at it; [`Interface::poll_step`](super::Interface::poll_step) returns when it has ended. Heartbeats
    /// do not move the operation on.
    Polls,
    /// The machine must be rebooted: the operation continues with the next agent that calls.
    WantsReboot {
        /// Whether the step runs again then, because it has only begun.
        runs_again: bool,
    },
}
