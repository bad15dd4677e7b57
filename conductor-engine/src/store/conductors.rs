//! The conductors over one store.

use super::StoreError;
use async_trait::async_trait;
use farrier_conductor::model::InterfaceKind;
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// The interfaces that nodes may have, by hardware type and kind. Each kind has its default first.
pub type OfferedHardware = BTreeMap<String, BTreeMap<InterfaceKind, Vec<String>>>;

/// A conductor as the store knows it. A conductor that ends in order leaves no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConductorRecord {
    /// Its name, which one process has at a time.
    pub name: String,
    /// The process that has the name.
    pub process: ProcessId,
    /// The group of nodes that it leads (section 12.1); an empty text for nodes without a group.
    pub conductor_group: String,
    /// The hardware types that it has.
    pub hardware: OfferedHardware,
    /// How often the process has renewed the record, as the store counts. Others that have seen the record before know by this
    /// alone that the process lives.
    pub counter: i64,
    /// When the process registered, by the clock of the store.
    pub registered_at: OffsetDateTime,
    /// When the record was renewed last, by the clock of the store.
    pub updated_at: OffsetDateTime,
}

impl ConductorRecord {
    /// Whether both are of one process, which has not renewed its record in between.
    pub fn is_same_renewal(&self, other: &Self) -> bool {
        (self.process.start, self.counter) == (other.process.start, other.counter)
    }
}

/// A process that has the name of a conductor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessId {
    /// One of each start.
    pub start: Uuid,
    /// By which others on the same host see whether the process lives; an empty text where nothing shows it.
    pub host_process: String,
}

/// The records of conductors, by which each knows which others live.
///
/// Every method may end with [`StoreError::Failed`], and those that write with [`StoreError::Full`].
#[async_trait]
pub trait ConductorStore: Send + Sync {
    /// All conductors that have registered and did not end in order, by name. Each has the time since its last renewal, by
    /// the clock of the store.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn conductors(&self) -> Result<Vec<(ConductorRecord, Duration)>, StoreError>;

    /// Renews the record of a conductor, which is written where there is none, and counts its counter up. The store sets the
    /// counter and the times. Refused (false) when another process has the name, unless the record of that process still is as in
    /// `silent`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn renew_conductor(
        &self,
        own: &ConductorRecord,
        silent: Option<&ConductorRecord>,
    ) -> Result<bool, StoreError>;

    /// Removes the record of a conductor, unless it was renewed since it was read or another process has the name. The own
    /// record goes whatever its counter says.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn remove_conductor(&self, conductor: &ConductorRecord, is_own: bool) -> Result<(), StoreError>;
}
