//! What only this conductor has, below `/farrier`.

use crate::client::{NodeApi, answer};
use farrier_conductor::deploy::disk_export::DiskExport;
use farrier_engine::KeptLog;
use farrier_engine::evidence::console_log::ConsolePart;
use farrier_engine::evidence::erasing::ErasureRecord;
use farrier_engine::evidence::events::Event;
use farrier_engine::explain::Explanation;
use farrier_node_api::extension::{Deployment, DeploymentOrdered, ExportRequest};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Events {
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Logs {
    logs: Vec<KeptLog>,
}

impl NodeApi {
    /// Orders a deployment, and gives the sequence number of its first event.
    pub(crate) async fn deploy(&self, node: &str, deployment: &Deployment) -> anyhow::Result<u64> {
        let url = self.extension(node, &["deployment"])?;
        let body = self.send_to(Method::PUT, url, Some(deployment)).await?;
        Ok(answer::read::<DeploymentOrdered>(&body)?.events_since)
    }

    pub(crate) async fn events(&self, node: &str, since: u64) -> anyhow::Result<Vec<Event>> {
        let mut url = self.extension(node, &["events"])?;
        url.set_query(Some(&format!("since={since}")));
        Ok(self.get::<Events>(url).await?.events)
    }

    /// What a node waits for.
    pub(crate) async fn explain(&self, node: &str) -> anyhow::Result<Explanation> {
        self.get(self.extension(node, &["explanation"])?).await
    }

    /// What stands on the console of a node's machine from a place on, or at its end.
    pub(crate) async fn console(&self, node: &str, from: Option<u64>) -> anyhow::Result<ConsolePart> {
        let mut url = self.extension(node, &["console"])?;
        url.set_query(from.map(|from| format!("from={from}")).as_deref());
        self.get(url).await
    }

    /// What the sensors of a node's machine say.
    pub(crate) async fn sensors(&self, node: &str) -> anyhow::Result<serde_json::Value> {
        self.get(self.extension(node, &["sensors"])?).await
    }

    /// Types something at it.
    pub(crate) async fn type_at_console(&self, node: &str, typed: Vec<u8>) -> anyhow::Result<()> {
        let request = self.http.post(self.extension(node, &["console"])?);
        let request = request.header(CONTENT_TYPE, "application/octet-stream").body(typed);
        self.request(request).await.map(drop)
    }

    /// Opens it, or closes it.
    pub(crate) async fn set_console(&self, node: &str, enabled: bool) -> anyhow::Result<()> {
        let body = serde_json::json!({"enabled": enabled});
        self.send(Method::PUT, &["nodes", node, "states", "console"], Some(&body)).await.map(drop)
    }

    /// What proves that the disks of a node were erased.
    pub(crate) async fn certificates(&self, node: &str) -> anyhow::Result<ErasureRecord> {
        self.get(self.extension(node, &["certificates"])?).await
    }

    /// The logs that were kept of the ramdisks of a node, the oldest first.
    pub(crate) async fn logs(&self, node: &str) -> anyhow::Result<Vec<KeptLog>> {
        Ok(self.get::<Logs>(self.extension(node, &["logs"])?).await?.logs)
    }

    /// One archive of them.
    pub(crate) async fn log(&self, node: &str, name: &str) -> anyhow::Result<Vec<u8>> {
        self.send_to(Method::GET, self.extension(node, &["logs", name])?, None::<&()>).await
    }

    /// Has the disk of a node exported.
    pub(crate) async fn export_disk(&self, node: &str, read_only: bool) -> anyhow::Result<DiskExport> {
        let url = self.extension(node, &["disk", "export"])?;
        let body = self.send_to(Method::PUT, url, Some(&ExportRequest { read_only })).await?;
        answer::read(&body)
    }

    /// Has that ended.
    pub(crate) async fn release_disk(&self, node: &str) -> anyhow::Result<()> {
        let url = self.extension(node, &["disk", "export"])?;
        self.send_to(Method::DELETE, url, None::<&()>).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        let body = self.send_to(Method::GET, url, None::<&()>).await?;
        answer::read(&body)
    }

    fn extension(&self, node: &str, what: &[&str]) -> anyhow::Result<Url> {
        self.below("farrier", &[&["v1", "nodes", node], what].concat())
    }
}
