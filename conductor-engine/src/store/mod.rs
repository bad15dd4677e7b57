//! Where records are kept.
//!
//! What a heartbeat, a lease or a listing needs are columns of small rows; everything else of a node is one JSON
//! document in a row of its own, and so is its config drive. Thus a heartbeat writes one short row, and a document is
//! written when it has changed.
//!
//! Reading takes no lock. Who changes a node holds its [`Lease`], and each write says its epoch: whoever was
//! overtaken is refused ([`StoreError::Overtaken`]). Only the agent's own words need no lease ([`Store::hear`]),
//! because they are written to its session and nowhere else, and count for the boot they came from alone.
//!
//! All statements are in one file and are SQL that SQLite and PostgreSQL read alike: `$1` for parameters, TEXT,
//! BIGINT and BOOLEAN for types, microseconds since 1970 for times, JSON as TEXT that no statement looks into,
//! `RETURNING`, no functions of one of the two. What a store does beside them (the pragmas of a connection, how a
//! full disk is told) stands with the store.

#[cfg(feature = "sqlite")]
mod columns;
mod record;
mod selection;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "sqlite")]
mod statements;

pub use farrier_conductor::task::change::{BootTraceChange, InspectionChange, SessionChange};
pub use record::{
    CertificateChange, Change, ConfigDrive, Held, LastWordsChange, Lease, OrderChange, Record, Terms,
};
pub use selection::{
    AllocationSelection, Documents, Filter, NodeColumn, Outline, OwnedPort, PortSelection, Position,
    ResourceSelection, Selection,
};

use crate::evidence::boot_trace::BootTrace;
use crate::evidence::diagnosis::LastWords;
use crate::evidence::erasing::EraseCertificate;
use crate::records::{Allocation, AllocationState, HistoryEntry, Resource, ResourceKind};
use async_trait::async_trait;
use farrier_conductor::model::{AgentSession, InspectionData, MacAddress, Node, ProvisionState};
use time::OffsetDateTime;
use uuid::Uuid;

/// Entries that are kept of the history of a node; older ones are forgotten.
pub const HISTORY_LIMIT: u32 = 300;

/// A record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A UUID, name, hardware address or instance is taken.
    #[error("{what} already exists; choose another one, or delete what has it first")]
    Taken {
        /// The record that would have it too.
        what: String,
    },
    /// The record is gone.
    #[error("node {0} is no longer in the store; it was deleted meanwhile")]
    Gone(Uuid),
    /// Somebody else holds the lease of the node.
    #[error("node {node} is locked by {holder}; try again when that has ended")]
    Held {
        /// The node.
        node: Uuid,
        /// The conductor that works on it.
        holder: String,
    },
    /// The lease of the node ended, and another one began: what was to be written is out of date.
    #[error("node {0} was taken over by another conductor; nothing was written")]
    Overtaken(Uuid),
    /// There is no room. Nothing was written, nothing is lost.
    #[error("node store {location} has no room left on its disk; make some, the conductor goes on by itself")]
    Full {
        /// The file.
        location: String,
    },
    /// The store itself failed.
    #[error("node store {location}: {reason}; check that the file is readable and writable")]
    Failed {
        /// The file.
        location: String,
        /// What it said.
        reason: String,
    },
}

/// Records of nodes, their agents and their config drives.
///
/// Every method may end with [`StoreError::Failed`], and those that write with [`StoreError::Full`]; what is written
/// at once is written whole or not at all.
#[async_trait]
pub trait Store: Send + Sync {
    /// Adds a node.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] when its name or one of its addresses is in use.
    async fn create(&self, node: &Node) -> Result<(), StoreError>;

    /// The node with this identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn get(&self, uuid: Uuid) -> Result<Option<Record>, StoreError>;

    /// The node with this name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn by_name(&self, name: &str) -> Result<Option<Record>, StoreError>;

    /// The identities of the nodes that own any of these addresses, each once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError>;

    /// What the columns of some nodes say, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn outlines(&self, selection: &Selection) -> Result<Vec<Outline>, StoreError>;

    /// As [`Self::outlines`], each with its documents.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn documents(&self, selection: &Selection) -> Result<Vec<(Outline, Documents)>, StoreError>;

    /// Some nodes, in their order. One that cannot be read is left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn records(&self, selection: &Selection) -> Result<Vec<Record>, StoreError>;

    /// Some ports, by their identity. One that cannot be read is left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn ports(&self, selection: &PortSelection) -> Result<Vec<OwnedPort>, StoreError>;

    /// The port with this name or identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn port(&self, id: &str) -> Result<Option<OwnedPort>, StoreError>;

    /// The identity of every node: whoever looks at all of them in turn need not have all their records at once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn identities(&self) -> Result<Vec<Uuid>, StoreError>;

    /// How many nodes are in each provision state; states of none may be left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn provision_states(&self) -> Result<Vec<(ProvisionState, u64)>, StoreError>;

    /// Every lease that has not ended, expired or not, and the holder of each.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn held(&self) -> Result<Vec<Held>, StoreError>;

    /// The nodes that are not at rest, or of which something is ordered, and whose lease nobody holds at `now`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn unattended(&self, now: OffsetDateTime) -> Result<Vec<Uuid>, StoreError>;

    /// The config drive of a node's instance.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn config_drive(&self, uuid: Uuid) -> Result<Option<String>, StoreError>;

    /// What the last inspection of a node told that was done.
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

    /// What happened to a node, the oldest first: the last [`HISTORY_LIMIT`] entries.
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
    async fn last_words(&self, uuid: Uuid) -> Result<Option<LastWords>, StoreError>;

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

    /// Adds to the traces of nodes how far their machines came, whoever holds their leases. Nodes whose trace has not begun
    /// are passed over.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn reach_boot_stages(&self, reached: &[(Uuid, BootTrace)]) -> Result<(), StoreError>;

    /// Takes the lease of a node whose last one has ended or expired, with the record as it is then.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] when it has a lease, [`StoreError::Gone`].
    async fn take(&self, uuid: Uuid, terms: &Terms<'_>) -> Result<(Lease, Record), StoreError>;

    /// Makes a lease last until `expires_at`. A lease that expired and was not taken by anybody goes on.
    ///
    /// # Errors
    ///
    /// [`StoreError::Overtaken`], [`StoreError::Gone`].
    async fn renew(&self, lease: &Lease, expires_at: OffsetDateTime) -> Result<(), StoreError>;

    /// Ends a lease. Nothing happens when it was overtaken.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Has every lease of a conductor expired, of one that is no more: should it still run, it is overtaken.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn expire_all(&self, holder: &str) -> Result<(), StoreError>;

    /// Adds an allocation.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] when its name or identity is in use.
    async fn create_allocation(&self, allocation: &Allocation) -> Result<(), StoreError>;

    /// The allocation with this name or identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn allocation(&self, id: &str) -> Result<Option<Allocation>, StoreError>;

    /// Some allocations, by their identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn allocations(&self, selection: &AllocationSelection) -> Result<Vec<Allocation>, StoreError>;

    /// Writes an allocation that was in this state. Refused (false) when it is in another by now, or gone.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] when its name is in use.
    async fn write_allocation(
        &self,
        allocation: &Allocation,
        was: AllocationState,
    ) -> Result<bool, StoreError>;

    /// Forgets an allocation.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn delete_allocation(&self, uuid: Uuid) -> Result<(), StoreError>;

    /// Adds a plain resource.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] when its name, identity or what else it is known by is in use.
    async fn create_resource(&self, resource: &Resource) -> Result<(), StoreError>;

    /// The plain resource of a kind with this name or identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn resource(&self, kind: ResourceKind, id: &str) -> Result<Option<Resource>, StoreError>;

    /// Some plain resources, by their identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn resources(&self, selection: &ResourceSelection) -> Result<Vec<Resource>, StoreError>;

    /// Writes a plain resource. Refused (false) when it is not as it was before, or gone.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] when its name is in use.
    async fn write_resource(&self, before: &Resource, after: &Resource) -> Result<bool, StoreError>;

    /// Forgets a plain resource.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn delete_resource(&self, uuid: Uuid) -> Result<(), StoreError>;

    /// Writes what changed of a node and its ports, at once. An allocation that the node has no more is forgotten.
    ///
    /// # Errors
    ///
    /// [`StoreError::Overtaken`], [`StoreError::Gone`], and [`StoreError::Taken`] for its name, its instance, or the
    /// name or address of a port.
    async fn write(&self, lease: &Lease, change: &Change<'_>) -> Result<(), StoreError>;

    /// Forgets a node and everything that belongs to it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Overtaken`], [`StoreError::Gone`].
    async fn delete(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Gives the agent that boots now its token. Refused (false) when anything happened to the node since the record
    /// was read, when somebody holds its lease, or when there is a token already.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn issue_token(&self, seen: &Record, token: &str, now: OffsetDateTime) -> Result<bool, StoreError>;

    /// Writes down what an agent said by its heartbeat, whoever holds the lease of its node. Refused (false) when the
    /// session of this token has ended, or has another address or certificate by now.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn hear(&self, uuid: Uuid, heard: &AgentSession) -> Result<bool, StoreError>;
}
