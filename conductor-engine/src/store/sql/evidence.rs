//! What happened to nodes, in every database.

use crate::evidence::boot_trace::BootTrace;
use crate::evidence::diagnosis::Diagnosis;
use crate::evidence::erasing::EraseCertificate;
use crate::records::HistoryEntry;
use crate::store::sql::statement::{Reader, Statement};
use crate::store::sql::tables::{boot_traces, certificates, diagnosis, history};
use crate::store::sql::{Database, Kept, Writer, statements as sql};
use crate::store::{EvidenceStore, StoreError};
use async_trait::async_trait;
use farrier_conductor::model::InspectionData;
use uuid::Uuid;

#[async_trait]
impl<D: Database> EvidenceStore for D {
    async fn inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        self.readers()
            .document(Statement::new(sql::INSPECTION).bind(uuid))
            .await
            .map_err(|failure| self.told(failure))
    }

    async fn received_inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        self.readers()
            .document(Statement::new(sql::RECEIVED_INSPECTION).bind(uuid))
            .await
            .map_err(|failure| self.told(failure))
    }

    async fn history(&self, uuid: Uuid) -> Result<Vec<HistoryEntry>, StoreError> {
        history::of(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn certificates(&self, uuid: Uuid) -> Result<Vec<EraseCertificate>, StoreError> {
        certificates::of(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn boot_trace(&self, uuid: Uuid) -> Result<Option<BootTrace>, StoreError> {
        boot_traces::of(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn diagnosis(&self, uuid: Uuid) -> Result<Option<Diagnosis>, StoreError> {
        diagnosis::of(&mut self.readers(), uuid).await.map_err(|failure| self.told(failure))
    }

    async fn awaited_boots(&self) -> Result<Vec<BootTrace>, StoreError> {
        boot_traces::awaited(&mut self.readers()).await.map_err(|failure| self.told(failure))
    }

    async fn with_boot_trace(&self) -> Result<Vec<Uuid>, StoreError> {
        boot_traces::nodes(&mut self.readers()).await.map_err(|failure| self.told(failure))
    }

    async fn reach_boot_stages(&self, reached: &[(Uuid, BootTrace)]) -> Result<(), StoreError> {
        let noted = async {
            let mut writer = self.writer(Kept::WhilePowered).await?;
            boot_traces::reach(writer.connection(), reached).await?;
            writer.commit().await
        };
        noted.await.map_err(|failure| self.told(failure))
    }
}
