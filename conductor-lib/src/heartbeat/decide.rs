//! What a heartbeat sets off (sections 2.4 and 2.6).

use crate::model::{Activity, Family, ProvisionState, StepKind};

/// What of a node decides what its heartbeat sets off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Where the node is in its life.
    pub state: ProvisionState,
    /// Whether its agent may stay between operations: [`fast_track::is_able`](super::fast_track::is_able).
    pub is_fast_track_able: bool,
    /// Whether an operator works on the machine.
    pub maintenance: Maintenance,
    /// Whether the operation has come to a step.
    pub has_step: bool,
    /// Whether the agent that runs now was asked for its steps of this kind.
    pub has_cached_steps: bool,
    /// Whether the current step runs out of band, and is asked for by a periodic task.
    pub is_polled: bool,
}

/// Whether an operator works on the machine, and what that means for an operation under way
/// (`[conductor]allow_provisioning_in_maintenance`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// Nobody does.
    No,
    /// The operation pauses at the next step.
    Pauses,
    /// The operation fails.
    Fails,
}

/// What a heartbeat sets off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing; it is not even recorded.
    Ignore,
    /// It is recorded, and that is all.
    Record,
    /// The clock of the wait state starts anew, and that is all.
    Touch,
    /// The first of this operation: the agent's steps are listed, the plan is made and begun.
    Begin(StepKind),
    /// The agent is asked for its steps; the current step is not looked at.
    RefreshSteps(StepKind),
    /// The current step is looked at, and the next one begun when it has ended.
    ProcessStep {
        /// What the operation is.
        kind: StepKind,
        /// Whether the agent is asked for its steps before.
        refresh: bool,
    },
    /// The rescue system is there: it gets its password and its network.
    FinalizeRescue,
    /// The operation fails, because the node is in maintenance.
    FailInMaintenance(Family),
}

impl Action {
    /// Whether the heartbeat is written to the session.
    pub fn records(self) -> bool {
        self != Self::Ignore
    }
}

/// What a heartbeat that was accepted sets off.
///
/// A node that is worked on, held or at rest is heard, and nothing more: this comes before maintenance.
pub fn decide(situation: &Situation) -> Action {
    let Situation { state, is_fast_track_able, maintenance, has_step, has_cached_steps, is_polled } =
        *situation;
    if !state.takes_heartbeats(is_fast_track_able) {
        return Action::Ignore;
    }
    let (Some(family), Activity::Wait) = (state.family(), state.activity()) else { return Action::Record };
    match maintenance {
        Maintenance::No => {}
        Maintenance::Pauses => return Action::Record,
        Maintenance::Fails => return Action::FailInMaintenance(family),
    }
    let Some(kind) = StepKind::of(state) else { return Action::FinalizeRescue };
    match kind {
        // A deployment has its plan before the agent is there: it is only asked for what it adds.
        StepKind::Deploy => match (is_polled, has_cached_steps) {
            (true, true) => Action::Touch,
            (true, false) => Action::RefreshSteps(kind),
            (false, _) => Action::ProcessStep { kind, refresh: !has_cached_steps },
        },
        StepKind::Clean | StepKind::Service if !has_step => Action::Begin(kind),
        StepKind::Clean | StepKind::Service if is_polled => Action::Touch,
        StepKind::Clean | StepKind::Service => Action::ProcessStep { kind, refresh: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProvisionState as S;

    /// An operation at a step, whose agent was asked for its steps.
    fn at_a_step(state: ProvisionState) -> Situation {
        Situation {
            state,
            is_fast_track_able: false,
            maintenance: Maintenance::No,
            has_step: true,
            has_cached_steps: true,
            is_polled: false,
        }
    }

    /// The states in which an action is decided on, of all 30.
    fn states(of: impl Fn(Action) -> bool, change: impl Fn(&mut Situation)) -> Vec<ProvisionState> {
        let decided = |state: &&ProvisionState| {
            let mut situation = at_a_step(**state);
            change(&mut situation);
            of(decide(&situation))
        };
        S::ALL.iter().filter(decided).copied().collect()
    }

    #[test]
    fn every_state_has_its_action() {
        let same = |_: &mut Situation| {};
        let recorded = [
            S::Deploying,
            S::DeployHold,
            S::Cleaning,
            S::CleanHold,
            S::Rescuing,
            S::Servicing,
            S::ServiceHold,
        ];
        assert_eq!(states(|action| action == Action::Record, same), recorded);
        let waiting = [S::DeployWait, S::CleanWait, S::RescueWait, S::ServiceWait];
        let goes_on = |action| !matches!(action, Action::Ignore | Action::Record);
        assert_eq!(states(goes_on, same), waiting);
        let ignored = states(|action| action == Action::Ignore, same);
        assert_eq!(ignored.len(), 30 - recorded.len() - waiting.len());
    }

    #[test]
    fn an_agent_that_stays_is_heard_between_operations() {
        let able = |situation: &mut Situation| situation.is_fast_track_able = true;
        let heard = states(Action::records, able);
        for state in [S::Enroll, S::Manageable, S::Available] {
            assert!(heard.contains(&state), "{state}");
            assert_eq!(decide(&Situation { is_fast_track_able: true, ..at_a_step(state) }), Action::Record);
        }
        assert_eq!(heard.len(), 11 + 3);
    }

    #[test]
    fn what_waits_goes_on() {
        use Action::{Begin, FinalizeRescue, ProcessStep, RefreshSteps, Touch};
        use StepKind::{Clean, Deploy, Service};
        let process = |kind, refresh| ProcessStep { kind, refresh };
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
            let situation = Situation { has_step, has_cached_steps, is_polled, ..at_a_step(state) };
            assert_eq!(decide(&situation), expected, "{situation:?}");
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
            assert_eq!(decide(&pauses), Action::Record);
            let fails = Situation { maintenance: Maintenance::Fails, ..at_a_step(state) };
            assert_eq!(decide(&fails), Action::FailInMaintenance(family));
        }
        // What does not wait is heard before anybody looks for maintenance.
        let worked_on = Situation { maintenance: Maintenance::Fails, ..at_a_step(S::Deploying) };
        assert_eq!(decide(&worked_on), Action::Record);
    }
}
