//! `farrier deploy`.

use crate::client::NodeApi;
use crate::report::Report;
use crate::steps::Steps;
use anyhow::{anyhow, bail};
use clap::Args;
use farrier_conductor::api::nodes::ProvisionRequest;
use farrier_conductor::events::EventKind;
use farrier_conductor::model::ProvisionState;
use farrier_media::config_drive;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How often the conductor is asked for news.
const NEWS_INTERVAL: Duration = Duration::from_millis(250);

/// Rounds without news after which the node itself is looked at, in case the conductor was
/// restarted and knows no events any more.
const QUIET_ROUNDS: u32 = 40;

/// Options of `farrier deploy`.
#[derive(Debug, Args)]
#[group(id = "deployment")]
pub(crate) struct DeployOptions {
    /// Name or UUID of the node.
    node: String,
    /// URL of the image, as the machine reaches it: of a whole disk, or with --root-gb of a partition.
    #[arg(long, value_name = "URL")]
    image: String,
    /// Digest of the image: sha256:HEX, sha512:HEX, or plain hex of 64 or 128 digits.
    #[arg(long, value_name = "ALGO:HEX")]
    checksum: String,
    /// Format of the image: raw for exact bytes, qcow2, or unknown to let the agent unpack gzip, zstd, xz
    /// and bzip2.
    #[arg(long, default_value = "raw")]
    format: String,
    /// Config drive: the folder that holds openstack/latest/, an ISO 9660 or FAT image, or a file
    /// with base64 of a gzip of one.
    #[arg(long, value_name = "DIR|FILE")]
    config_drive: Option<PathBuf>,
    /// Size of the root partition that is made for a partition image.
    #[arg(long, value_name = "GIB")]
    root_gb: Option<u64>,
    /// Size of the swap space beside a partition image.
    #[arg(long, value_name = "MIB", requires = "root_gb")]
    swap_mb: Option<u64>,
    /// Size of the ephemeral partition beside a partition image.
    #[arg(long, value_name = "GIB", requires = "root_gb")]
    ephemeral_gb: Option<u64>,
    /// Keep what is on the ephemeral partition; all sizes must be those of the last deployment.
    #[arg(long, requires = "ephemeral_gb")]
    preserve_ephemeral: bool,
    /// Deploy steps beside those that run by themselves, or with priority 0 in their place: a JSON list, or a
    /// file with one.
    #[arg(long, value_name = "FILE|JSON")]
    steps: Option<Steps>,
    /// Print one JSON object per event instead of a progress bar or log.
    #[arg(long)]
    json: bool,
    /// Give up watching after this many seconds; the deployment itself goes on.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl DeployOptions {
    pub(crate) async fn run(self, api: &NodeApi) -> anyhow::Result<()> {
        let deadline = self.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let before = api.events(&self.node, 0).await?;
        let mut since = before.last().map_or(0, |event| event.sequence + 1);
        self.order(api).await?;
        let mut report = Report::new(self.json);
        let mut quiet = 0;
        loop {
            let events = api.events(&self.node, since).await?;
            quiet = if events.is_empty() { quiet + 1 } else { 0 };
            for event in events {
                since = event.sequence + 1;
                report.tell(&event)?;
                match event.kind {
                    EventKind::Active => return Ok(()),
                    EventKind::Failed { error } => bail!("{error}"),
                    _ => {}
                }
            }
            if quiet == QUIET_ROUNDS {
                quiet = 0;
                if let Some(end) = self.end_without_event(api).await? {
                    return end;
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                bail!(
                    "node {} was not active after {} s; `farrier node show {0}` tells where it is",
                    self.node,
                    self.timeout.unwrap_or_default()
                );
            }
            tokio::time::sleep(NEWS_INTERVAL).await;
        }
    }

    /// Says what is to be deployed, and orders it. What has an instance already is rebuilt.
    async fn order(&self, api: &NodeApi) -> anyhow::Result<()> {
        let configdrive = self.config_drive.as_ref().map(|path| config_drive::pack(path)).transpose()?;
        let state = api.show(&self.node).await?.provision_state;
        let has_instance = [ProvisionState::Active, ProvisionState::Error].contains(&state);
        api.patch(&self.node, [("/instance_info".to_owned(), Value::Object(self.instance_info()))]).await?;
        let request = ProvisionRequest {
            target: if has_instance { "rebuild" } else { "active" }.to_owned(),
            configdrive: configdrive.map(Value::from),
            deploy_steps: self.steps.clone().map(|steps| steps.0),
            ..ProvisionRequest::default()
        };
        api.provision(&self.node, &request).await
    }

    fn instance_info(&self) -> Map<String, Value> {
        let mut info = Map::new();
        info.insert("image_source".into(), self.image.as_str().into());
        info.insert("image_checksum".into(), self.checksum.as_str().into());
        info.insert("image_disk_format".into(), self.format.as_str().into());
        let kind = if self.root_gb.is_some() { "partition" } else { "whole-disk" };
        info.insert("image_type".into(), kind.into());
        for (key, size) in
            [("root_gb", self.root_gb), ("swap_mb", self.swap_mb), ("ephemeral_gb", self.ephemeral_gb)]
        {
            info.extend(size.map(|size| (key.to_owned(), size.into())));
        }
        if self.preserve_ephemeral {
            info.insert("preserve_ephemeral".into(), true.into());
        }
        info
    }

    /// How the deployment ended, when the node is in a state of rest.
    async fn end_without_event(&self, api: &NodeApi) -> anyhow::Result<Option<anyhow::Result<()>>> {
        let node = api.show(&self.node).await?;
        Ok(match node.provision_state {
            ProvisionState::Deploying | ProvisionState::DeployWait => None,
            ProvisionState::Active => Some(Ok(())),
            state => {
                let error = node.last_error.unwrap_or_else(|| format!("node {} is {state}", self.node));
                Some(Err(anyhow!(error)))
            }
        })
    }
}
