//! What a task adds to the history of its node.

use crate::records::history::{Happening, Moment, between};
use crate::records::{HistoryEntry, PendingOrder};
use crate::request_context;
use crate::services::Services;
use farrier_conductor::model::Node;
use uuid::Uuid;

/// What happened from one record and order of a node to the next.
pub(super) fn happened(
    services: &Services,
    (node_before, order_before): (&Node, Option<&PendingOrder>),
    (node, order): (&Node, Option<&PendingOrder>),
) -> Vec<HistoryEntry> {
    let entry = |one: Happening| HistoryEntry {
        uuid: Uuid::new_v4(),
        created_at: services.now(),
        severity: one.severity,
        event_type: one.kind,
        event: one.event,
        conductor: services.settings.conductor_name.clone(),
        user: request_context::name(),
        beginning: one.beginning,
    };
    let before = Moment { node: node_before, order: order_before };
    between(before, Moment { node, order }).into_iter().map(entry).collect()
}
