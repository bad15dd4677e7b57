//! What happened to a node.

use crate::client::{NodeApi, answer};
use farrier_engine::records::HistoryEntry;
use reqwest::Method;
use serde::Deserialize;

#[derive(Deserialize)]
struct History {
    history: Vec<HistoryEntry>,
}

impl NodeApi {
    /// What happened to a node, the oldest first.
    pub(crate) async fn history(&self, node: &str) -> anyhow::Result<Vec<HistoryEntry>> {
        let mut url = self.path(&["nodes", node, "history"])?;
        url.set_query(Some("detail=true"));
        let body = self.send_to(Method::GET, url, None::<&()>).await?;
        Ok(answer::read::<History>(&body)?.history)
    }
}
