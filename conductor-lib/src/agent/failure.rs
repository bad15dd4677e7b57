//! What agents say of commands that failed.

use farrier_protocol::command::CommandResult;
use farrier_protocol::error_code::agent;

/// Why a command failed, in the agent's words, with the code of its error class.
pub fn failure_text(name: &str, result: &CommandResult) -> String {
    match &result.command_error {
        Some(error) => agent::of_command(error).after(error.text()),
        None => agent::NO_ERROR_TEXT
            .after(&format!("command {name} ended as {:?} without an error text", result.command_status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_an_error_decides_its_code() {
        for (kind, expected) in [
            (Some("ImageChecksumError"), "digests differ [FAR-0410]"),
            (Some("SomebodysOwnError"), "digests differ [FAR-0429]"),
            (None, "command deploy.x ended as Failed without an error text [FAR-0430]"),
        ] {
            let error = kind.map(|kind| {
                serde_json::json!({"type": kind, "code": 500, "message": "m", "details": "digests differ"})
            });
            let result: CommandResult = serde_json::from_value(serde_json::json!({
                "id": "5f3c0a1e-7d6b-4c2a-9e8f-1a2b3c4d5e6f", "command_name": "x", "command_status": "FAILED", "command_error": error,
                "command_result": null,
            }))
            .unwrap();
            assert_eq!(failure_text("deploy.x", &result), expected);
        }
    }
}
