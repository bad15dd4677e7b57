//! How what an interface does leaves off: with the agent, or by itself (section 3.12).

/// How a step, or an operation without steps, left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// What comes next may begin.
    Done,
    /// The agent calls when it can go on.
    Wait,
}

/// How a step left off that an interface runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverStep {
    /// It is done.
    Done,
    /// The machine is at it; [`Interface::poll_step`](super::Interface::poll_step) tells when it has ended. Heartbeats
    /// do not move the operation on.
    Polls,
    /// The machine is to be rebooted: the operation goes on with the next agent that calls.
    WantsReboot {
        /// Whether the step runs again then, because it has only begun.
        runs_again: bool,
    },
}
