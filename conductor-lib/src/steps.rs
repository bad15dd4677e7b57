//! Runs the steps of an operation, across heartbeats (conductor contract 3.5, 3.6 and 3.8).

use crate::agent_client::{AgentError, failure_text};
use crate::deploy::{DeployInterface, Outcome};
use crate::error::Error;
use crate::heartbeat::SessionEnd;
use crate::model::{Event, PlannedStep};
use crate::plan::place_of;
use crate::task::Task;
use farrier_protocol::command::{CommandResult, CommandStatus};
use farrier_protocol::step::DeploySteps;
use serde_json::json;

/// What the agent's command list says about the current step.
#[derive(Debug)]
pub(crate) enum Verdict<'a> {
    /// Nothing to do yet.
    Wait,
    /// The current step is done, with this result where the agent ran it.
    Continue(Option<&'a CommandResult>),
    /// The current step is to run again.
    Repeat,
    /// The agent lists other steps or versions now; ask again, then run the step again.
    Refresh,
    /// The current step failed.
    Fail(String),
}

/// How an operation left off. What it changed counts once the task is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It waits for the agent.
    Waits,
    /// It is done.
    Done,
}

/// Starts a deployment.
///
/// # Errors
///
/// What fails the deployment; [`Error::Store`], when nothing is known to have failed but the store.
pub(crate) async fn start(task: &mut Task, deploy: &dyn DeployInterface) -> Result<Progress, Error> {
    task.node.driver_internal_info.deploy_steps = deploy.plan(&task.session);
    run(task, deploy, 0).await
}

/// Goes on with a deployment on which a conductor worked that stopped. What the agent runs is left to it: it may have
/// the step, or not. A step of the conductor runs again, from its beginning.
///
/// # Errors
///
/// As [`start`].
pub(crate) async fn resume(task: &mut Task, deploy: &dyn DeployInterface) -> Result<Progress, Error> {
    let notes = &mut task.node.driver_internal_info;
    let (Some(index), Some(step)) = (notes.deploy_step_index, &task.node.deploy_step) else {
        return start(task, deploy).await;
    };
    if !deploy.runs_in_agent(step) {
        return run(task, deploy, index).await;
    }
    notes.skip_current_deploy_step = Some(false);
    task.enter(Event::Wait)?;
    Ok(Progress::Waits)
}

/// Goes on with a node in DEPLOYWAIT whose agent was heard of.
///
/// # Errors
///
/// As [`start`].
pub(crate) async fn advance(task: &mut Task, deploy: &dyn DeployInterface) -> Result<Progress, Error> {
    match advance_or_busy(task, deploy).await {
        Err(Error::Agent(AgentError::Busy { .. })) => Ok(Progress::Waits),
        other => other,
    }
}

async fn advance_or_busy(task: &mut Task, deploy: &dyn DeployInterface) -> Result<Progress, Error> {
    if task.session.agent_cached_deploy_steps.is_none() {
        refresh_steps(task, deploy).await?;
    }
    let commands = task.agent().await?.commands().await?;
    let current = task.node.deploy_step.clone();
    let again = task.node.driver_internal_info.skip_current_deploy_step == Some(false);
    let index = task.node.driver_internal_info.deploy_step_index;
    let same = index.unwrap_or(0);
    let in_agent = current.as_ref().is_some_and(|step| deploy.runs_in_agent(step));
    match judge(&commands, current.as_ref(), in_agent, again) {
        Verdict::Wait => Ok(Progress::Waits),
        Verdict::Continue(result) => {
            if let (Some(step), Some(result)) = (&current, result) {
                deploy.note_result(task, step, result);
            }
            task.enter(Event::Resume)?;
            run(task, deploy, index.map_or(0, |index| index + 1)).await
        }
        Verdict::Repeat => {
            task.enter(Event::Resume)?;
            run(task, deploy, same).await
        }
        Verdict::Refresh => {
            refresh_steps(task, deploy).await?;
            task.enter(Event::Resume)?;
            run(task, deploy, same).await
        }
        Verdict::Fail(reason) => Err(step_failed(current.as_ref(), reason)),
    }
}

/// Reads the command list; `in_agent` tells where the current step runs. An agent that knows nothing of a step it was
/// running has restarted: that step failed, it is not taken for done. A step that is to run `again` does so unless the
/// agent has run it after all.
pub(crate) fn judge<'a>(
    commands: &'a [CommandResult],
    current: Option<&PlannedStep>,
    in_agent: bool,
    again: bool,
) -> Verdict<'a> {
    let is_fresh = commands.iter().all(|command| is_listing(&command.command_name));
    let last = commands.last();
    let is_running = last.is_some_and(|last| last.command_status == CommandStatus::Running);
    match last {
        _ if again && is_running => Verdict::Wait,
        Some(last) if again && echoes(last, current) => judge_step(last, current),
        _ if again => Verdict::Repeat,
        _ if is_fresh && in_agent => Verdict::Fail(
            "the ramdisk restarted while the step was running; look at the machine's console".to_owned(),
        ),
        _ if is_fresh => Verdict::Continue(None),
        Some(last) if last.command_name == "execute_deploy_step" => judge_step(last, current),
        _ => Verdict::Wait,
    }
}

fn judge_step<'a>(last: &'a CommandResult, current: Option<&PlannedStep>) -> Verdict<'a> {
    match last.command_status {
        CommandStatus::Running => Verdict::Wait,
        CommandStatus::Succeeded if echoes(last, current) => Verdict::Continue(Some(last)),
        CommandStatus::Succeeded => Verdict::Wait,
        CommandStatus::CleanVersionMismatch | CommandStatus::VersionMismatch => Verdict::Refresh,
        CommandStatus::Failed | CommandStatus::Other(_) => {
            Verdict::Fail(failure_text("deploy.execute_deploy_step", last))
        }
    }
}

fn is_listing(command: &str) -> bool {
    command.starts_with("get_") && command.ends_with("_steps")
}

/// Whether a result is that of the current step and not of an earlier one.
fn echoes(result: &CommandResult, current: Option<&PlannedStep>) -> bool {
    let echoed = result.command_result.as_ref().and_then(|value| value.get("deploy_step"));
    let (Some(echoed), Some(current)) = (echoed, current) else { return false };
    echoed["interface"] == current.interface.as_str() && echoed["step"] == current.step.as_str()
}

/// Asks the agent for its steps and makes the plan anew, the current step staying current.
async fn refresh_steps(task: &mut Task, deploy: &dyn DeployInterface) -> Result<(), Error> {
    let params = json!({"node": task.shown(), "ports": task.node.ports});
    let listed = task.agent().await?.run("deploy.get_deploy_steps", params).await?;
    let listed: DeploySteps = serde_json::from_value(listed).map_err(|error| {
        Error::invalid("the agent's answer to deploy.get_deploy_steps", format!("cannot be read: {error}"))
    })?;
    task.learn(|session| {
        session.agent_cached_deploy_steps = Some(listed.deploy_steps.into_values().flatten().collect());
        session.hardware_manager_version = Some(listed.hardware_manager_version);
    });
    let plan = deploy.plan(&task.session);
    let place = task.node.deploy_step.as_ref().and_then(|current| place_of(current, &plan));
    let notes = &mut task.node.driver_internal_info;
    notes.deploy_steps = plan;
    if place.is_some() {
        notes.deploy_step_index = place;
    }
    task.save().await
}

/// Runs the plan from step `index` until a step waits or the plan ends.
async fn run(task: &mut Task, deploy: &dyn DeployInterface, mut index: usize) -> Result<Progress, Error> {
    while let Some(step) = task.node.driver_internal_info.deploy_steps.get(index).cloned() {
        tracing::info!(node = %task.node.name, step = %step.step, "deploy step");
        task.node.deploy_step = Some(step.clone());
        task.node.driver_internal_info.deploy_step_index = Some(index);
        task.node.driver_internal_info.skip_current_deploy_step = None;
        task.save().await?;
        match deploy.execute(task, &step).await {
            Ok(Outcome::Done) => index += 1,
            Ok(Outcome::Wait) => return task.enter(Event::Wait).map(|()| Progress::Waits),
            Err(Error::Agent(AgentError::Busy { .. })) => {
                task.node.driver_internal_info.skip_current_deploy_step = Some(false);
                return task.enter(Event::Wait).map(|()| Progress::Waits);
            }
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => return Err(step_failed(Some(&step), error.to_string())),
        }
    }
    task.node.end_plan();
    task.end_session(SessionEnd::Operation { keeps_agent: false });
    task.order = None;
    task.enter(Event::Done)?;
    Ok(Progress::Done)
}

fn step_failed(step: Option<&PlannedStep>, reason: String) -> Error {
    Error::StepFailed { step: step.map_or_else(|| "deploy".to_owned(), |step| step.step.clone()), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::error::{CommandError, ErrorKind};

    fn step(name: &str) -> PlannedStep {
        PlannedStep::new("deploy", name, 80)
    }

    fn command(name: &str, status: CommandStatus) -> CommandResult {
        CommandResult { command_status: status, ..CommandResult::running(name) }
    }

    fn executed(step: &str, status: CommandStatus) -> CommandResult {
        CommandResult {
            command_result: Some(
                json!({"deploy_step": {"interface": "deploy", "step": step}, "deploy_result": null}),
            ),
            ..command("execute_deploy_step", status)
        }
    }

    #[test]
    fn the_last_command_decides() {
        use CommandStatus::{CleanVersionMismatch, Failed, Other, Running, Succeeded, VersionMismatch};
        let listing = || command("get_deploy_steps", Succeeded);
        let text = |verdict: &Verdict| match verdict {
            Verdict::Wait => "wait",
            Verdict::Continue(Some(_)) => "continue with result",
            Verdict::Continue(None) => "continue",
            Verdict::Repeat => "repeat",
            Verdict::Refresh => "refresh",
            Verdict::Fail(_) => "fail",
        };
        for (commands, current, again, expected) in [
            (vec![], "deploy", false, "continue"),
            (vec![listing()], "deploy", false, "continue"),
            (vec![listing(), command("get_clean_steps", Succeeded)], "deploy", false, "continue"),
            (vec![], "write_image", false, "fail"),
            (vec![listing()], "write_image", false, "fail"),
            (vec![listing()], "write_image", true, "repeat"),
            (vec![listing(), command("sync", Running)], "write_image", true, "wait"),
            (vec![listing(), executed("write_image", Running)], "write_image", true, "wait"),
            (
                vec![listing(), executed("write_image", Succeeded)],
                "write_image",
                true,
                "continue with result",
            ),
            (vec![listing(), executed("other", Succeeded)], "write_image", true, "repeat"),
            (vec![listing(), command("execute_deploy_step", Failed)], "write_image", true, "repeat"),
            (vec![listing(), command("sync", Succeeded)], "write_image", false, "wait"),
            (vec![executed("write_image", Running)], "write_image", false, "wait"),
            (vec![executed("write_image", Succeeded)], "write_image", false, "continue with result"),
            (vec![executed("other", Succeeded)], "write_image", false, "wait"),
            (vec![command("execute_deploy_step", Succeeded)], "write_image", false, "wait"),
            (vec![executed("write_image", CleanVersionMismatch)], "write_image", false, "refresh"),
            (vec![executed("write_image", VersionMismatch)], "write_image", false, "refresh"),
            (vec![executed("write_image", Failed)], "write_image", false, "fail"),
            (vec![executed("write_image", Other("PAUSED".into()))], "write_image", false, "fail"),
            (vec![executed("write_image", Failed), command("sync", Succeeded)], "write_image", false, "wait"),
        ] {
            let step = step(current);
            let verdict = judge(&commands, Some(&step), current != "deploy", again);
            assert_eq!(text(&verdict), expected, "{current} {again} {commands:?}");
        }
    }

    #[test]
    fn f64_the_failure_is_told_in_the_agents_words() {
        let error = CommandError::new(ErrorKind::ImageChecksumError, "http://h/i: digest differs");
        let failed = CommandResult {
            command_error: Some(error),
            ..command("execute_deploy_step", CommandStatus::Failed)
        };
        let current = step("write_image");
        let failed = [failed];
        let Verdict::Fail(reason) = judge(&failed, Some(&current), true, false) else { panic!("not failed") };
        assert_eq!(
            step_failed(Some(&current), reason).to_string(),
            "deploy step write_image failed: http://h/i: digest differs"
        );
    }
}
