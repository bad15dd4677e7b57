//! What a heartbeat sets off (sections 2.4, 2.6, 3.6 and 3.7).

use super::judge::{Verdict, judge};
use super::situation::{Maintenance, Situation};
use crate::model::{Activity, Family, StepKind};
use farrier_protocol::command::CommandResult;

/// What a heartbeat sets off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<'a> {
    /// Nothing; the heartbeat is not even recorded.
    Ignore,
    /// The heartbeat is recorded, and that is all.
    Record,
    /// The timeout of the wait state starts again, and that is all.
    Touch,
    /// The first heartbeat of this operation: the agent lists its steps, the plan is made and begun.
    Begin(StepKind),
    /// The agent lists its steps; the current step is not judged.
    RefreshSteps(StepKind),
    /// The agent's command list decides: read it, and call [`next`] with it.
    ReadCommands {
        /// What the operation is.
        kind: StepKind,
        /// Whether the agent lists its steps before.
        refresh: bool,
    },
    /// What the agent's command list says about the current step.
    Step(StepKind, Verdict<'a>),
    /// The rescue system runs: it gets its password and its network.
    FinalizeRescue,
    /// The operation fails, because the node is in maintenance.
    FailInMaintenance(Family),
}

impl Next<'_> {
    /// Whether the heartbeat is written to the session.
    pub fn records(&self) -> bool {
        *self != Self::Ignore
    }
}

/// Decides what a heartbeat that was accepted sets off, and with the agent's command list what becomes of the current step.
///
/// Call it without `commands` when a heartbeat arrives; where it answers [`Next::ReadCommands`], read the command list of the
/// agent and call it again. The list may also be read between heartbeats, to learn of the end of a step sooner.
///
/// A node that is worked on, held or at rest is heard, and nothing more: this comes before maintenance.
///
/// ```
/// use farrier_conductor::heartbeat::{Maintenance, Next, Situation, Verdict, next};
/// use farrier_conductor::model::{PlannedStep, ProvisionState, StepKind, StepPlan};
/// use farrier_protocol::command::{CommandResult, CommandStatus};
///
/// let erase = PlannedStep { in_band: true, ..PlannedStep::new("deploy", "erase_devices", 0) };
/// let plan = StepPlan { index: Some(0), ..StepPlan::default() };
/// let situation = Situation {
///     step: Some(&erase),
///     plan: Some(&plan),
///     has_cached_steps: true,
///     ..Situation::of(ProvisionState::CleanWait)
/// };
/// assert_eq!(next(&situation, None), Next::ReadCommands { kind: StepKind::Clean, refresh: false });
///
/// let commands = [CommandResult::running("execute_clean_step")];
/// assert_eq!(next(&situation, Some(&commands)), Next::Step(StepKind::Clean, Verdict::Wait));
///
/// let in_maintenance = Situation { maintenance: Maintenance::Pauses, ..situation };
/// assert_eq!(next(&in_maintenance, None), Next::Record);
/// ```
pub fn next<'a>(situation: &Situation<'_>, commands: Option<&'a [CommandResult]>) -> Next<'a> {
    match (decide(situation), commands) {
        (Next::ReadCommands { kind, .. }, Some(commands)) => {
            Next::Step(kind, judge(commands, kind, situation.step, situation.plan))
        }
        (next, _) => next,
    }
}

/// Decides as far as nothing but the node's record is known.
fn decide(situation: &Situation<'_>) -> Next<'static> {
    let state = situation.state;
    if !state.takes_heartbeats(situation.is_fast_track_able) {
        return Next::Ignore;
    }
    let (Some(family), Activity::Wait) = (state.family(), state.activity()) else { return Next::Record };
    match situation.maintenance {
        Maintenance::No => {}
        Maintenance::Pauses => return Next::Record,
        Maintenance::Fails => return Next::FailInMaintenance(family),
    }
    let Some(kind) = StepKind::of(state) else { return Next::FinalizeRescue };
    let is_polled = situation.plan.is_some_and(|plan| plan.polling);
    match kind {
        // A deployment has its plan before the agent is there: it is only asked for what it adds.
        StepKind::Deploy => match (is_polled, situation.has_cached_steps) {
            (true, true) => Next::Touch,
            (true, false) => Next::RefreshSteps(kind),
            (false, is_cached) => Next::ReadCommands { kind, refresh: !is_cached },
        },
        StepKind::Clean | StepKind::Service if situation.step.is_none() => Next::Begin(kind),
        StepKind::Clean | StepKind::Service if is_polled => Next::Touch,
        StepKind::Clean | StepKind::Service => Next::ReadCommands { kind, refresh: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProvisionState as S;
    use crate::model::{PlannedStep, ProvisionState, StepPlan};
    use std::sync::LazyLock;

    static STEP: LazyLock<PlannedStep> = LazyLock::new(|| PlannedStep::new("deploy", "s", 0));
    static PLAN: LazyLock<StepPlan> = LazyLock::new(StepPlan::default);
    static POLLED: LazyLock<StepPlan> = LazyLock::new(|| StepPlan { polling: true, ..StepPlan::default() });

    /// An operation at a step, whose agent was asked for its steps.
    fn at_a_step(state: ProvisionState) -> Situation<'static> {
        Situation { step: Some(&STEP), plan: Some(&PLAN), has_cached_steps: true, ..Situation::of(state) }
    }

    /// The states in which an action is decided on, of all 30.
    fn states(of: impl Fn(&Next<'_>) -> bool, change: impl Fn(&mut Situation<'_>)) -> Vec<ProvisionState> {
        let decided = |state: &&ProvisionState| {
            let mut situation = at_a_step(**state);
            change(&mut situation);
            of(&next(&situation, None))
        };
        S::ALL.iter().filter(decided).copied().collect()
    }

    #[test]
    fn every_state_has_its_action() {
        let same = |_: &mut Situation<'_>| {};
        let recorded = [
            S::Deploying,
            S::DeployHold,
            S::Cleaning,
            S::CleanHold,
            S::Rescuing,
            S::Servicing,
            S::ServiceHold,
        ];
        assert_eq!(states(|next| *next == Next::Record, same), recorded);
        let waiting = [S::DeployWait, S::CleanWait, S::RescueWait, S::ServiceWait];
        let goes_on = |next: &Next<'_>| !matches!(next, Next::Ignore | Next::Record);
        assert_eq!(states(goes_on, same), waiting);
        let ignored = states(|next| *next == Next::Ignore, same);
        assert_eq!(ignored.len(), 30 - recorded.len() - waiting.len());
    }

    #[test]
    fn an_agent_that_stays_is_heard_between_operations() {
        let able = |situation: &mut Situation<'_>| situation.is_fast_track_able = true;
        let heard = states(|next| next.records(), able);
        for state in [S::Enroll, S::Manageable, S::Available] {
            assert!(heard.contains(&state), "{state}");
            assert_eq!(next(&Situation { is_fast_track_able: true, ..at_a_step(state) }, None), Next::Record);
        }
        assert_eq!(heard.len(), 11 + 3);
    }

    #[test]
    fn what_waits_goes_on() {
        use Next::{Begin, FinalizeRescue, ReadCommands, RefreshSteps, Touch};
        use StepKind::{Clean, Deploy, Service};
        let process = |kind, refresh| ReadCommands { kind, refresh };
        for (state, has_step, has_cached_steps, is_polled, expected) in [
            (S::DeployWait, true, true, false, process(Deploy, false)),
            (S::DeployWait, true, false, false, process(Deploy, true)),
            (S::DeployWait, false, false, false, process(Deploy, true)),
            (S::DeployWait, true, false, true, RefreshSteps(Deploy)),
            (S::DeployWait, true, true, true, Touch),
            (S::CleanWait, false, false, false, Begin(Clean)),
            (S::CleanWait, false, true, true, Begin(Clean)),
            (S::CleanWait, true, true, false, process(Clean, false)),
            (S::CleanWait, true, true, true, Touch),
            (S::ServiceWait, false, false, false, Begin(Service)),
            (S::ServiceWait, true, false, false, process(Service, false)),
            (S::ServiceWait, true, true, true, Touch),
            (S::RescueWait, false, false, false, FinalizeRescue),
        ] {
            let step = has_step.then_some(&*STEP);
            let plan = Some(if is_polled { &*POLLED } else { &*PLAN });
            let situation = Situation { step, plan, has_cached_steps, ..at_a_step(state) };
            assert_eq!(next(&situation, None), expected, "{situation:?}");
        }
    }

    #[test]
    fn maintenance_pauses_or_fails_what_waits() {
        for (state, family) in [
            (S::DeployWait, Family::Deploy),
            (S::CleanWait, Family::Clean),
            (S::RescueWait, Family::Rescue),
            (S::ServiceWait, Family::Service),
        ] {
            let pauses = Situation { maintenance: Maintenance::Pauses, ..at_a_step(state) };
            assert_eq!(next(&pauses, None), Next::Record);
            let fails = Situation { maintenance: Maintenance::Fails, ..at_a_step(state) };
            assert_eq!(next(&fails, None), Next::FailInMaintenance(family));
        }
        // What does not wait is heard before anybody looks for maintenance.
        let worked_on = Situation { maintenance: Maintenance::Fails, ..at_a_step(S::Deploying) };
        assert_eq!(next(&worked_on, None), Next::Record);
    }
}
