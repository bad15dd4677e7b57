//! Goes on with an operation at the step that failed, or begins it anew. The contract has no such verb.

use super::Progress;
use super::engine::{run, start};
use crate::agent_steps;
use crate::error::Error;
use crate::events::EventKind;
use crate::interfaces::deploy::DeployInterface;
use crate::model::StepKind;
use crate::ramdisk;
use crate::task::Task;

/// Runs an operation again from the step that failed, if the agent which ran it is still there, or none is needed. If
/// not, the operation begins anew, since nobody knows what the steps before have left.
///
/// # Errors
///
/// What fails the operation; [`Error::Store`], when nothing is known to have failed but the store.
pub(super) async fn retry(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    failed: usize,
) -> Result<Progress, Error> {
    let step = task.node.plan(kind).steps.get(failed).map(|step| step.step.clone());
    let goes_on =
        step.is_some() && (task.node.plan(kind).disable_ramdisk || is_in_its_ramdisk(task, kind).await?);
    let at = step.filter(|_| goes_on);
    tracing::info!(node = %task.node.label(), ?at, "the {kind} goes on at the step that failed, or begins anew");
    task.emit(EventKind::Retried { at });
    task.node.plan_mut(kind).failed = None;
    match goes_on {
        true => run(task, deploy, kind, failed).await,
        false => start(task, deploy, kind).await,
    }
}

/// Whether the agent of the operation that failed is there, which is asked for its steps; its machine is on the network
/// of the operation then, and boots the ramdisk should a step restart it.
async fn is_in_its_ramdisk(task: &mut Task, kind: StepKind) -> Result<bool, Error> {
    if !task.has_agent().await? {
        return Ok(false);
    }
    ramdisk::take_up(task).await?;
    match agent_steps::list(task, kind).await {
        Ok(()) => Ok(true),
        Err(Error::Agent(error)) => {
            tracing::warn!(node = %task.node.label(), "{error}");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
