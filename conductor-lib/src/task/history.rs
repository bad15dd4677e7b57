//! What a task adds to the history of its node.

use super::Task;
use crate::caller;
use crate::model::HistoryEntry;
use crate::model::records::history::{Happening, Moment, between};
use uuid::Uuid;

impl Task {
    /// What happened since the record was stored.
    pub(super) fn happened(&self) -> Vec<HistoryEntry> {
        let (node, order) = &*self.stored;
        let before = Moment { node, order: order.as_ref() };
        let after = Moment { node: &self.node, order: self.order.as_ref() };
        let entry = |one: Happening| HistoryEntry {
            uuid: Uuid::new_v4(),
            created_at: self.services.now(),
            severity: one.severity,
            event_type: one.kind,
            event: one.event,
            conductor: self.services.settings.conductor_name.clone(),
            user: caller::name(),
        };
        between(before, after).into_iter().map(entry).collect()
    }
}
