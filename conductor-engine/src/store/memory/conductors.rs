//! The conductors over one store.

use super::MemoryStore;
use crate::store::{ConductorRecord, ConductorStore, StoreError};
use async_trait::async_trait;

#[async_trait]
impl ConductorStore for MemoryStore {
    async fn conductors(&self) -> Result<Vec<ConductorRecord>, StoreError> {
        Ok(self.tables().conductors.values().cloned().collect())
    }

    async fn renew_conductor(
        &self,
        own: &ConductorRecord,
        silent: Option<&ConductorRecord>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let Some(known) = tables.conductors.get_mut(&own.name) else {
            tables.conductors.insert(own.name.clone(), ConductorRecord { counter: 0, ..own.clone() });
            return Ok(true);
        };
        let is_silent = |silent: &ConductorRecord| {
            (&silent.process.start, silent.counter) == (&known.process.start, known.counter)
        };
        let is_renewed = known.process.start == own.process.start || silent.is_some_and(is_silent);
        if is_renewed {
            *known = ConductorRecord { counter: known.counter + 1, ..own.clone() };
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
