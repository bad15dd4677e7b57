//! `farrier deploy`.

mod checksum;

use crate::client::{AllocationRecord, NodeApi, Wanted};
use crate::commands::steps::Steps;
use crate::failure::{INVALID_OPTION, LEFT_OPERATION, STILL_RUNNING, UNREADABLE_RESPONSE, WithCode, coded};
use crate::view::progress::Report;
use anyhow::Context;
use clap::Args;
use farrier_conductor::EventKind;
use farrier_conductor::model::ProvisionState;
use farrier_media::config_drive;
use farrier_node_api::extension::Deployment;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How often the conductor is asked for news.
const NEWS_INTERVAL: Duration = Duration::from_millis(250);

/// Rounds without news after which the node itself is checked, in case the conductor was
/// restarted and knows no events any more.
const QUIET_POLLS: u32 = 40;

/// Options of `farrier deploy`.
#[derive(Debug, Args)]
#[group(id = "deployment")]
pub(crate) struct DeployOptions {
    /// Name or UUID of the node; or use --resource-class.
    #[arg(required_unless_present = "resource_class", conflicts_with = "resource_class")]
    node: Option<String>,
    /// Deploy to any available node of this resource class.
    #[arg(long, value_name = "CLASS")]
    resource_class: Option<String>,
    /// Required trait of the node.
    #[arg(long = "trait", value_name = "TRAIT", requires = "resource_class", conflicts_with = "node")]
    traits: Vec<String>,
    /// Restrict the choice to this node, by name or UUID.
    #[arg(long = "candidate", value_name = "NODE", requires = "resource_class", conflicts_with = "node")]
    candidates: Vec<String>,
    /// URL of the image, as the machine reaches it: a whole-disk image, or with --root-gb a partition image.
    #[arg(long, value_name = "URL")]
    image: String,
    /// Checksum of the image: sha256:HEX, sha512:HEX, plain hex of 64 or 128 digits, or a file such as SHA256SUMS.
    #[arg(long, value_name = "ALGO:HEX|FILE")]
    checksum: String,
    /// Format of the image: raw (exact bytes), qcow2, or unknown (the agent decompresses gzip, zstd, xz and bzip2).
    #[arg(long, default_value = "raw")]
    format: String,
    /// Config drive: a folder with openstack/latest/, an ISO 9660 or FAT image, or a file with the base64 of a
    /// gzipped image.
    #[arg(long, value_name = "DIR|FILE")]
    config_drive: Option<PathBuf>,
    /// Size of the root partition of a partition image, in GiB.
    #[arg(long, value_name = "GIB")]
    root_gb: Option<u64>,
    /// Size of the swap partition of a partition image, in MiB.
    #[arg(long, value_name = "MIB", requires = "root_gb")]
    swap_mb: Option<u64>,
    /// Size of the ephemeral partition of a partition image, in GiB.
    #[arg(long, value_name = "GIB", requires = "root_gb")]
    ephemeral_gb: Option<u64>,
    /// Preserve the ephemeral partition; all sizes must equal those of the last deployment.
    #[arg(long, requires = "ephemeral_gb")]
    preserve_ephemeral: bool,
    /// Deploy steps: a JSON list, or a file with one. They are added to the default steps; priority 0 disables a
    /// step.
    #[arg(long, value_name = "FILE|JSON")]
    steps: Option<Steps>,
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
    /// Seconds to watch the deployment, which continues after that.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

/// The node that a deployment is for.
struct Chosen {
    node: String,
    /// By which it was taken.
    allocation: Option<AllocationRecord>,
}

impl DeployOptions {
    pub(crate) async fn run(self, api: &NodeApi) -> anyhow::Result<()> {
        let deadline = self.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let deployment = self.deployment().code(INVALID_OPTION)?;
        let mut report = Report::new(self.json);
        let Chosen { node, allocation } = self.choose(api, deadline).await?;
        if allocation.is_some() {
            report.taken(&api.show(&node).await?)?;
        }
        let mut since = match api.deploy(&node, &deployment).await {
            Ok(since) => since,
            Err(error) => return Err(freed(api, allocation, error).await),
        };
        let mut quiet = 0;
        loop {
            let events = api.events(&node, since).await?;
            quiet = if events.is_empty() { quiet + 1 } else { 0 };
            for event in events {
                since = event.sequence + 1;
                report.print(&event)?;
                match event.kind {
                    EventKind::Active => return Ok(()),
                    EventKind::Failed { error } => return Err(coded(LEFT_OPERATION, error)),
                    _ => {}
                }
            }
            if quiet == QUIET_POLLS {
                quiet = 0;
                if let Some(end) = end_without_event(api, &node).await? {
                    return end;
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let text = format!(
                    "node {node} was not active after {} s; `farrier explain {node}` shows why",
                    self.timeout.unwrap_or_default()
                );
                return Err(coded(STILL_RUNNING, text));
            }
            tokio::time::sleep(NEWS_INTERVAL).await;
        }
    }

    /// The node that was named, or one that is taken now.
    async fn choose(&self, api: &NodeApi, deadline: Option<Instant>) -> anyhow::Result<Chosen> {
        let Some(resource_class) = self.resource_class.clone() else {
            return Ok(Chosen { node: self.node.clone().unwrap_or_default(), allocation: None });
        };
        let (traits, candidate_nodes) = (self.traits.clone(), self.candidates.clone());
        let wanted = Wanted { resource_class, traits, candidate_nodes };
        let allocation = api.allocate(&wanted, deadline).await?;
        let node = allocation.node_uuid.clone();
        let node = node.context("the allocation has no node; check the conductor's log");
        let node = node.code(UNREADABLE_RESPONSE)?;
        Ok(Chosen { node, allocation: Some(allocation) })
    }

    /// The deployment.
    fn deployment(&self) -> anyhow::Result<Deployment> {
        let mut info = self.instance_info(checksum::given(&self.checksum, &self.image)?);
        if let Some(path) = &self.config_drive {
            info.insert("configdrive".into(), config_drive::pack(path)?.into());
        }
        let deploy_steps = self.steps.clone().map(|steps| steps.0).unwrap_or_default();
        Ok(Deployment { instance_info: info.into(), deploy_steps })
    }

    fn instance_info(&self, checksum: String) -> Map<String, Value> {
        let mut info = Map::new();
        info.insert("image_source".into(), self.image.as_str().into());
        info.insert("image_checksum".into(), checksum.into());
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
        if !self.traits.is_empty() {
            info.insert("traits".into(), self.traits.clone().into());
        }
        info
    }
}

/// Why a deployment was refused. A node that was taken for it is free again.
async fn freed(api: &NodeApi, allocation: Option<AllocationRecord>, refusal: anyhow::Error) -> anyhow::Error {
    let Some(allocation) = allocation else { return refusal };
    match api.free(&allocation).await {
        Ok(()) => refusal,
        Err(error) => {
            refusal.context(format!("the node stays reserved by allocation {} ({error})", allocation.uuid))
        }
    }
}

/// How the deployment ended, when the node is in a state of rest.
async fn end_without_event(api: &NodeApi, node: &str) -> anyhow::Result<Option<anyhow::Result<()>>> {
    let found = api.show(node).await?;
    Ok(match found.provision_state {
        ProvisionState::Deploying | ProvisionState::DeployWait => None,
        ProvisionState::Active => Some(Ok(())),
        state => {
            let error = found.last_error.unwrap_or_else(|| format!("node {node} is {state}"));
            Some(Err(coded(LEFT_OPERATION, error)))
        }
    })
}
