//! What happened to nodes, as the store in SQLite keeps it.

use crate::evidence::boot_trace::BootTrace;
use crate::evidence::diagnosis::Diagnosis;
use crate::evidence::erasing::EraseCertificate;
use crate::records::HistoryEntry;
use crate::store::sqlite::{Kept, SqliteStore, boot_traces, certificates, diagnosis, history, reading};
use crate::store::{EvidenceStore, StoreError};
use async_trait::async_trait;
use farrier_conductor::model::InspectionData;
use uuid::Uuid;

#[async_trait]
impl EvidenceStore for SqliteStore {
    async fn inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        reading::inspection(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn received_inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        reading::received_inspection(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn history(&self, uuid: Uuid) -> Result<Vec<HistoryEntry>, StoreError> {
        history::of(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn certificates(&self, uuid: Uuid) -> Result<Vec<EraseCertificate>, StoreError> {
        certificates::of(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn boot_trace(&self, uuid: Uuid) -> Result<Option<BootTrace>, StoreError> {
        boot_traces::of(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn diagnosis(&self, uuid: Uuid) -> Result<Option<Diagnosis>, StoreError> {
        diagnosis::of(&self.readers, uuid).await.map_err(|failure| self.told(failure))
    }

    async fn awaited_boots(&self) -> Result<Vec<BootTrace>, StoreError> {
        boot_traces::awaited(&self.readers).await.map_err(|failure| self.told(failure))
    }

    async fn with_boot_trace(&self) -> Result<Vec<Uuid>, StoreError> {
        boot_traces::nodes(&self.readers).await.map_err(|failure| self.told(failure))
    }

    async fn reach_boot_stages(&self, reached: &[(Uuid, BootTrace)]) -> Result<(), StoreError> {
        let noted = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            boot_traces::reach(&mut writer.connection, reached).await?;
            writer.commit().await
        };
        noted.await.map_err(|failure| self.told(failure))
    }
}
