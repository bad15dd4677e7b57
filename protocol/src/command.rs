//! Commands and their results (sections 1.2 and 1.3).

use crate::error::CommandError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Body of `POST /v1/commands/`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandRequest {
    /// `<extension>.<command>`.
    pub name: String,
    /// Named parameters; always an object.
    pub params: Map<String, Value>,
}

/// Where a command stands (section 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CommandStatus {
    /// Accepted and not finished.
    Running,
    /// Finished as asked.
    Succeeded,
    /// Finished with `command_error` set.
    Failed,
    /// The step was refused because the hardware managers changed.
    CleanVersionMismatch,
    /// Newer spelling of the same, understood from other agents.
    VersionMismatch,
    /// A status this version does not know; conductors treat it as a failure.
    #[serde(untagged)]
    Other(String),
}

/// One entry of `GET /v1/commands/` (section 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// Random identity of this run.
    pub id: Uuid,
    /// Bare command name, without the extension.
    pub command_name: String,
    /// Where the command stands.
    pub command_status: CommandStatus,
    /// Set when the command failed.
    pub command_error: Option<CommandError>,
    /// What the command produced; command specific.
    pub command_result: Option<Value>,
}

impl CommandResult {
    /// A command that has just been accepted.
    pub fn running(command_name: impl Into<String>) -> Self {
        Self {
            id: Uuid::new_v4(),
            command_name: command_name.into(),
            command_status: CommandStatus::Running,
            command_error: None,
            command_result: None,
        }
    }
}

/// Body of `GET /v1/commands/`, in order of execution.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CommandList {
    /// Every command of this agent process.
    pub commands: Vec<CommandResult>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_strings_are_those_of_the_contract() {
        for (status, text) in [
            (CommandStatus::Running, "RUNNING"),
            (CommandStatus::Succeeded, "SUCCEEDED"),
            (CommandStatus::Failed, "FAILED"),
            (CommandStatus::CleanVersionMismatch, "CLEAN_VERSION_MISMATCH"),
            (CommandStatus::VersionMismatch, "VERSION_MISMATCH"),
            (CommandStatus::Other("PAUSED".into()), "PAUSED"),
        ] {
            assert_eq!(serde_json::to_value(&status).unwrap(), text);
            assert_eq!(serde_json::from_value::<CommandStatus>(text.into()).unwrap(), status);
        }
    }

    #[test]
    fn s03_a_result_holds_the_outcome_only() {
        let value = serde_json::to_value(CommandResult::running("sync")).unwrap();
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        assert_eq!(keys, ["command_error", "command_name", "command_result", "command_status", "id"]);
    }
}
