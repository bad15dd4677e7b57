//! What of a record decides what a heartbeat sets off.

use crate::heartbeat::{Maintenance, Situation};
use crate::model::StepKind;
use crate::store::Record;

/// The situation of a node. There is neither fast track nor a step that runs out of band yet.
pub(crate) fn situation(record: &Record) -> Situation {
    let node = &record.node;
    let kind = StepKind::of(node.provision_state);
    Situation {
        state: node.provision_state,
        is_fast_track_able: false,
        maintenance: if node.maintenance { Maintenance::Pauses } else { Maintenance::No },
        has_step: node.deploy_step.is_some(),
        has_cached_steps: kind.is_some_and(|kind| record.session.cached_steps(kind).is_some()),
        is_polled: false,
    }
}
