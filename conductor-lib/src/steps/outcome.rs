//! How the execution of a step ends.

use crate::model::Event;

/// How the execution of a step ended.
pub(super) enum StepOutcome {
    /// It is done.
    Done,
    /// The operation waits, by this event.
    Waits(Event),
    /// The machine is to be rebooted.
    WantsReboot {
        /// Whether the step runs again then.
        runs_again: bool,
    },
}
