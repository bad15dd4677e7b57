//! The conductors over one store.

use crate::store::columns::{micros, time_of};
use crate::store::sqlite::{Kept, Outcome, SqliteStore};
use crate::store::statements as sql;
use crate::store::{ConductorRecord, ConductorStore, ProcessId, StoreError};
use async_trait::async_trait;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use time::OffsetDateTime;

#[async_trait]
impl ConductorStore for SqliteStore {
    async fn conductors(&self) -> Result<Vec<ConductorRecord>, StoreError> {
        let read = async {
            let rows = sqlx::query(sql::CONDUCTORS).fetch_all(&self.readers).await?;
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
            let renewed = sqlx::query(sql::RENEW_CONDUCTOR)
                .bind(own.name.clone())
                .bind(own.process.start.to_string())
                .bind(own.process.host_process.clone())
                .bind(own.conductor_group.clone())
                .bind(serde_json::to_string(&own.hardware)?)
                .bind(micros(own.registered_at))
                .bind(micros(own.updated_at))
                .bind(silent.map(|other| other.process.start.to_string()))
                .bind(silent.map(|other| other.counter));
            // What a power cut takes back its conductor writes again.
            let mut writer = self.writer(Kept::WhilePowered).await?;
            let rows = renewed.execute(&mut writer.connection).await?.rows_affected();
            writer.commit().await?;
            Ok(rows > 0)
        };
        renewed.await.map_err(|failure| self.told(failure))
    }

    async fn remove_conductor(&self, conductor: &ConductorRecord, is_own: bool) -> Result<(), StoreError> {
        let removed = async {
            let removed = sqlx::query(sql::DELETE_CONDUCTOR)
                .bind(conductor.name.clone())
                .bind(conductor.process.start.to_string())
                .bind(conductor.counter)
                .bind(is_own);
            let mut writer = self.writer(Kept::WhilePowered).await?;
            removed.execute(&mut writer.connection).await?;
            writer.commit().await
        };
        removed.await.map_err(|failure| self.told(failure))
    }
}

fn conductor(row: &SqliteRow) -> Outcome<ConductorRecord> {
    let time = |name| Ok::<_, sqlx::Error>(time_of(row.try_get(name)?).unwrap_or(OffsetDateTime::UNIX_EPOCH));
    Ok(ConductorRecord {
        name: row.try_get("name")?,
        process: ProcessId {
            start: row.try_get::<&str, _>("process")?.parse()?,
            host_process: row.try_get("host_process")?,
        },
        conductor_group: row.try_get("conductor_group")?,
        hardware: serde_json::from_str(row.try_get("hardware")?)?,
        counter: row.try_get("counter")?,
        registered_at: time("registered_at")?,
        updated_at: time("updated_at")?,
    })
}
