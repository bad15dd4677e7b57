//! What of a node decides what a heartbeat sets off.

use super::decide::{Maintenance, Situation};
use crate::model::{AgentSession, Node, StepKind};

/// The situation of a node, with what its conductor says of it: whether its agent may stay between operations, and whether
/// operations pause in maintenance; else they fail.
pub fn situation(
    node: &Node,
    agent: &AgentSession,
    is_fast_track_able: bool,
    pauses_in_maintenance: bool,
) -> Situation {
    let kind = StepKind::of(node.provision_state);
    Situation {
        state: node.provision_state,
        is_fast_track_able,
        maintenance: match node.maintenance {
            false => Maintenance::No,
            true if pauses_in_maintenance => Maintenance::Pauses,
            true => Maintenance::Fails,
        },
        has_step: node.current_step().is_some(),
        has_cached_steps: kind.is_some_and(|kind| agent.cached_steps(kind).is_some()),
        is_polled: kind.is_some_and(|kind| node.plan(kind).polling),
    }
}
