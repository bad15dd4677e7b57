//! What of a record decides what a heartbeat sets off.

use crate::heartbeat::{Maintenance, Situation};
use crate::model::StepKind;
use crate::services::Services;
use crate::store::Record;

/// The situation of a node.
pub(crate) fn situation(record: &Record, services: &Services) -> Situation {
    let node = &record.node;
    let kind = StepKind::of(node.provision_state);
    Situation {
        state: node.provision_state,
        is_fast_track_able: services.is_fast_track_able(node),
        maintenance: match node.maintenance {
            false => Maintenance::No,
            true if services.settings.allow_provisioning_in_maintenance => Maintenance::Pauses,
            true => Maintenance::Fails,
        },
        has_step: node.current_step().is_some(),
        has_cached_steps: kind.is_some_and(|kind| record.session.cached_steps(kind).is_some()),
        is_polled: kind.is_some_and(|kind| node.plan(kind).polling),
    }
}
