//! What the agent's command list says about the current step (sections 3.6 and 3.7); pure.

use crate::agent::failure_text;
use crate::model::{PlannedStep, StepKind, StepPlan};
use farrier_protocol::command::{CommandResult, CommandStatus};

/// The command that executes a step, as agents list it.
pub(crate) fn command(kind: StepKind) -> String {
    format!("execute_{kind}_step")
}

/// The key of a step within its command and its result.
pub(crate) const INDEX: &str = "index";

/// What the agent's command list says about the current step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Nothing to do yet.
    Wait,
    /// The current step is done, with this result where the agent ran it.
    Continue(Option<&'a CommandResult>),
    /// The current step must run again.
    Repeat,
    /// The agent lists other steps or versions now; ask again, then run the step again.
    Refresh,
    /// The current step failed.
    Fail(String),
}

/// Reads the command list of an agent whose operation waits.
///
/// An agent that knows nothing of a step it was running has restarted. Ironic takes that step for done; here it is done
/// only when its reboot was wanted, and has failed else. A listing of steps never counts as the end of one.
pub(crate) fn judge<'a>(
    commands: &'a [CommandResult],
    kind: StepKind,
    step: Option<&PlannedStep>,
    plan: Option<&StepPlan>,
) -> Verdict<'a> {
    let (Some(step), Some(plan)) = (step, plan) else { return Verdict::Continue(None) };
    let is_fresh = commands.iter().all(|command| is_listing(&command.command_name));
    let last = commands.last();
    let is_running = last.is_some_and(|last| last.command_status == CommandStatus::Running);
    match last {
        _ if is_running => Verdict::Wait,
        // The agent that runs still is that of before.
        _ if plan.reboot && !is_fresh => Verdict::Wait,
        Some(last) if step.in_band && plan.runs_again() && echoes(last, kind, step, plan.index) => {
            judge_step(last, kind, step, plan.index)
        }
        _ if plan.runs_again() => Verdict::Repeat,
        _ if plan.reboot || !step.in_band => Verdict::Continue(None),
        _ if is_fresh => Verdict::Fail(
            "the ramdisk restarted while the step was running; look at the machine's console".to_owned(),
        ),
        Some(last) if last.command_name == command(kind) => judge_step(last, kind, step, plan.index),
        _ => Verdict::Wait,
    }
}

fn judge_step<'a>(
    last: &'a CommandResult,
    kind: StepKind,
    step: &PlannedStep,
    index: Option<usize>,
) -> Verdict<'a> {
    match last.command_status {
        CommandStatus::Running => Verdict::Wait,
        CommandStatus::Succeeded if echoes(last, kind, step, index) => Verdict::Continue(Some(last)),
        CommandStatus::Succeeded => Verdict::Wait,
        CommandStatus::CleanVersionMismatch | CommandStatus::VersionMismatch => Verdict::Refresh,
        CommandStatus::Failed | CommandStatus::Other(_) => {
            Verdict::Fail(failure_text(&format!("{kind}.{}", command(kind)), last))
        }
    }
}

fn is_listing(command: &str) -> bool {
    command.starts_with("get_") && command.ends_with("_steps")
}

/// Whether a result is that of the current step and not of an earlier one. Agents that do not echo the place of a step
/// are believed by its name.
fn echoes(result: &CommandResult, kind: StepKind, step: &PlannedStep, index: Option<usize>) -> bool {
    let echoed = result.command_result.as_ref().and_then(|value| value.get(format!("{kind}_step")));
    let Some(echoed) = echoed else { return false };
    let place = echoed.get(INDEX).and_then(serde_json::Value::as_u64);
    echoed["interface"] == step.interface.as_str()
        && echoed["step"] == step.step.as_str()
        && place.is_none_or(|place| index.is_some_and(|index| index as u64 == place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::error::{CommandError, ErrorKind};
    use serde_json::json;

    /// What is said of the third step of an operation.
    fn at<'a>(
        commands: &'a [CommandResult],
        kind: StepKind,
        step: &PlannedStep,
        plan: &StepPlan,
    ) -> Verdict<'a> {
        judge(commands, kind, Some(step), Some(&StepPlan { index: Some(2), ..plan.clone() }))
    }

    fn in_band(name: &str) -> PlannedStep {
        PlannedStep { in_band: true, ..PlannedStep::new("deploy", name, 80) }
    }

    fn ran(name: &str, status: CommandStatus) -> CommandResult {
        CommandResult { command_status: status, ..CommandResult::running(name) }
    }

    fn executed(kind: StepKind, step: &str, status: CommandStatus) -> CommandResult {
        let echo = json!({format!("{kind}_step"): {"interface": "deploy", "step": step},
            format!("{kind}_result"): null});
        CommandResult { command_result: Some(echo), ..ran(&command(kind), status) }
    }

    fn text(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Wait => "wait",
            Verdict::Continue(Some(_)) => "continue with result",
            Verdict::Continue(None) => "continue",
            Verdict::Repeat => "repeat",
            Verdict::Refresh => "refresh",
            Verdict::Fail(_) => "fail",
        }
    }

    #[test]
    fn the_last_command_decides_for_every_kind() {
        use CommandStatus::{CleanVersionMismatch, Failed, Other, Running, Succeeded, VersionMismatch};
        for kind in StepKind::ALL {
            let listing = || ran(&format!("get_{kind}_steps"), Succeeded);
            let execute = |status| ran(&command(kind), status);
            let executed = |step: &str, status| executed(kind, step, status);
            let other_kind = || ran("execute_rescue_step", Succeeded);
            for (commands, expected, again, rebooted) in [
                (vec![], "fail", "repeat", "continue"),
                (vec![listing()], "fail", "repeat", "continue"),
                (vec![listing(), ran("get_clean_steps", Succeeded)], "fail", "repeat", "continue"),
                (vec![listing(), ran("sync", Running)], "wait", "wait", "wait"),
                (vec![ran("sync", Succeeded)], "wait", "repeat", "wait"),
                (vec![other_kind()], "wait", "repeat", "wait"),
                (vec![executed("s", Running)], "wait", "wait", "wait"),
                (vec![executed("s", Succeeded)], "continue with result", "continue with result", "wait"),
                (vec![executed("s", Succeeded), listing()], "wait", "repeat", "wait"),
                (vec![executed("other", Succeeded)], "wait", "repeat", "wait"),
                (vec![execute(Succeeded)], "wait", "repeat", "wait"),
                (vec![execute(CleanVersionMismatch)], "refresh", "repeat", "wait"),
                (vec![execute(VersionMismatch)], "refresh", "repeat", "wait"),
                (vec![execute(Failed)], "fail", "repeat", "wait"),
                (vec![execute(Other("PAUSED".into()))], "fail", "repeat", "wait"),
                (vec![execute(Failed), ran("sync", Succeeded)], "wait", "repeat", "wait"),
            ] {
                let plans = [
                    (expected, StepPlan::default()),
                    (again, StepPlan { skip_current: Some(false), ..StepPlan::default() }),
                    (rebooted, StepPlan { reboot: true, ..StepPlan::default() }),
                ];
                for (expected, plan) in plans {
                    assert_eq!(
                        text(&at(&commands, kind, &in_band("s"), &plan)),
                        expected,
                        "{kind} {plan:?} {commands:?}"
                    );
                }
            }
        }
    }

    /// A step of the conductor waits for a sign of the agent, whatever that has done before.
    #[test]
    fn a_step_of_the_conductor_goes_on_when_the_agent_calls_and_is_at_leisure() {
        use CommandStatus::{Failed, Running, Succeeded};
        let kind = StepKind::Clean;
        for (commands, expected) in [
            (vec![], "continue"),
            (vec![ran("get_clean_steps", Succeeded)], "continue"),
            (vec![executed(kind, "before", Succeeded)], "continue"),
            (vec![executed(kind, "before", Failed)], "continue"),
            (vec![ran("sync", Running)], "wait"),
        ] {
            let step = PlannedStep::new("power", "wait", 0);
            let verdict = at(&commands, kind, &step, &StepPlan::default());
            assert_eq!(text(&verdict), expected, "{commands:?}");
        }
    }

    /// Pitfall 13.10: two equal steps in a row are told apart by their place.
    #[test]
    fn the_end_of_an_equal_step_before_is_not_that_of_this_one() {
        let kind = StepKind::Clean;
        for (index, expected) in [(1, "repeat"), (2, "continue with result")] {
            let mut ended = executed(kind, "s", CommandStatus::Succeeded);
            ended.command_result.as_mut().unwrap()["clean_step"][INDEX] = json!(index);
            let plan = StepPlan { skip_current: Some(false), ..StepPlan::default() };
            let ended = [ended];
            assert_eq!(text(&at(&ended, kind, &in_band("s"), &plan)), expected, "{index}");
        }
    }

    #[test]
    fn f64_the_failure_is_told_in_the_agents_words() {
        let error = CommandError::new(ErrorKind::ImageChecksumError, "http://h/i: digest differs");
        let failed = [CommandResult {
            command_error: Some(error),
            ..ran("execute_deploy_step", CommandStatus::Failed)
        }];
        let verdict = at(&failed, StepKind::Deploy, &in_band("write_image"), &StepPlan::default());
        let Verdict::Fail(reason) = verdict else { panic!("not failed") };
        assert_eq!(reason, "http://h/i: digest differs [FAR-0410]");
    }
}
