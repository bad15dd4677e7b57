//! What the conductor takes note of when a step has ended (section 3.6).

use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::model::{Node, PlannedStep, StepKind};
use crate::steps::raid;
use crate::task::Task;
use farrier_protocol::command::CommandResult;

/// Takes note of what a step produced that ran in the agent.
pub(super) fn after_step(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    step: &PlannedStep,
    result: &CommandResult,
) -> Result<(), Error> {
    task.host.keep_proof(&task.node, &task.session, kind, step, result)?;
    let now = task.host.now();
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
