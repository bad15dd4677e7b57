//! Several commands in a row (section 4.3).

use crate::agent::Agent;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::Value;
use std::sync::Arc;

/// Commands of the `flow` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "start_flow",
    help: "Runs several commands one after the other and stops at the first that fails",
    kind: Kind::Async,
    parameters: &[Parameter::required(
        "flow",
        &[JsonType::Array],
        "List of objects, each with one command and its parameters",
    )],
    validate: Some(validate),
    run: start_flow,
}];

/// One command of a flow.
struct Part<'a> {
    name: &'a str,
    params: &'a Params,
}

/// Refuses what is no flow, and unknown commands; an unknown extension fails the flow later.
fn validate(params: &Params) -> Result<(), CommandError> {
    for part in parts(params)? {
        match find(&part) {
            Err(error) if error.kind == ErrorKind::InvalidCommandError.name() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Every name is looked up before the first command runs.
fn start_flow(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let parts = parts(params)?;
    let commands = parts.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    for (part, command) in parts.iter().zip(commands) {
        tracing::info!(command = part.name, "command of the flow");
        command.run_checked(agent, part.params).map_err(|error| {
            let details = format!("{} failed and ended the flow: {}", part.name, error.text());
            CommandError::new(ErrorKind::CommandExecutionError, details)
        })?;
    }
    Ok(Value::Null)
}

/// An object holds one command: the order inside a JSON object means nothing.
fn parts(params: &Params) -> Result<Vec<Part<'_>>, CommandError> {
    let invalid = || {
        let details = "flow must be a list of objects, each with one command and its parameters: \
                       [{\"<extension>.<command>\": {…}}, …]";
        CommandError::new(ErrorKind::InvalidCommandParamsError, details)
    };
    let list = params.get("flow").and_then(Value::as_array).ok_or_else(invalid)?;
    let part = |entry| -> Option<Part<'_>> {
        let object = Value::as_object(entry).filter(|object| object.len() == 1)?;
        let (name, params) = object.iter().next()?;
        Some(Part { name, params: params.as_object()? })
    };
    list.iter().map(|entry| part(entry).ok_or_else(invalid)).collect()
}

fn find(part: &Part<'_>) -> Result<&'static Command, CommandError> {
    let (extension, command) = crate::commands::split(part.name)?;
    super::find(extension, command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::options::Options;
    use serde_json::json;

    fn params(flow: Value) -> Params {
        Params::from_iter([("flow".to_owned(), flow)])
    }

    #[test]
    fn x37_malformed_flows_several_commands_in_an_object_and_unknown_ones_are_refused() {
        for (flow, kind) in [
            (json!("standby.sync"), "InvalidCommandParamsError"),
            (json!(["standby.sync"]), "InvalidCommandParamsError"),
            (json!([{"standby.sync": null}]), "InvalidCommandParamsError"),
            (json!([{"standby.sync": {}, "standby.power_off": {}}]), "InvalidCommandParamsError"),
            (json!([{"standby.nosuch": {}}]), "InvalidCommandError"),
            (json!([{"sync": {}}]), "InvalidCommandError"),
        ] {
            assert_eq!(validate(&params(flow.clone())).unwrap_err().kind, kind, "{flow}");
        }
        for accepted in [json!([]), json!([{"standby.sync": {}}]), json!([{"nosuch.sync": {}}])] {
            assert!(validate(&params(accepted)).is_ok());
        }
    }

    #[tokio::test]
    async fn a_flow_runs_in_order_and_stops_at_the_first_failure() {
        crate::network::http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let agent = Agent::new(Options::default(), root.path(), tokio::runtime::Handle::current()).unwrap();
        let uuids = json!({"standby.get_partition_uuids": {}});
        let failing = json!({"standby.get_partition_uuids": {"x": 1}});
        let listing = json!({"clean.get_clean_steps": {"ports": [], "node": {
            "uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11"}}});
        for (flow, expected, is_listed) in [
            (json!([uuids]), None, false),
            (json!([listing, {"nosuch.sync": {}}]), Some("Extension with id nosuch not found."), false),
            (json!([failing, listing]), Some("standby.get_partition_uuids failed"), false),
            (json!([uuids, listing, failing]), Some("standby.get_partition_uuids failed"), true),
        ] {
            let outcome = start_flow(&agent, &params(flow.clone()));
            match expected {
                None => assert_eq!(outcome.unwrap(), Value::Null),
                Some(text) => assert!(outcome.unwrap_err().details.starts_with(text), "{flow}"),
            }
            // Listing steps tells the agent which node it is.
            assert_eq!(agent.node().is_ok(), is_listed, "{flow}");
        }
    }
}
