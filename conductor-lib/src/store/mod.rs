//! Where node records are kept.

pub mod sqlite;

use crate::model::{MacAddress, Node};
use async_trait::async_trait;
use uuid::Uuid;

/// A record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A name or hardware address is taken.
    #[error("{what} already belongs to another node; choose another or delete that node first")]
    Taken {
        /// The name or address.
        what: String,
    },
    /// The record is gone.
    #[error("node {0} is no longer in the store; it was deleted meanwhile")]
    Gone(Uuid),
    /// The store itself failed.
    #[error("node store {location}: {reason}; check that the file is readable, writable and not full")]
    Failed {
        /// The file.
        location: String,
        /// What it said.
        reason: String,
    },
}

/// Node records by identity, name and hardware address.
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
    async fn get(&self, uuid: Uuid) -> Result<Option<Node>, StoreError>;

    /// The node with this name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn by_name(&self, name: &str) -> Result<Option<Node>, StoreError>;

    /// The identities of the nodes that own any of these addresses, each once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError>;

    /// Every node, by name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    async fn list(&self) -> Result<Vec<Node>, StoreError>;

    /// Replaces the record of a node. Name and addresses never change.
    ///
    /// # Errors
    ///
    /// [`StoreError::Gone`] when the node was deleted.
    async fn save(&self, node: &Node) -> Result<(), StoreError>;

    /// Forgets a node.
    ///
    /// # Errors
    ///
    /// [`StoreError::Gone`] when it was deleted already.
    async fn delete(&self, uuid: Uuid) -> Result<(), StoreError>;
}
