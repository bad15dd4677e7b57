//! Telling what the machine is made of (section 11.3).

use crate::commands::{Command, JsonType, Kind, Parameter};
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Value, json};

/// Commands of the `poll` extension.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "get_hardware_info",
        help: "Returns the inventory of the machine",
        kind: Kind::Sync,
        parameters: &[],
        validate: None,
        run: |agent, _| Ok(json!(agent.inventory())),
    },
    Command {
        name: "set_node_info",
        help: "Always refused: only a lookup sets the node of an agent",
        kind: Kind::Sync,
        parameters: &[Parameter::required("node_info", &[JsonType::Object, JsonType::Null], "Ignored")],
        validate: Some(|_| Err(no_standalone_mode())),
        run: |_, _| Err::<Value, _>(no_standalone_mode()),
    },
];

/// Setting the node by hand was for agents without a conductor (S25).
fn no_standalone_mode() -> CommandError {
    let details = "set_node_info needs the standalone mode, which is gone: let the agent look its node up";
    CommandError::new(ErrorKind::InvalidCommandError, details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::options;

    #[test]
    fn s25_no_agent_works_without_a_conductor() {
        let command = COMMANDS.iter().find(|command| command.name == "set_node_info").unwrap();
        let refuse = command.validate.unwrap();
        let error = refuse(&serde_json::Map::new()).unwrap_err();
        assert!(error.text().contains("standalone mode, which is gone"), "{}", error.text());
        assert!(options::specs().all(|spec| spec.name != "standalone"));
    }
}
