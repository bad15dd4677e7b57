//! What is kept of what happened to nodes. It is written with the node ([`NodeStore::write`](super::NodeStore::write)).

use super::StoreError;
use crate::evidence::boot_trace::BootTrace;
use crate::evidence::diagnosis::Diagnosis;
use crate::evidence::erasing::EraseCertificate;
use crate::records::HistoryEntry;
use async_trait::async_trait;
use farrier_conductor::model::InspectionData;
use uuid::Uuid;

/// What is kept of what happened to nodes.
///
/// Every method may end with [`StoreError::Failed`], and those that write with [`StoreError::Full`]; what is written
/// at once is written whole or not at all.
#[async_trait]
pub trait EvidenceStore: Send + Sync {
    /// The data of the last inspection of a node.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError>;

    /// What the ramdisk of a node posted, as long as its inspection is not done.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn received_inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError>;

    /// What happened to a node, the oldest first: the last [`HISTORY_LIMIT`](crate::records::HISTORY_LIMIT) entries.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn history(&self, uuid: Uuid) -> Result<Vec<HistoryEntry>, StoreError>;

    /// The certificates of erasure of a node's disks, by disk and step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn certificates(&self, uuid: Uuid) -> Result<Vec<EraseCertificate>, StoreError>;

    /// How far the machine of a node came that boots from the network; nothing when none did.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn boot_trace(&self, uuid: Uuid) -> Result<Option<BootTrace>, StoreError>;

    /// What could be had of the machine of a node that stayed silent; nothing when it did not, or boots again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn diagnosis(&self, uuid: Uuid) -> Result<Option<Diagnosis>, StoreError>;

    /// How far the machines came that boot from the network, whose nodes wait for an agent that has not called.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn awaited_boots(&self) -> Result<Vec<BootTrace>, StoreError>;

    /// The nodes whose trace has begun, and not ended.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn with_boot_trace(&self) -> Result<Vec<Uuid>, StoreError>;

    /// Adds to the traces of nodes how far their machines came. No lease is needed. Nodes whose trace has not begun are
    /// passed over.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn reach_boot_stages(&self, reached: &[(Uuid, BootTrace)]) -> Result<(), StoreError>;
}
