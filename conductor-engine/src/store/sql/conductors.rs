//! The conductors over one store.

use crate::store::sql::statement::{Reader, Row, Statement};
use crate::store::sql::{Database, Kept, Outcome, statements as sql};
use crate::store::{ConductorRecord, ConductorStore, ProcessId, StoreError};
use async_trait::async_trait;

#[async_trait]
impl<D: Database> ConductorStore for D {
    async fn conductors(&self) -> Result<Vec<ConductorRecord>, StoreError> {
        let read = async {
            let rows = self.readers().fetch(Statement::new(sql::CONDUCTORS)).await?;
            rows.iter().map(conductor).collect::<Outcome<_>>()
        };
        read.await.map_err(|failure| self.told(failure))
    }

    async fn renew_conductor(
        &self,
        own: &ConductorRecord,
        silent: Option<&ConductorRecord>,
    ) -> Result<bool, StoreError> {
        let renewed = async {
            let renewed = Statement::new(sql::RENEW_CONDUCTOR)
                .bind(own.name.clone())
                .bind(own.process.start)
                .bind(own.process.host_process.clone())
                .bind(own.conductor_group.clone())
                .bind(serde_json::to_string(&own.hardware)?)
                .bind(own.registered_at)
                .bind(own.updated_at)
                .bind(silent.map(|other| other.process.start))
                .bind(silent.map(|other| other.counter));
            // What a power cut takes back its conductor writes again.
            Ok(self.run(Kept::WhilePowered, renewed).await? > 0)
        };
        renewed.await.map_err(|failure| self.told(failure))
    }

    async fn remove_conductor(&self, conductor: &ConductorRecord, is_own: bool) -> Result<(), StoreError> {
        let removed = Statement::new(sql::DELETE_CONDUCTOR)
            .bind(conductor.name.clone())
            .bind(conductor.process.start)
            .bind(conductor.counter)
            .bind(is_own);
        let removed = self.run(Kept::WhilePowered, removed).await;
        removed.map(drop).map_err(|failure| self.told(failure))
    }
}

fn conductor(row: &impl Row) -> Outcome<ConductorRecord> {
    Ok(ConductorRecord {
        name: row.text("name")?.to_owned(),
        process: ProcessId {
            start: row.uuid("process")?,
            host_process: row.text("host_process")?.to_owned(),
        },
        conductor_group: row.text("conductor_group")?.to_owned(),
        hardware: serde_json::from_str(row.text("hardware")?)?,
        counter: row.number("counter")?,
        registered_at: row.time("registered_at")?,
        updated_at: row.time("updated_at")?,
    })
}
