//! Handing the machine to its user (sections 1.7 and 11.2).

use crate::agent::Agent;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use crate::lockdown::Stopped;
use crate::{rescue, settle};
use farrier_protocol::error::CommandError;
use serde_json::Value;
use std::sync::Arc;

/// Commands of the `rescue` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "finalize_rescue",
    help: "Sets the password of the rescue user and ends listener and heartbeats",
    kind: Kind::Sync,
    parameters: &[
        Parameter::optional("rescue_password", &[JsonType::String], "Password, or its hash"),
        Parameter::optional("hashed", &[JsonType::Boolean], "Whether it is a hash"),
    ],
    validate: None,
    run: finalize_rescue,
}];

fn finalize_rescue(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let password = params.get("rescue_password").and_then(Value::as_str).unwrap_or_default();
    let is_hashed = params.get("hashed").and_then(Value::as_bool).unwrap_or(false);
    let hash = rescue::password_hash(password, is_hashed)?;
    // PID 1 looks for the user's config drive next: its disk may be one whose driver is still being loaded (F25).
    agent.runtime.block_on(settle::wait(&agent.root));
    rescue::store(&agent.root, &hash)?;
    agent.stop_serving(Stopped::Rescued);
    Ok(Value::Null)
}
