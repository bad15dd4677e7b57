//! Steps that the agent runs: their listing and their start (sections 3.5 and 4.4).

use crate::agent::{AgentError, Wait};
use crate::error::Error;
use crate::heartbeat::judge::{INDEX, command};
use crate::model::{PlannedStep, StepKind};
use crate::task::Task;
use farrier_protocol::command::CommandResult;
use farrier_protocol::step::{HardwareManagerVersions, StepDescription};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The key of the nonce of this run of a step, which certificates of erasure repeat.
const NONCE: &str = "nonce";

/// Asks the agent for its steps of a kind, which counts once saved.
///
/// # Errors
///
/// [`AgentError::Busy`] when the agent must be asked later; any other [`AgentError`], [`Error::Invalid`] for an answer
/// that is none.
pub async fn list(task: &mut Task, kind: StepKind) -> Result<(), Error> {
    let name = format!("{kind}.get_{kind}_steps");
    let params = json!({"node": task.shown(), "ports": task.shown_ports()});
    let listed = match task.agent().await?.run(&name, params).await {
        // Agents that know no service have no steps for one.
        Err(AgentError::Refused { .. }) if kind == StepKind::Service => {
            json!({"service_steps": {}, "hardware_manager_version": {}})
        }
        listed => listed?,
    };
    let steps: BTreeMap<String, Vec<StepDescription>> = read(&name, &listed, &format!("{kind}_steps"))?;
    let versions: HardwareManagerVersions = read(&name, &listed, "hardware_manager_version")?;
    task.learn(|session| {
        session.cache_steps(kind, steps.into_values().flatten().collect());
        session.hardware_manager_version = Some(versions);
    });
    Ok(())
}

fn read<T: DeserializeOwned>(command: &str, listed: &Value, key: &str) -> Result<T, Error> {
    let value = listed.get(key).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| {
        Error::invalid(format!("the agent's answer to {command}"), format!("{key} cannot be read: {error}"))
    })
}

/// Has the agent start the current step, which is echoed in its result with its place in the plan: so two equal steps
/// can be distinguished (pitfall 13.10).
///
/// # Errors
///
/// [`AgentError::Busy`] when the agent must be asked later; any other [`AgentError`].
pub async fn start(task: &Task, kind: StepKind, step: &PlannedStep, args: &Value) -> Result<(), Error> {
    let sent = json!({
        "interface": step.interface, "step": step.step, "priority": step.priority, "args": args,
        "abortable": step.abortable, INDEX: task.node.plan(kind).index, NONCE: task.node.plan(kind).nonce,
    });
    let params = json!({
        "step": sent, "node": task.shown(), "ports": task.shown_ports(),
        format!("{kind}_version"): task.session.hardware_manager_version,
    });
    let name = format!("{kind}.{}", command(kind));
    let nonce = task.node.plan(kind).nonce.clone();
    let is_this_run = |result: &CommandResult| {
        let echoed = result.command_result.as_ref().and_then(|value| value.get(format!("{kind}_step")));
        let echoed = echoed.and_then(|step| step.get(NONCE)?.as_str());
        nonce.is_some() && echoed == nonce.as_deref()
    };
    task.agent().await?.execute_once(&name, params, Wait::UntilAccepted, is_this_run).await?;
    Ok(())
}
