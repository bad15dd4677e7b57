//! Rescue and unrescue (section 2.7).
//!
//! The hash of the password says how far a rescue has come: a worker that finds it in a node that is being rescued begins,
//! since nothing is lost by another boot; one that finds none has only the end to do, since the rescue system has it.

use crate::error::Error;
use crate::lease::HeldTask;
use crate::operations::ATTEMPTS;
use crate::records::{PendingOrder, Verb};
use farrier_conductor::Error as TaskError;
use farrier_conductor::agent::AgentError;
use farrier_conductor::deploy::DeployInterface;
use farrier_conductor::heartbeat::SessionEnd;
use farrier_conductor::in_band::RescueInterface;
use farrier_conductor::interfaces::outcome::Outcome;
use farrier_conductor::model::Event;
use farrier_conductor::steps::Progress;

/// Begins a rescue, or goes on with one on which a conductor worked that stopped.
///
/// # Errors
///
/// What fails the rescue; [`Error::Store`], when nothing is known to have failed but the store.
pub(crate) async fn rescue(task: &mut HeldTask, rescue: &dyn RescueInterface) -> Result<Progress, Error> {
    if task.node.instance_info.hashed_rescue_password().is_some() {
        if rescue.rescue(task).await? == Outcome::Wait {
            task.enter(Event::Wait)?;
            return Ok(Progress::Waits);
        }
        task.node.instance_info.forget_rescue_password();
        task.save().await?;
    }
    end(task, rescue).await
}

/// Goes on with a rescue whose agent has called, when that agent can be reached. When nobody knows whether it took the
/// password, as its answer was lost, or a conductor that stopped had asked it, the rescue begins anew.
///
/// # Errors
///
/// As [`rescue`].
pub(crate) async fn finalize_rescue(
    task: &mut HeldTask,
    rescue: &dyn RescueInterface,
) -> Result<Progress, Error> {
    if let Err(error @ AgentError::Unreachable { .. }) = task.agent().await?.commands().await {
        return Ok(Progress::Unreached(error.to_string()));
    }
    // The state tells a conductor that starts that the agent may have been asked.
    task.enter(Event::Resume)?;
    task.save().await?;
    match rescue.finalize_rescue(task).await {
        Ok(()) => {}
        Err(TaskError::Agent(AgentError::Busy { .. })) => {
            task.enter(Event::Wait)?;
            return Ok(Progress::Waits);
        }
        Err(TaskError::Agent(error @ AgentError::Unreachable { .. })) => {
            return begin_anew(task, rescue, error).await;
        }
        Err(error) => return Err(error.into()),
    }
    task.node.instance_info.forget_rescue_password();
    task.save().await?;
    end(task, rescue).await
}

async fn begin_anew(
    task: &mut HeldTask,
    rescue: &dyn RescueInterface,
    error: AgentError,
) -> Result<Progress, Error> {
    let now = task.services().now();
    let order = task.order_mut().get_or_insert(PendingOrder::new(Verb::Rescue, now));
    order.attempts += 1;
    if order.attempts.unsigned_abs() > ATTEMPTS {
        return Err(error.into());
    }
    tracing::warn!(node = %task.node.label(), "the rescue starts again: {error}");
    self::rescue(task, rescue).await
}

/// The rescue system has its password.
async fn end(task: &mut HeldTask, rescue: &dyn RescueInterface) -> Result<Progress, Error> {
    rescue.clean_up(task).await?;
    task.configure_tenant_networks().await?;
    done(task)
}

/// Boots the instance again.
///
/// # Errors
///
/// As [`rescue`].
pub(crate) async fn unrescue(
    task: &mut HeldTask,
    deploy: &dyn DeployInterface,
    rescue: &dyn RescueInterface,
) -> Result<Progress, Error> {
    deploy.prepare(task).await?;
    rescue.unrescue(task).await?;
    done(task)
}

fn done(task: &mut HeldTask) -> Result<Progress, Error> {
    task.end_session(SessionEnd::Operation { keeps_agent: false });
    *task.order_mut() = None;
    task.enter(Event::Done)?;
    Ok(Progress::Done)
}
