//! What the conductor takes note of when a step has ended (section 3.6).

use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::model::{PlannedStep, StepKind};
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
