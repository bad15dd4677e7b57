//! What an operator in front of the machine sees: a calm screen on VGA, a line now and then on serial
//! consoles, plain text on both.

mod milestones;
mod screen;
pub mod show;
mod view;

use std::sync::{Mutex, PoisonError};

/// What a machine does that waits for its conductor.
pub const READY: &str = "ready for commands";

/// What the agent is doing, in words, and what it waits for meanwhile.
#[derive(Debug, Default)]
pub struct Status(Mutex<(String, Option<String>)>);

impl Status {
    /// Says what is being done from now on.
    pub fn say(&self, doing: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = doing.into();
    }

    /// Says what is waited for, or that the wait is over.
    pub fn wait_for(&self, awaited: Option<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = awaited;
    }

    fn doing(&self) -> String {
        let (doing, awaited) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        awaited.unwrap_or(doing)
    }
}
