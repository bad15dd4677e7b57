//! The conductors over one store.

use crate::store::sql::statement::{Reader, Row, Statement};
use crate::store::sql::{Database, Kept, Outcome, statements as sql};
use crate::store::{ConductorRecord, ConductorStore, ProcessId, StoreError};
use async_trait::async_trait;
use std::time::Duration;

#[async_trait]
impl<D: Database> ConductorStore for D {
    async fn conductors(&self) -> Result<Vec<(ConductorRecord, Duration)>, StoreError> {
        let read = async {
            let rows = self.readers().fetch(Statement::composed(sql::conductors(D::DIALECT))).await?;
            rows.iter().map(|row| Ok((conductor(row)?, silence(row)?))).collect::<Outcome<_>>()
        };
        read.await.map_err(|failure| self.told(failure))
    }

    async fn renew_conductor(
        &self,
        own: &ConductorRecord,
        silent: Option<&ConductorRecord>,
    ) -> Result<bool, StoreError> {
        let renewed = async {
            let values = vec![
                own.name.clone().into(),
                own.process.start.into(),
                own.process.host_process.clone().into(),
                own.conductor_group.clone().into(),
                serde_json::to_string(&own.hardware)?.into(),
                silent.map(|other| other.process.start).into(),
                silent.map(|other| other.counter).into(),
            ];
            let renewed = Statement::composed(sql::renew_conductor(D::DIALECT, values));
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

/// The time since a record was renewed. A clock that was set back ends before it.
fn silence(row: &impl Row) -> Outcome<Duration> {
    Ok((row.time("now")? - row.time("updated_at")?).try_into().unwrap_or_default())
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
