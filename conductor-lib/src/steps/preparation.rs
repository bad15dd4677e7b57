//! What comes before the first step of a cleaning or service, and after the last one (section 3.11).

use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::interfaces::outcome::Outcome;
use crate::model::StepKind;
use crate::task::Task;

/// Has the deploy interface make the machine ready for the steps of a cleaning or service, and tells whether the heartbeat of
/// its agent is to be awaited.
pub(super) async fn prepare(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
) -> Result<Outcome, Error> {
    // Recorded before the machine is changed: a conductor that stops in between leaves something to undo.
    task.node.plan_mut(kind).untouched = false;
    task.save().await?;
    match kind {
        StepKind::Clean => deploy.prepare_cleaning(task).await,
        StepKind::Service => deploy.prepare_service(task).await,
        StepKind::Deploy => Ok(Outcome::Done),
    }
}

/// Has the deploy interface undo what it prepared for a cleaning or service; nothing happens where it prepared nothing. It
/// may be done again.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub async fn tear_down(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<(), Error> {
    match kind {
        StepKind::Clean if task.node.plan(kind).has_agent() => deploy.tear_down_cleaning(task).await,
        StepKind::Service if task.node.plan(kind).has_agent() => deploy.tear_down_service(task).await,
        StepKind::Clean | StepKind::Service | StepKind::Deploy => Ok(()),
    }
}
