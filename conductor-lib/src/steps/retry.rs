//! Where an operation goes on that failed and is ordered again. The contract has no such verb.

use crate::error::Error;
use crate::model::StepKind;
use crate::task::Task;
use crate::task::agent_steps;
use crate::task::event::EventKind;
use crate::task::ramdisk;

/// Where an operation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAt {
    /// The step that failed.
    Step(usize),
    /// The beginning: the steps run once more.
    Beginning,
}

/// An operation goes on at the step that failed, if the agent which ran it is still there, or none is needed. If not, it
/// begins again, since nobody knows what the steps before have left.
///
/// # Errors
///
/// What fails the operation; [`Error::Host`], when nothing is known to have failed but the store.
pub(super) async fn retry(task: &mut Task, kind: StepKind, failed: usize) -> Result<RetryAt, Error> {
    let step = task.node.plan(kind).steps.get(failed).map(|step| step.step.clone());
    let goes_on =
        step.is_some() && (task.node.plan(kind).disable_ramdisk || is_in_its_ramdisk(task, kind).await?);
    let at = step.filter(|_| goes_on);
    tracing::info!(node = %task.node.label(), ?at, "the {kind} resumes at the step that failed, or starts again");
    task.emit(EventKind::Retried { at });
    task.node.plan_mut(kind).failed = None;
    Ok(if goes_on { RetryAt::Step(failed) } else { RetryAt::Beginning })
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
