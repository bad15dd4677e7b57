//! Records beside nodes, in every database.

use crate::records::{Allocation, AllocationState, Resource, ResourceKind};
use crate::store::sql::tables::{allocations, ports, resources};
use crate::store::sql::{Database, Kept, Writer};
use crate::store::{
    AllocationSelection, CatalogueStore, OwnedPort, PortSelection, ResourceSelection, StoreError,
};
use async_trait::async_trait;
use uuid::Uuid;

#[async_trait]
impl<D: Database> CatalogueStore for D {
    async fn ports(&self, selection: &PortSelection) -> Result<Vec<OwnedPort>, StoreError> {
        ports::selected(&mut self.readers(), selection).await.map_err(|failure| self.told(failure))
    }

    async fn port(&self, id: &str) -> Result<Option<OwnedPort>, StoreError> {
        ports::one(&mut self.readers(), id).await.map_err(|failure| self.told(failure))
    }

    async fn create_allocation(&self, allocation: &Allocation) -> Result<(), StoreError> {
        let created = async {
            let mut writer = self.writer(Kept::Always).await?;
            allocations::insert(writer.connection(), allocation).await?;
            writer.commit().await
        };
        created.await.map_err(|failure| self.told(failure))
    }

    async fn allocation(&self, id: &str) -> Result<Option<Allocation>, StoreError> {
        allocations::one(&mut self.readers(), id).await.map_err(|failure| self.told(failure))
    }

    async fn allocations(&self, selection: &AllocationSelection) -> Result<Vec<Allocation>, StoreError> {
        allocations::selected(&mut self.readers(), selection).await.map_err(|failure| self.told(failure))
    }

    async fn write_allocation(
        &self,
        allocation: &Allocation,
        was: AllocationState,
    ) -> Result<bool, StoreError> {
        let written = async {
            let mut writer = self.writer(Kept::Always).await?;
            let is_written = allocations::update(writer.connection(), allocation, was).await?;
            writer.commit().await?;
            Ok(is_written)
        };
        written.await.map_err(|failure| self.told(failure))
    }

    async fn delete_allocation(&self, uuid: Uuid) -> Result<(), StoreError> {
        let deleted = async {
            let mut writer = self.writer(Kept::Always).await?;
            allocations::delete(writer.connection(), uuid).await?;
            writer.commit().await
        };
        deleted.await.map_err(|failure| self.told(failure))
    }

    async fn create_resource(&self, resource: &Resource) -> Result<(), StoreError> {
        let created = async {
            let mut writer = self.writer(Kept::Always).await?;
            resources::insert(writer.connection(), resource).await?;
            writer.commit().await
        };
        created.await.map_err(|failure| self.told(failure))
    }

    async fn resource(&self, kind: ResourceKind, id: &str) -> Result<Option<Resource>, StoreError> {
        resources::one(&mut self.readers(), kind, id).await.map_err(|failure| self.told(failure))
    }

    async fn resources(&self, selection: &ResourceSelection) -> Result<Vec<Resource>, StoreError> {
        resources::selected(&mut self.readers(), selection).await.map_err(|failure| self.told(failure))
    }

    async fn write_resource(&self, before: &Resource, after: &Resource) -> Result<bool, StoreError> {
        let written = async {
            let mut writer = self.writer(Kept::Always).await?;
            let is_written = resources::update(writer.connection(), before, after).await?;
            match is_written {
                true => writer.commit().await?,
                false => writer.roll_back().await?,
            }
            Ok(is_written)
        };
        written.await.map_err(|failure| self.told(failure))
    }

    async fn delete_resource(&self, uuid: Uuid) -> Result<(), StoreError> {
        let deleted = async {
            let mut writer = self.writer(Kept::Always).await?;
            resources::delete(writer.connection(), uuid).await?;
            writer.commit().await
        };
        deleted.await.map_err(|failure| self.told(failure))
    }
}
