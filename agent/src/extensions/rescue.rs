//! Handing the machine to its user (sections 1.7 and 11.2).

use crate::agent::Agent;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use crate::lockdown::Stopped;
use crate::rescue;
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
    rescue::store(&agent.root, &rescue::password_hash(password, is_hashed)?)?;
    agent.stop_serving(Stopped::Rescued);
    Ok(Value::Null)
}
