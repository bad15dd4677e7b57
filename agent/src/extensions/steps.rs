//! Listing and running the steps of cleaning, deploying and servicing (sections 4.1 and 4.2).

use crate::agent::Agent;
use crate::commands::errors::from_disk;
use crate::commands::{Command, JsonType, Kind, Parameter, Params, Run, Validate};
use crate::deployment::root_disk;
use crate::doctor;
use farrier_disk::list;
use farrier_hardware::manager::StepCall;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::{HardwareManagerVersions, Phase, Step};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Commands of the `clean` extension.
pub const CLEAN_COMMANDS: &[Command] = &[
    listing("get_clean_steps", "Lists the steps of cleaning", |agent, params| {
        list(agent, params, Phase::Clean)
    }),
    execution("execute_clean_step", "Runs a step of cleaning", CLEAN_PARAMETERS, |agent, params| {
        execute(agent, params, Phase::Clean)
    }),
];

/// Commands of the `deploy` extension.
pub const DEPLOY_COMMANDS: &[Command] = &[
    listing("get_deploy_steps", "Lists the steps of deploying", |agent, params| {
        list(agent, params, Phase::Deploy)
    }),
    execution("execute_deploy_step", "Runs a step of deploying", DEPLOY_PARAMETERS, |agent, params| {
        execute(agent, params, Phase::Deploy)
    }),
];

/// Commands of the `service` extension.
pub const SERVICE_COMMANDS: &[Command] = &[
    listing("get_service_steps", "Lists the steps of servicing", |agent, params| {
        list(agent, params, Phase::Service)
    }),
    execution("execute_service_step", "Runs a step of servicing", SERVICE_PARAMETERS, |agent, params| {
        execute(agent, params, Phase::Service)
    }),
];

const NODE: Parameter = Parameter::required("node", &[JsonType::Object], "Record of the node");
/// The Python agent takes what it never looks at: an empty object and nothing are no ports either.
const PORTS: Parameter = Parameter::required(
    "ports",
    &[JsonType::Array, JsonType::Object, JsonType::Null],
    "Records of its ports, as a list; an empty object and null stand for none",
);
const CLEAN_PARAMETERS: &[Parameter] = &execution_parameters("clean_version");
const DEPLOY_PARAMETERS: &[Parameter] = &execution_parameters("deploy_version");
const SERVICE_PARAMETERS: &[Parameter] = &execution_parameters("service_version");

/// The key of the nonce that a conductor issues for a run of a step. Certificates of erasure repeat it.
const NONCE: &str = "nonce";

const VALIDATE: Option<Validate> = Some(|params| ports(params).map(drop));

const fn execution_parameters(version: &'static str) -> [Parameter; 5] {
    let step = Parameter::required("step", &[JsonType::Object], "The step as it was listed, with its args");
    let types = &[JsonType::Object, JsonType::Null];
    let version = Parameter::optional(version, types, "hardware_manager_version of the listing");
    [step, NODE, PORTS, version, Parameter::OTHERS]
}

const fn listing(name: &'static str, help: &'static str, run: Run) -> Command {
    Command { name, help, kind: Kind::Sync, parameters: &[NODE, PORTS], validate: VALIDATE, run }
}

const fn execution(
    name: &'static str,
    help: &'static str,
    parameters: &'static [Parameter],
    run: Run,
) -> Command {
    Command { name, help, kind: Kind::Async, parameters, validate: VALIDATE, run }
}

fn list(agent: &Arc<Agent>, params: &Params, phase: Phase) -> Result<Value, CommandError> {
    agent.cache_node(parse("node", &params["node"])?);
    let managers = agent.managers();
    let steps = (format!("{}_steps", phase.name()), json!(managers.steps(phase)?));
    let versions = ("hardware_manager_version".to_owned(), json!(managers.versions()));
    Ok(Value::Object(Map::from_iter([steps, versions])))
}

fn execute(agent: &Arc<Agent>, params: &Params, phase: Phase) -> Result<Value, CommandError> {
    agent.cache_node(parse("node", &params["node"])?);
    let step = step(&params["step"])?;
    let arguments = arguments(params, &step, phase);
    agent.status.say(format!("{} step {}", phase.name(), step.step));
    agent.wait_for_devices();
    check_version(agent, params, phase)?;
    root_disk::expect_hinted(agent);
    let record = shielded(agent, &params["node"])?;
    if phase == Phase::Clean {
        doctor::forget();
    }
    let call = StepCall {
        phase,
        step: &step.step,
        nonce: step.other.get(NONCE).and_then(Value::as_str),
        node: &parse("node", &record)?,
        record: &record,
        ports: &ports(params)?,
        arguments: &arguments,
        host: agent.as_ref(),
    };
    // A defect of one step is that step's failure, and the conductor learns which one it was.
    let outcome = catch_unwind(AssertUnwindSafe(|| agent.managers().execute(&call)));
    let result = outcome.map_err(|panic| defect(phase, &step.step, panic.as_ref()))??;
    Ok(answer(phase, result, &params["step"]))
}

/// The node's record, with the disks that managers hide among those to be left alone (section 9.2).
fn shielded(agent: &Agent, record: &Value) -> Result<Value, CommandError> {
    let mut record = record.clone();
    if agent.managers().filters_devices() {
        let devices = list::list(Path::new("/sys")).map_err(from_disk)?;
        let properties = &mut record["properties"];
        if properties.is_null() {
            *properties = json!({});
        }
        if let Some(properties) = properties.as_object_mut() {
            agent.managers().shield(properties, &devices);
        }
    }
    Ok(record)
}

/// The conductor finds its step again by what is echoed.
fn answer(phase: Phase, result: Value, step: &Value) -> Value {
    let result = (format!("{}_result", phase.name()), result);
    let step = (format!("{}_step", phase.name()), step.clone());
    Value::Object(Map::from_iter([result, step]))
}

/// Parameters beyond the command's own are arguments too; those of the step win.
fn arguments(params: &Params, step: &Step, phase: Phase) -> Map<String, Value> {
    let version = version_name(phase);
    let own = ["step", NODE.name, PORTS.name, &version];
    let extra = params.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    extra.chain(step.args.iter().flatten()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn version_name(phase: Phase) -> String {
    format!("{}_version", phase.name())
}

fn defect(phase: Phase, step: &str, panic: &(dyn Any + Send)) -> CommandError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    let details = format!("step {step} ended by a defect of the agent ({text}); report it with the log");
    CommandError::new(ErrorKind::of_phase(phase), details)
}

/// A conductor that listed other managers must list again before it continues.
fn check_version(agent: &Agent, params: &Params, phase: Phase) -> Result<(), CommandError> {
    let given = params.get(&version_name(phase));
    let Some(given) = given.filter(|version| !version.is_null()) else {
        return Ok(());
    };
    let own: HardwareManagerVersions = agent.managers().versions();
    if *given == json!(own) {
        return Ok(());
    }
    let details = format!("the conductor has {given}, the agent has {}", json!(own));
    Err(CommandError::new(ErrorKind::VersionMismatch, details))
}

/// The step to run. Arguments that are empty in whatever way are none (section 4.1).
fn step(given: &Value) -> Result<Step, CommandError> {
    let is_empty = match &given["args"] {
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        other => *other == json!(false) || *other == json!(0),
    };
    if !is_empty {
        return parse("step", given);
    }
    let mut given = given.clone();
    given["args"] = Value::Null;
    parse("step", &given)
}

fn ports(params: &Params) -> Result<Value, CommandError> {
    match params.get(PORTS.name) {
        Some(list @ Value::Array(_)) => Ok(list.clone()),
        Some(Value::Object(fields)) if !fields.is_empty() => {
            let details = "ports must be a list of records, not one object";
            Err(CommandError::new(ErrorKind::InvalidCommandParamsError, details))
        }
        _ => Ok(json!([])),
    }
}

fn parse<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, CommandError> {
    T::deserialize(value).map_err(|error| {
        CommandError::new(ErrorKind::InvalidCommandParamsError, format!("{name} cannot be read: {error}"))
    })
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
