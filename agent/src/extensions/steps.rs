//! Listing and running deploy steps (sections 4.1 and 4.2).

use crate::agent::Agent;
use crate::commands::{Command, Kind, Parameter, Params};
use farrier_hardware::manager::StepCall;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::Node;
use farrier_protocol::step::{HardwareManagerVersions, Step};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// Commands of the `deploy` extension.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "get_deploy_steps",
        kind: Kind::Sync,
        parameters: &[
            Parameter { name: "node", required: true },
            Parameter { name: "ports", required: true },
        ],
        validate: None,
        run: get_deploy_steps,
    },
    Command {
        name: "execute_deploy_step",
        kind: Kind::Async,
        parameters: &[
            Parameter { name: "step", required: true },
            Parameter { name: "node", required: true },
            Parameter { name: "ports", required: true },
            Parameter { name: "deploy_version", required: false },
        ],
        validate: None,
        run: execute_deploy_step,
    },
];

fn get_deploy_steps(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    agent.cache_node(read::<Node>(params, "node")?);
    Ok(json!(agent.managers.deploy_steps()))
}

fn execute_deploy_step(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let node: Node = read(params, "node")?;
    agent.cache_node(node.clone());
    check_version(agent, params)?;
    let step: Step = read(params, "step")?;
    let arguments = step.args.clone().unwrap_or_default();
    let call = StepCall { node: &node, arguments: &arguments, host: agent.as_ref() };
    let result = agent.managers.execute_deploy_step(&step.step, &call)?;
    Ok(json!({"deploy_result": result, "deploy_step": params["step"]}))
}

/// A conductor that listed other managers must list again before it goes on.
fn check_version(agent: &Agent, params: &Params) -> Result<(), CommandError> {
    let Some(given) = params.get("deploy_version").filter(|version| !version.is_null()) else {
        return Ok(());
    };
    let own: HardwareManagerVersions = agent.managers.versions();
    if *given == json!(own) {
        return Ok(());
    }
    let details = format!("the conductor has {given}, the agent has {}", json!(own));
    Err(CommandError::new(ErrorKind::VersionMismatch, details))
}

fn read<T: DeserializeOwned>(params: &Params, name: &str) -> Result<T, CommandError> {
    serde_json::from_value(params[name].clone()).map_err(|error| {
        CommandError::new(ErrorKind::InvalidCommandParamsError, format!("{name} cannot be read: {error}"))
    })
}
