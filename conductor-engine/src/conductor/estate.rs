//! What happened to all nodes lately.

use crate::conductor::KeptEvidence;
use crate::error::Error;
use crate::evidence::estate::{Estate, LONGEST_PERIOD};
use crate::evidence::timeline::Timeline;
use crate::store::{Filter, NodeColumn, Selection, StoreError};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Most nodes whose histories are read. Where more have changed, the period is shorter.
const MOST_NODES: u32 = 500;

/// When the state of a node changed last.
const CHANGED: &str = "provision_updated_at";

impl KeptEvidence {
    /// What happened to all nodes in the last day, or since the states of so many nodes changed as are read at once.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn estate(&self) -> Result<Estate, Error> {
        let (store, now) = (self.0.store(), self.0.now());
        let counts = store.provision_states().await?;
        let changed = self.changed_last().await?;
        let day = now - LONGEST_PERIOD;
        let since = match changed.len() == MOST_NODES as usize {
            true => changed.values().copied().min().map_or(day, |first| first.max(day)),
            false => day,
        };
        let uuids = changed.iter().filter(|(_, at)| **at >= since).map(|(uuid, _)| uuid.clone()).collect();
        let filters = vec![Filter::IsOneOf(NodeColumn::UUID, uuids)];
        let records = store.records(&Selection { filters, ..Selection::first(MOST_NODES) }).await?;
        let mut lives = Vec::with_capacity(records.len());
        for record in records {
            let history = store.history(record.node.uuid).await?;
            let timeline = Timeline::of(&record.node, &history, &[]);
            lives.push((record.node, timeline));
        }
        Ok(Estate::of(&counts, &lives, since, now))
    }

    /// The nodes whose states changed last, each with the moment.
    async fn changed_last(&self) -> Result<BTreeMap<String, OffsetDateTime>, StoreError> {
        let Some(sort) = NodeColumn::named(CHANGED) else { return Ok(BTreeMap::new()) };
        let last = Selection { sort, descending: true, columns: vec![sort], ..Selection::first(MOST_NODES) };
        let outlines = self.0.store().outlines(&last).await?;
        let moment = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
        let changed = outlines.iter().map(|one| Some((one.uuid.to_string(), moment(one.text(CHANGED))?)));
        Ok(changed.flatten().collect())
    }
}
