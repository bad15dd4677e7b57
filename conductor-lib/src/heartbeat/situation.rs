//! What of a node decides what a heartbeat sets off.

use crate::model::{AgentSession, Node, PlannedStep, ProvisionState, StepKind, StepPlan};

/// What of a node decides what its heartbeat sets off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation<'a> {
    /// Where the node is in its life.
    pub state: ProvisionState,
    /// Whether its agent may stay between operations: [`fast_track::is_able`](super::fast_track::is_able).
    pub is_fast_track_able: bool,
    /// Whether an operator works on the machine.
    pub maintenance: Maintenance,
    /// The step that the operation has come to.
    pub step: Option<&'a PlannedStep>,
    /// The plan of the operation.
    pub plan: Option<&'a StepPlan>,
    /// Whether the agent that runs now was asked for its steps of this kind.
    pub has_cached_steps: bool,
}

/// Whether an operator works on the machine, and what that means for an operation under way
/// (`[conductor]allow_provisioning_in_maintenance`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// No operator does.
    No,
    /// The operation pauses at the next step.
    Pauses,
    /// The operation fails.
    Fails,
}

impl Situation<'_> {
    /// The situation of a node in a state whose operation, if it has one, has not come to a step.
    pub fn of(state: ProvisionState) -> Self {
        Self {
            state,
            is_fast_track_able: false,
            maintenance: Maintenance::No,
            step: None,
            plan: None,
            has_cached_steps: false,
        }
    }
}

/// The situation of a node, with what its conductor says of it: whether its agent may stay between operations, and whether
/// operations pause in maintenance; else they fail.
pub fn situation<'a>(
    node: &'a Node,
    agent: &AgentSession,
    is_fast_track_able: bool,
    pauses_in_maintenance: bool,
) -> Situation<'a> {
    let kind = StepKind::of(node.provision_state);
    Situation {
        state: node.provision_state,
        is_fast_track_able,
        maintenance: match node.maintenance {
            false => Maintenance::No,
            true if pauses_in_maintenance => Maintenance::Pauses,
            true => Maintenance::Fails,
        },
        step: node.current_step(),
        plan: kind.map(|kind| node.plan(kind)),
        has_cached_steps: kind.is_some_and(|kind| agent.cached_steps(kind).is_some()),
    }
}
