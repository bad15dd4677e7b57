//! What the conductor takes note of when a step has ended (section 3.6).

use crate::error::Error;
use crate::evidence::erasing::{self, Expected};
use crate::interfaces::deploy::DeployInterface;
use crate::model::{Node, PlannedStep, StepKind};
use crate::raid;
use crate::task::Task;
use farrier_protocol::command::CommandResult;
use serde_json::Value;

/// Takes note of what a step produced that ran in the agent.
pub(super) fn after_step(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    step: &PlannedStep,
    result: &CommandResult,
) -> Result<(), Error> {
    note_certificates(task, kind, step, result)?;
    let now = task.services.now();
    match (kind, step.interface.as_str(), step.step.as_str()) {
        (StepKind::Clean, "raid", "create_configuration")
        | (StepKind::Deploy, "raid", "apply_configuration") => {
            let made = result.command_result.as_ref().and_then(|value| value.get(format!("{kind}_result")));
            raid::note_made(&mut task.node, made, now)
        }
        (StepKind::Clean, "raid", "delete_configuration") => {
            raid::note_deleted(&mut task.node);
            Ok(())
        }
        (StepKind::Deploy, ..) => {
            deploy.note_result(task, step, result);
            Ok(())
        }
        (StepKind::Clean | StepKind::Service, ..) => Ok(()),
    }
}

/// Keeps the certificates of erasure that a step has produced, which counts once saved. They must be signed by the
/// agent that ran it; of one whose own certificate did not come with its heartbeat, nothing is kept.
fn note_certificates(
    task: &mut Task,
    kind: StepKind,
    step: &PlannedStep,
    result: &CommandResult,
) -> Result<(), Error> {
    let is_of_erasing = step.interface == "deploy" && step.step.starts_with("erase_devices");
    let produced = result.command_result.as_ref().and_then(|value| value.get(format!("{kind}_result")));
    let (true, Some(Value::Object(produced))) = (is_of_erasing, produced) else { return Ok(()) };
    let agent = task.session().agent_verify_ca.as_deref().and_then(erasing::fingerprint);
    let Some(agent) = agent else { return Ok(()) };
    let nonce = task.node.plan(kind).nonce.as_deref();
    let now = task.services.now();
    let expected = Expected { node: task.node.uuid, step: &step.step, nonce, agent: &agent, now };
    let accepted = erasing::accept(produced, &expected);
    task.keep_certificates(
        accepted.map_err(|refused| Error::invalid("the agent's proof", refused.to_string()))?,
    );
    Ok(())
}

/// Whether a deployment is at the one step in which its interface does everything (section 2.9).
pub(super) fn in_core_deploy_step(node: &Node, deploy: &dyn DeployInterface) -> bool {
    let is_core = |step: &PlannedStep| step.interface == "deploy" && step.step == "deploy";
    !deploy.has_decomposed_deploy_steps() && node.step(StepKind::Deploy).is_some_and(is_core)
}

/// Whether such a deployment has ended in the agent, which begins when it has not begun.
pub(super) async fn is_deployed(task: &mut Task, deploy: &dyn DeployInterface) -> Result<bool, Error> {
    if deploy.deploy_has_started(task).await? {
        return deploy.deploy_is_done(task).await;
    }
    deploy.continue_deploy(task).await?;
    Ok(false)
}
