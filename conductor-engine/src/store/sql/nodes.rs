//! Nodes, their agents, their orders and their leases, in every database.

use crate::store::sql::tables::{leases, ports, reading, writing};
use crate::store::sql::{Database, Kept, Writer};
use crate::store::{
    Change, Changes, Documents, Held, Lease, NodeStore, OrderChange, Outline, Record, Revision, Selection,
    StoreError, Terms, Waited, WriteKind,
};
use async_trait::async_trait;
use farrier_conductor::model::{AgentSession, MacAddress, Node, ProvisionState};
use std::net::IpAddr;
use time::OffsetDateTime;
use uuid::Uuid;

#[async_trait]
impl<D: Database> NodeStore for D {
    fn changed(&self) -> Changes {
        self.feed().changes()
    }

    fn waited(&self, kind: WriteKind) -> Waited {
        self.waits().of(kind)
    }

    async fn create(&self, node: &Node) -> Result<(), StoreError> {
        let created = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::insert(writer.connection(), node, &AgentSession::default()).await?;
            writer.commit().await
        };
        created.await.map_err(|failure| self.told(failure))
    }

    async fn get(&self, uuid: Uuid) -> Result<Option<Record>, StoreError> {
        reading::record(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn by_name(&self, name: &str) -> Result<Option<Record>, StoreError> {
        reading::record_by_name(&mut self.readers(), name).await.map_err(|failure| self.told(failure))
    }

    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError> {
        ports::owners(&mut self.readers(), addresses).await.map_err(|failure| self.told(failure))
    }

    async fn outlines(&self, selection: &Selection) -> Result<Vec<Outline>, StoreError> {
        reading::outlines(&mut self.readers(), D::DIALECT, selection)
            .await
            .map_err(|failure| self.told(failure))
    }

    async fn documents(&self, selection: &Selection) -> Result<Vec<(Outline, Documents)>, StoreError> {
        reading::documents(&mut self.readers(), D::DIALECT, selection)
            .await
            .map_err(|failure| self.told(failure))
    }

    async fn records(&self, selection: &Selection) -> Result<Vec<Record>, StoreError> {
        reading::records(&mut self.readers(), D::DIALECT, selection)
            .await
            .map_err(|failure| self.told(failure))
    }

    async fn identities(&self, selection: &Selection) -> Result<Vec<Uuid>, StoreError> {
        reading::identities(&mut self.readers(), D::DIALECT, selection)
            .await
            .map_err(|failure| self.told(failure))
    }

    async fn revision(&self, uuid: Uuid) -> Result<Option<Revision>, StoreError> {
        reading::revision(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn at_bmc(&self, addresses: &[IpAddr]) -> Result<Vec<Uuid>, StoreError> {
        reading::at_bmc(&mut self.readers(), addresses).await.map_err(|failure| self.told(failure))
    }

    async fn shards(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        reading::shards(&mut self.readers()).await.map_err(|failure| self.told(failure))
    }

    async fn provision_states(&self) -> Result<Vec<(ProvisionState, u64)>, StoreError> {
        reading::provision_states(&mut self.readers()).await.map_err(|failure| self.told(failure))
    }

    async fn held(&self) -> Result<Vec<Held>, StoreError> {
        leases::held(&mut self.readers()).await.map_err(|failure| self.told(failure))
    }

    async fn unattended(&self, now: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        leases::unattended(&mut self.readers(), now).await.map_err(|failure| self.told(failure))
    }

    async fn config_drive(&self, uuid: Uuid) -> Result<Option<String>, StoreError> {
        reading::config_drive(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn take(&self, uuid: Uuid, terms: &Terms<'_>) -> Result<(Lease, Record), StoreError> {
        let taken = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            let lease = leases::take(writer.connection(), uuid, terms).await?;
            let record = reading::record(writer.connection(), uuid).await?;
            writer.commit().await?;
            Ok((lease, record.ok_or(StoreError::Gone(uuid))?))
        };
        taken.await.map_err(|failure| self.told(failure))
    }

    async fn renew(&self, lease: &Lease, expires_at: OffsetDateTime) -> Result<(), StoreError> {
        let renewed = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            leases::renew(writer.connection(), lease, expires_at).await?;
            writer.commit().await
        };
        renewed.await.map_err(|failure| self.told(failure))
    }

    async fn renew_all(&self, leases: &[Lease], expires_at: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        let renewed = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            let renewed = leases::renew_all(writer.connection(), leases, expires_at).await?;
            writer.commit().await?;
            Ok(renewed)
        };
        renewed.await.map_err(|failure| self.told(failure))
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let released = self.run(Kept::WhilePowered, leases::release(lease)).await;
        released.map(drop).map_err(|failure| self.told(failure))
    }

    async fn expire(&self, held: &Held) -> Result<bool, StoreError> {
        let expired = self.run(Kept::Always, leases::expire(held)).await;
        expired.map(|rows| rows > 0).map_err(|failure| self.told(failure))
    }

    async fn expire_all(&self, holder: &str) -> Result<(), StoreError> {
        let expired = self.run(Kept::Always, leases::expire_all(holder)).await;
        expired.map(drop).map_err(|failure| self.told(failure))
    }

    async fn write(&self, lease: &Lease, change: &Change<'_>) -> Result<(), StoreError> {
        let written = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::write(writer.connection(), lease, change).await?;
            writer.commit().await
        };
        written.await.map_err(|failure| self.told(failure))?;
        if let OrderChange::Put(_) = change.order {
            self.publish(lease.node);
        }
        Ok(())
    }

    async fn delete(&self, lease: &Lease) -> Result<(), StoreError> {
        let deleted = async {
            let mut writer = self.writer(Kept::Always).await?;
            writing::delete(writer.connection(), lease).await?;
            writer.commit().await
        };
        deleted.await.map_err(|failure| self.told(failure))
    }

    async fn issue_token(&self, seen: &Record, token: &str, now: OffsetDateTime) -> Result<bool, StoreError> {
        let issued = async {
            let mut writer = self.writer(Kept::Always).await?;
            let issued = writing::issue_token(writer.connection(), seen, token, now).await?;
            match issued {
                true => writer.commit().await?,
                false => writer.roll_back().await?,
            }
            Ok(issued)
        };
        issued.await.map_err(|failure| self.told(failure))
    }

    async fn hear(&self, uuid: Uuid, heard: &AgentSession) -> Result<bool, StoreError> {
        let heard = self.run(Kept::WhilePowered, writing::hear(uuid, heard)).await;
        let is_heard = heard.map_err(|failure| self.told(failure))? == 1;
        if is_heard {
            self.publish(uuid);
        }
        Ok(is_heard)
    }
}
