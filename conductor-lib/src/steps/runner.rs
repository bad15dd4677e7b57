//! Runs the steps of an operation (sections 3.5 to 3.8).

use crate::agent::AgentError;
use crate::agent::token;
use crate::deploy::{AfterHeartbeat, DeployInterface};
use crate::error::Error;
use crate::heartbeat::judge::judge;
use crate::heartbeat::{SessionEnd, Verdict};
use crate::interfaces::outcome::Outcome;
use crate::interfaces::{DriverStep, InterfaceError};
use crate::model::{Activity, Event, Node, PlannedStep, ProvisionState, StepKind};
use crate::plan::{Missing, place_of};
use crate::steps::execution::execute;
use crate::steps::outcome::StepOutcome;
use crate::steps::retry::{RetryAt, retry};
use crate::steps::{Progress, after_step, preparation, source};
use crate::task::Task;
use crate::task::agent_steps;
use crate::task::ramdisk;
use farrier_protocol::command::CommandResult;
use rand::Rng;

/// Takes note of what runs without the ramdisk, of the operation that a node has entered. Of a deployment it sees
/// whether that can be, as far as its steps are known before the agent runs; cleaning and service see that when they
/// begin.
///
/// # Errors
///
/// [`Error::Invalid`] with all that is wrong with the steps of a deployment.
pub async fn check(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<(), Error> {
    leave_out_agent(task, deploy, kind);
    if kind == StepKind::Service && !task.node.plan(kind).disable_ramdisk {
        // Whatever nobody knows yet is the agent's.
        let known = source::steps(task, deploy, kind, Missing::LeftOut).unwrap_or_default();
        let all_known = known.len() == task.node.plan(kind).requested.len();
        task.node.plan_mut(kind).disable_ramdisk =
            all_known && !known.iter().any(|step| step.requires_ramdisk);
    }
    match kind {
        StepKind::Deploy => source::verify(task, deploy, kind).await,
        StepKind::Clean | StepKind::Service => Ok(()),
    }
}

/// Takes note of an operation for which the deploy interface runs no agent.
fn leave_out_agent(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) {
    let plan = task.node.plan_mut(kind);
    match kind {
        StepKind::Deploy => plan.disable_ramdisk = deploy.in_band().is_empty(),
        StepKind::Clean | StepKind::Service => plan.disable_ramdisk |= !deploy.runs_agents(),
    }
}

/// Begins an operation, or resumes one of a conductor that stopped. What the agent runs is left to
/// it: it may have the step, or not. A step of the conductor runs again, from its beginning.
///
/// # Errors
///
/// What fails the operation; [`Error::Host`], when nothing is known to have failed but the store.
pub async fn resume(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
) -> Result<Progress, Error> {
    let plan = task.node.plan(kind);
    match (plan.index, task.node.step(kind)) {
        // Every step was done: its end alone failed.
        (None, _)
            if plan.failed.is_some_and(|failed| !plan.steps.is_empty() && failed == plan.steps.len()) =>
        {
            end(task, deploy, kind).await
        }
        (None, _) if let Some(failed) = plan.failed => match retry(task, kind, failed).await? {
            RetryAt::Step(index) => run(task, deploy, kind, index).await,
            RetryAt::Beginning => start(task, deploy, kind).await,
        },
        (None, _) => start(task, deploy, kind).await,
        (Some(_), Some(_)) if plan.reboot => reboot(task, kind).await,
        (Some(index), Some(step)) if !step.in_band => run(task, deploy, kind, index).await,
        (Some(_), Some(_)) => {
            task.node.plan_mut(kind).skip_current = Some(false);
            task.enter(Event::Wait)?;
            Ok(Progress::Waits)
        }
        (Some(index), None) => run(task, deploy, kind, index).await,
    }
}

async fn start(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Progress, Error> {
    let missing = match kind {
        StepKind::Deploy => {
            deploy.prepare(task).await?;
            let has_ramdisk = !task.node.plan(kind).disable_ramdisk;
            if has_ramdisk { Missing::LeftOut } else { Missing::Refused }
        }
        StepKind::Clean | StepKind::Service => {
            leave_out_agent(task, deploy, kind);
            source::verify(task, deploy, kind).await?;
            if !task.node.plan(kind).disable_ramdisk {
                return prepare_and_begin(task, deploy, kind).await;
            }
            Missing::Refused
        }
    };
    task.node.plan_mut(kind).steps = source::steps(task, deploy, kind, missing)?;
    run(task, deploy, kind, 0).await
}

/// Prepares a cleaning or service, and begins its steps where its agent has stayed from the operation before (fast
/// track).
async fn prepare_and_begin(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
) -> Result<Progress, Error> {
    let is_prepared = preparation::prepare(task, deploy, kind).await?;
    if is_prepared == Outcome::Wait || list_or_boot(task, kind).await? == Outcome::Wait {
        task.enter(Event::Wait)?;
        return Ok(Progress::Waits);
    }
    task.node.plan_mut(kind).steps = anew(task, deploy, kind)?;
    run(task, deploy, kind, 0).await
}

/// Asks an agent that has stayed for its steps. Should it have gone in this very moment, or be busy, another one is
/// booted, and waited for.
async fn list_or_boot(task: &mut Task, kind: StepKind) -> Result<Outcome, Error> {
    match agent_steps::list(task, kind).await {
        Ok(()) => Ok(Outcome::Done),
        Err(Error::Agent(error @ (AgentError::Busy { .. } | AgentError::Unreachable { .. }))) => {
            tracing::warn!(node = %task.node.label(), "the conductor boots the ramdisk again: {error}");
            ramdisk::boot(task).await?;
            Ok(Outcome::Wait)
        }
        Err(error) => Err(error),
    }
}

/// Begins the steps of a cleaning or service whose agent has called.
///
/// # Errors
///
/// As [`resume`].
pub async fn begin(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Progress, Error> {
    let outcome = begin_now(task, deploy, kind).await;
    patiently(task, kind, outcome)
}

async fn begin_now(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Progress, Error> {
    agent_steps::list(task, kind).await?;
    task.node.plan_mut(kind).steps = anew(task, deploy, kind)?;
    task.enter(Event::Resume)?;
    run(task, deploy, kind, 0).await
}

/// The plan, now that all steps are known.
fn anew(task: &Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Vec<PlannedStep>, Error> {
    let offers_nothing = task.session.cached_steps(kind).is_none_or(<[_]>::is_empty);
    if kind == StepKind::Clean && offers_nothing && !task.node.is_cleaned_by_hand() {
        let reason = "lists no clean steps, so nothing would be cleaned; use a ramdisk that has some";
        return Err(Error::invalid("the agent", reason));
    }
    source::steps(task, deploy, kind, Missing::Refused)
}

/// Continues with a node that waits and whose agent sent a heartbeat, or that needs none.
///
/// # Errors
///
/// As [`resume`].
pub async fn advance(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
) -> Result<Progress, Error> {
    let plan = task.node.plan(kind);
    if plan.disable_ramdisk && plan.runs_again() {
        return again(task, deploy, kind).await;
    }
    if plan.disable_ramdisk {
        return go_on(task, deploy, kind, None).await;
    }
    let after = match kind {
        StepKind::Deploy if is_at_own_step(&task.node) => deploy.heartbeat(task).await,
        _ => Ok(AfterHeartbeat::JudgesStep),
    };
    let outcome = match after {
        Ok(AfterHeartbeat::JudgesStep) => advance_now(task, deploy, kind).await,
        Ok(AfterHeartbeat::Waits) => Ok(Progress::Waits),
        Ok(AfterHeartbeat::Done) => go_on(task, deploy, kind, None).await,
        Err(
            error @ (Error::Host(_) | Error::Agent(AgentError::Busy { .. } | AgentError::Unreachable { .. })),
        ) => Err(error),
        Err(error) => Err(step_failed(kind, task.node.step(kind), error.coded())),
    };
    patiently(task, kind, outcome)
}

/// Whether a deployment is at a step of its deploy interface that no agent runs.
fn is_at_own_step(node: &Node) -> bool {
    node.step(StepKind::Deploy).is_some_and(|step| step.interface == "deploy" && !step.in_band)
}

async fn advance_now(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
) -> Result<Progress, Error> {
    if task.session.cached_steps(kind).is_none() {
        refresh(task, deploy, kind).await?;
    }
    let commands = task.agent().await?.commands().await?;
    match judge(&commands, kind, task.node.step(kind), Some(task.node.plan(kind))) {
        Verdict::Wait => Ok(Progress::Waits),
        Verdict::Fail(reason) => Err(step_failed(kind, task.node.step(kind), reason)),
        Verdict::Continue(result) => go_on(task, deploy, kind, result).await,
        Verdict::Repeat | Verdict::Refresh if is_to_abort(task, kind) => Ok(Progress::Aborts),
        Verdict::Repeat => again(task, deploy, kind).await,
        Verdict::Refresh => {
            renew(task, deploy, kind).await?;
            again(task, deploy, kind).await
        }
    }
}

/// An agent that is busy, or that cannot be reached, is waited for: its machine may reboot, its network or that of this
/// conductor be down. What has begun to go on meanwhile goes on from the current step.
fn patiently(task: &mut Task, kind: StepKind, outcome: Result<Progress, Error>) -> Result<Progress, Error> {
    let progress = match outcome {
        Err(Error::Agent(AgentError::Busy { .. })) => Progress::Waits,
        Err(Error::Agent(error @ AgentError::Unreachable { .. })) => Progress::Unreached(error.to_string()),
        other => return other,
    };
    if task.node.provision_state.activity() == Activity::Work {
        task.node.plan_mut(kind).skip_current = Some(false);
        task.enter(Event::Wait)?;
    }
    Ok(progress)
}

/// The driver was asked for the current step, which it runs.
///
/// # Errors
///
/// As [`resume`].
pub async fn polled(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    outcome: Result<DriverStep, InterfaceError>,
) -> Result<Progress, Error> {
    let outcome =
        outcome.map_err(|error| step_failed(kind, task.node.step(kind), Error::from(error).coded()))?;
    match outcome {
        DriverStep::Polls => Ok(Progress::Waits),
        DriverStep::Done => {
            task.node.plan_mut(kind).polling = false;
            go_on(task, deploy, kind, None).await
        }
        DriverStep::WantsReboot { runs_again } => {
            task.enter(Event::Resume)?;
            reboot_for_driver(task, kind, runs_again).await
        }
    }
}

/// Asks the agent for its steps. An agent that is not there, or busy, is waited for.
///
/// # Errors
///
/// As [`resume`].
pub async fn list(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Progress, Error> {
    let listed = refresh(task, deploy, kind).await.map(|()| Progress::Waits);
    patiently(task, kind, listed)
}

/// Asks the agent for its steps. The plan of a deployment is made anew, the current step staying current; other plans
/// stay as they are.
///
/// # Errors
///
/// As [`resume`].
async fn refresh(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<(), Error> {
    agent_steps::list(task, kind).await?;
    if kind == StepKind::Deploy {
        plan_anew(task, deploy)?;
    }
    task.save().await
}

/// Makes the plan of a deployment anew, now that its agent has listed its steps.
fn plan_anew(task: &mut Task, deploy: &dyn DeployInterface) -> Result<(), Error> {
    let kind = StepKind::Deploy;
    let steps = anew(task, deploy, kind)?;
    let place = task.node.step(kind).and_then(|current| place_of(current, &steps));
    let plan = task.node.plan_mut(kind);
    plan.steps = steps;
    plan.index = place.or(plan.index);
    Ok(())
}

/// Takes up what the agent offers now, since its hardware managers are others (section 3.7): an automated cleaning
/// begins anew.
async fn renew(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<(), Error> {
    let before = task.session.hardware_manager_version.clone();
    refresh(task, deploy, kind).await?;
    if before == task.session.hardware_manager_version {
        let reason =
            "the agent says that its hardware managers are others, and lists the same ones".to_owned();
        return Err(step_failed(kind, task.node.step(kind), reason));
    }
    if kind == StepKind::Clean && !task.node.is_cleaned_by_hand() {
        let steps = anew(task, deploy, kind)?;
        let plan = task.node.plan_mut(kind);
        (plan.steps, plan.index) = (steps, Some(0));
    }
    Ok(())
}

async fn again(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Progress, Error> {
    let index = task.node.plan(kind).index.unwrap_or(0);
    task.enter(Event::Resume)?;
    run(task, deploy, kind, index).await
}

/// The current step has ended.
async fn go_on(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    result: Option<&CommandResult>,
) -> Result<Progress, Error> {
    let step = task.node.step(kind).cloned();
    if let (Some(step), Some(result)) = (&step, result) {
        after_step::after_step(task, deploy, kind, step, result)
            .map_err(|error| step_failed(kind, Some(step), error.coded()))?;
    }
    if is_to_abort(task, kind) {
        return Ok(Progress::Aborts);
    }
    let next = task.node.plan(kind).index.map_or(0, |index| index + 1);
    task.enter(Event::Resume)?;
    match result.is_some() && step.is_some_and(|step| step.reboot_requested) {
        true => {
            let plan = task.node.plan_mut(kind);
            (plan.reboot, plan.skip_current) = (true, None);
            reboot(task, kind).await
        }
        false => run(task, deploy, kind, next).await,
    }
}

fn is_to_abort(task: &Task, kind: StepKind) -> bool {
    task.node.step(kind).is_some_and(|step| step.abort_after)
}

/// Reboots the machine because a step wants that, which is noted; the next agent goes on.
async fn reboot(task: &mut Task, kind: StepKind) -> Result<Progress, Error> {
    // An agent that switches its machine is forgotten when it is gone. One that is gone already had its order from a
    // conductor that stopped; should it be lost, the wait has its deadline.
    let is_in_band = task.is_switched_by_agent()?;
    let is_left = is_in_band && !task.has_agent().await?;
    if !is_in_band || is_left {
        task.end_session(SessionEnd::StepReboot);
    }
    match task.node.plan(kind).disable_ramdisk {
        _ if is_left => {}
        true => task.reboot().await?,
        false => ramdisk::boot(task).await?,
    }
    task.enter(Event::Wait)?;
    Ok(Progress::Waits)
}

async fn reboot_for_driver(task: &mut Task, kind: StepKind, runs_again: bool) -> Result<Progress, Error> {
    let plan = task.node.plan_mut(kind);
    (plan.reboot, plan.polling) = (true, false);
    plan.skip_current = runs_again.then_some(false);
    reboot(task, kind).await
}

/// Runs the plan from step `index` until a step waits or the plan ends.
async fn run(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    mut index: usize,
) -> Result<Progress, Error> {
    while let Some(step) = task.node.plan(kind).steps.get(index).cloned() {
        tracing::info!(node = %task.node.label(), step = %step.id(), "{kind} step");
        *task.node.step_mut(kind) = Some(step.clone());
        let plan = task.node.plan_mut(kind);
        (plan.index, plan.skip_current) = (Some(index), None);
        (plan.reboot, plan.polling) = (false, false);
        plan.nonce = step.in_band.then(token::new);
        task.save().await?;
        match execute_and_list(task, deploy, kind, &step).await {
            // The place of the step may be another one, now that more are known.
            Ok(StepOutcome::Done) => index = task.node.plan(kind).index.unwrap_or(index) + 1,
            Ok(StepOutcome::Waits(event)) => return wait(task, event),
            Ok(StepOutcome::WantsReboot { runs_again }) => {
                let outcome = reboot_for_driver(task, kind, runs_again).await;
                return outcome.map_err(|error| failed_at(kind, &step, error));
            }
            // A step whose agent is not there, or busy, runs again when it calls.
            Err(Error::Agent(AgentError::Busy { .. } | AgentError::NotConnected)) => {
                task.node.plan_mut(kind).skip_current = Some(false);
                return wait(task, Event::Wait);
            }
            // Nor does one that cannot be reached fail. Should it have the step all the same, its answer tells.
            Err(Error::Agent(error @ AgentError::Unreachable { .. })) => {
                task.node.plan_mut(kind).skip_current = Some(false);
                wait(task, Event::Wait)?;
                return Ok(Progress::Unreached(error.to_string()));
            }
            Err(error) => return Err(failed_at(kind, &step, error)),
        }
    }
    end(task, deploy, kind).await
}

/// Executes a step. A deployment that finds an agent which has stayed (fast track) asks it for its steps after that.
async fn execute_and_list(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    step: &PlannedStep,
) -> Result<StepOutcome, Error> {
    let outcome = execute(task, deploy, kind, step).await?;
    let is_new = task.session.agent_url.is_some() && task.session.cached_steps(kind).is_none();
    if !(matches!(outcome, StepOutcome::Done) && kind == StepKind::Deploy && is_new) {
        return Ok(outcome);
    }
    if list_or_boot(task, kind).await? == Outcome::Wait {
        return Ok(StepOutcome::Waits(Event::Wait));
    }
    plan_anew(task, deploy)?;
    Ok(outcome)
}

fn wait(task: &mut Task, event: Event) -> Result<Progress, Error> {
    if event == Event::Hold {
        // It is for an operator to order what comes next.
        task.host.end_order();
    }
    task.enter(event)?;
    Ok(Progress::Waits)
}

/// All steps are done. That is recorded before anything is undone, so that none of them runs again.
async fn end(task: &mut Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<Progress, Error> {
    *task.node.step_mut(kind) = None;
    let plan = task.node.plan_mut(kind);
    plan.index = Some(plan.steps.len());
    tear_down_patiently(task, deploy, kind).await?;
    if kind == StepKind::Clean && !task.node.is_cleaned_by_hand() {
        task.host.mark_erasure(&mut task.node).await?;
    }
    let is_manageable = kind == StepKind::Clean
        && (task.node.target_provision_state == Some(ProvisionState::Manageable) || task.node.retired);
    let keeps_agent = task.keeps_agent();
    task.node.end_plans();
    task.end_session(SessionEnd::Operation { keeps_agent });
    task.host.end_order();
    task.enter(if is_manageable { Event::Manage } else { Event::Done })?;
    Ok(Progress::Done)
}

/// Undoes what was prepared, once more when a BMC does not do its part at once: what has been done for hours is not thrown away
/// for that.
async fn tear_down_patiently(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
) -> Result<(), Error> {
    let (attempts, pause) = (task.settings().tear_down_attempts.max(1), task.settings().tear_down_pause);
    for attempt in 1.. {
        match super::tear_down(task, deploy, kind).await {
            Err(error @ Error::Host(_)) => return Err(error),
            Err(error) if attempt < attempts => {
                tracing::warn!(node = %task.node.label(), "the end of the {kind} is tried again: {error}");
                let factor = rand::rng().random_range(0.5..1.5);
                tokio::time::sleep(pause.mul_f64(factor)).await;
            }
            Err(error) => return Err(step_failed(kind, None, error.to_string())),
            Ok(()) => return Ok(()),
        }
    }
    Ok(())
}

/// The store's errors fail no step.
fn failed_at(kind: StepKind, step: &PlannedStep, error: Error) -> Error {
    match error {
        Error::Host(_) => error,
        error => step_failed(kind, Some(step), error.coded()),
    }
}

fn step_failed(kind: StepKind, step: Option<&PlannedStep>, reason: String) -> Error {
    let step = step.map_or_else(|| kind.to_string(), |step| step.step.clone());
    Error::StepFailed { kind, step, reason }
}
