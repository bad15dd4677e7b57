//! Telling what the machine is made of (section 11.3).

use crate::commands::{Command, Kind};
use serde_json::json;

/// Commands of the `poll` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "get_hardware_info",
    kind: Kind::Sync,
    parameters: &[],
    validate: None,
    run: |agent, _| Ok(json!(agent.inventory())),
}];
