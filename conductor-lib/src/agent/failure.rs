//! What agents say of commands that failed.

use farrier_protocol::command::CommandResult;

/// Why a command failed, in the agent's words.
pub fn failure_text(name: &str, result: &CommandResult) -> String {
    match &result.command_error {
        Some(error) => error.text().to_owned(),
        None => format!("command {name} ended as {:?} without an error text", result.command_status),
    }
}
