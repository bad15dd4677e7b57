//! The conductors over one store.

use super::MemoryStore;
use crate::store::{ConductorRecord, ConductorStore, StoreError};
use async_trait::async_trait;
use std::time::Duration;
use time::OffsetDateTime;

#[async_trait]
impl ConductorStore for MemoryStore {
    async fn conductors(&self) -> Result<Vec<(ConductorRecord, Duration)>, StoreError> {
        let now = OffsetDateTime::now_utc();
        let silence = |record: &ConductorRecord| (now - record.updated_at).try_into().unwrap_or_default();
        let tables = self.tables();
        Ok(tables.conductors.values().map(|record| (record.clone(), silence(record))).collect())
    }

    async fn renew_conductor(
        &self,
        own: &ConductorRecord,
        silent: Option<&ConductorRecord>,
    ) -> Result<bool, StoreError> {
        let now = OffsetDateTime::now_utc();
        let mut tables = self.tables();
        let Some(known) = tables.conductors.get_mut(&own.name) else {
            let first = ConductorRecord { counter: 0, registered_at: now, updated_at: now, ..own.clone() };
            tables.conductors.insert(own.name.clone(), first);
            return Ok(true);
        };
        let is_own = known.process.start == own.process.start;
        let is_renewed = is_own || silent.is_some_and(|silent| silent.is_same_renewal(known));
        if is_renewed {
            let registered_at = if is_own { known.registered_at } else { now };
            let counter = known.counter + 1;
            *known = ConductorRecord { counter, registered_at, updated_at: now, ..own.clone() };
        }
        Ok(is_renewed)
    }

    async fn remove_conductor(&self, conductor: &ConductorRecord, is_own: bool) -> Result<(), StoreError> {
        self.tables().conductors.retain(|name, known| {
            let is_same = *name == conductor.name && known.process.start == conductor.process.start;
            !(is_same && (is_own || known.counter == conductor.counter))
        });
        Ok(())
    }
}
