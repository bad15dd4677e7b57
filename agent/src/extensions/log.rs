//! Handing out the logs (section 11.1).

use crate::agent::Agent;
use crate::commands::{Command, Kind, Params};
use crate::logs;
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// Commands of the `log` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "collect_system_logs",
    help: "Packs the logs of the machine",
    kind: Kind::Sync,
    parameters: &[],
    validate: None,
    run: collect_system_logs,
}];

fn collect_system_logs(agent: &Arc<Agent>, _params: &Params) -> Result<Value, CommandError> {
    let archive = logs::collect(&agent.secrets())
        .map_err(|error| CommandError::new(ErrorKind::CommandExecutionError, error.to_string()))?;
    Ok(json!({"system_logs": archive}))
}
