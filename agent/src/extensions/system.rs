//! Closing the machine (section 1.7).

use crate::commands::{Command, Kind};
use crate::deployment::export;
use farrier_init::lockdown::Stopped;
use serde_json::Value;

/// Commands of the `system` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "lockdown",
    help: "Stops listener, heartbeats and network until the next boot",
    kind: Kind::Sync,
    parameters: &[],
    validate: None,
    run: |agent, _| {
        export::stop_for_good(agent);
        agent.stop_serving(Stopped::LockedDown);
        Ok(Value::Null)
    },
}];
