//! Nodes, their agents, their orders and their leases.

use super::{
    Change, Changes, Documents, Held, Lease, Outline, Record, Revision, Selection, StoreError, Terms, Waited,
    WriteKind,
};
use async_trait::async_trait;
use farrier_conductor::model::{AgentSession, MacAddress, Node, ProvisionState};
use std::net::IpAddr;
use time::OffsetDateTime;
use uuid::Uuid;

/// Records of nodes, their agents and their config drives, and the leases of nodes.
///
/// Every method may end with [`StoreError::Failed`] and [`StoreError::Unreachable`], and those that write with
/// [`StoreError::Full`]; what is written
/// at once is written whole or not at all.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// Hints, from now on, that a node has something for its worker: a heartbeat was recorded, or an order was
    /// written. Any may be missing: a store whose other processes cannot reach this one reports its own changes alone.
    fn changed(&self) -> Changes;

    /// How long this process waited to write, since it opened the store. A store without turns has nothing to tell.
    fn waited(&self, kind: WriteKind) -> Waited {
        let _ = kind;
        Waited::default()
    }

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

    /// What the columns that are asked for say of some nodes, in their order.
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

    /// The identities of some nodes, in their order: a caller that looks at all of them in turn need not have all their
    /// records at once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn identities(&self, selection: &Selection) -> Result<Vec<Uuid>, StoreError>;

    /// The revision of the record of a node, which costs a small part of the record.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn revision(&self, uuid: Uuid) -> Result<Option<Revision>, StoreError>;

    /// The nodes in `inspect wait` whose BMC is noted at any of these addresses, each once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn at_bmc(&self, addresses: &[IpAddr]) -> Result<Vec<Uuid>, StoreError>;

    /// How many nodes are in each shard, and how many in none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn shards(&self) -> Result<Vec<(Option<String>, u64)>, StoreError>;

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

    /// The nodes that are not at rest, or of which something is ordered, and whose lease is free at `now`.
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

    /// Takes the lease of a node whose last one has ended or expired, with the record as it is then.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] when it has a lease, [`StoreError::Gone`].
    async fn take(&self, uuid: Uuid, terms: &Terms<'_>) -> Result<(Lease, Record), StoreError>;

    /// Makes a lease last until `expires_at`. A lease that expired and was not taken continues.
    ///
    /// # Errors
    ///
    /// [`StoreError::Overtaken`], [`StoreError::Gone`].
    async fn renew(&self, lease: &Lease, expires_at: OffsetDateTime) -> Result<(), StoreError>;

    /// Makes leases last until `expires_at`, by one statement, and returns the nodes of those that there still are.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]: none of them is known to be lost.
    async fn renew_all(&self, leases: &[Lease], expires_at: OffsetDateTime) -> Result<Vec<Uuid>, StoreError>;

    /// Ends a lease. Nothing happens when it was overtaken.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Has a lease expired that was not renewed since it was seen: should its conductor still run, it is overtaken. Refused
    /// (false) when it was renewed, has ended or was taken.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn expire(&self, held: &Held) -> Result<bool, StoreError>;

    /// Has every lease of a conductor expired, of one that is no more: should it still run, it is overtaken.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn expire_all(&self, holder: &str) -> Result<(), StoreError>;

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
    /// was read, when a conductor holds its lease, or when there is a token already.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn issue_token(&self, seen: &Record, token: &str, now: OffsetDateTime) -> Result<bool, StoreError>;

    /// Writes down what an agent said by its heartbeat, no matter who holds the lease of its node. Refused (false)
    /// when the session of this token has ended, or has another address or certificate by now.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn hear(&self, uuid: Uuid, heard: &AgentSession) -> Result<bool, StoreError>;
}
