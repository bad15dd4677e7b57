//! Records beside nodes: their ports, allocations, and what operators define.

use super::{AllocationSelection, OwnedPort, PortSelection, ResourceSelection, StoreError};
use crate::records::{Allocation, AllocationState, Resource, ResourceKind};
use async_trait::async_trait;
use uuid::Uuid;

/// Records beside nodes. Ports are written with their node ([`NodeStore::write`](super::NodeStore::write)).
///
/// Every method may end with [`StoreError::Failed`] and [`StoreError::Unreachable`], and those that write with
/// [`StoreError::Full`]; what is written
/// at once is written whole or not at all.
#[async_trait]
pub trait CatalogueStore: Send + Sync {
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
}
