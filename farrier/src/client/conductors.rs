//! The conductors over the database of the one that answers.

use crate::client::{NodeApi, answer};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// A conductor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConductorState {
    pub(crate) hostname: String,
    pub(crate) conductor_group: String,
    pub(crate) alive: bool,
    pub(crate) drivers: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) updated_at: OffsetDateTime,
}

#[derive(Deserialize)]
struct Conductors {
    conductors: Vec<ConductorState>,
}

impl NodeApi {
    /// All conductors, by name.
    pub(crate) async fn conductors(&self) -> anyhow::Result<Vec<ConductorState>> {
        let mut url = self.path(&["conductors"])?;
        url.set_query(Some("detail=true"));
        let body = self.send_to(Method::GET, url, None::<&()>).await?;
        Ok(answer::read::<Conductors>(&body)?.conductors)
    }
}
