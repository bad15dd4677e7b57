//! Fetches the logs of ramdisks, for whoever looks for what went wrong in them (section 2.8).

use crate::agent_client::{AgentClient, AgentError};
use crate::model::{Family, Node};
use crate::settings::{AgentSettings, LogCollection};
use crate::task::Task;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use tokio::io::AsyncWriteExt;

/// The time in the name of a file.
const TIME: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]-[hour]-[minute]-[second]");

/// Logs that could not be fetched, or kept.
#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("the agent sent no logs: they must be base64")]
    Missing,
    #[error("{file}: {source}; check that the folder exists and may be written")]
    File { file: PathBuf, source: io::Error },
}

/// Keeps the logs of the ramdisk that a node's operation runs in, if they are wanted when it `has_failed`, or when not.
/// What goes wrong with that is logged, and changes nothing else.
pub(crate) async fn collect(task: &Task, has_failed: bool) {
    let Some(folder) = folder(task, has_failed) else { return };
    if task.session.agent_url.is_none() {
        return;
    }
    let kept = async { keep(task, folder, &fetch(task).await?).await };
    tell(task, kept.await);
}

/// As [`collect`], of logs that the ramdisk has posted by itself, as base64.
pub(crate) async fn keep_posted(task: &Task, encoded: Option<&str>, has_failed: bool) {
    if let (Some(folder), Some(encoded)) = (folder(task, has_failed), encoded) {
        tell(task, keep(task, folder, encoded).await);
    }
}

/// Where logs are kept, if they are wanted.
fn folder(task: &Task, has_failed: bool) -> Option<&Path> {
    let settings = &task.services.settings.agent;
    let is_wanted = match settings.deploy_logs_collect {
        LogCollection::Always => true,
        LogCollection::OnFailure => has_failed,
        LogCollection::Never => false,
    };
    settings.deploy_logs_local_path.as_deref().filter(|_| is_wanted)
}

fn tell(task: &Task, kept: Result<PathBuf, LogError>) {
    match kept {
        Ok(file) => tracing::info!(node = %task.node.label(), "the ramdisk's logs are in {}", file.display()),
        Err(error) => tracing::warn!(node = %task.node.label(), "the ramdisk's logs are not kept: {error}"),
    }
}

async fn fetch(task: &Task) -> Result<String, LogError> {
    // An agent that is silent is not waited for again and again.
    let once = AgentSettings { max_command_attempts: 1, ..task.services.settings.agent.clone() };
    let client = AgentClient::new(&task.session, &once)?;
    let answer = client.run("log.collect_system_logs", json!({})).await?;
    let encoded = answer.get("system_logs").and_then(Value::as_str).ok_or(LogError::Missing)?;
    Ok(encoded.to_owned())
}

async fn keep(task: &Task, folder: &Path, encoded: &str) -> Result<PathBuf, LogError> {
    let archive = STANDARD.decode(encoded.trim()).map_err(|_| LogError::Missing)?;
    let file = folder.join(file_name(&task.node, task.services.now()));
    match write(folder, &file, &archive).await {
        Ok(()) => Ok(file),
        Err(source) => Err(LogError::File { file, source }),
    }
}

/// Logs may tell secrets of the instance, so nobody else reads them.
async fn write(folder: &Path, file: &Path, archive: &[u8]) -> io::Result<()> {
    tokio::fs::create_dir_all(folder).await?;
    let mut options = tokio::fs::OpenOptions::new();
    let mut kept = options.write(true).create(true).truncate(true).mode(0o600).open(file).await?;
    kept.write_all(archive).await?;
    kept.flush().await
}

/// The node, its instance and its operation, where they have names, and the time (UTC).
fn file_name(node: &Node, now: OffsetDateTime) -> String {
    let label = match node.provision_state.family() {
        Some(Family::Clean) => Some("cleaning"),
        Some(Family::Service) => Some("service"),
        Some(Family::Rescue) => Some("rescue"),
        Some(Family::Inspect) => Some("inspection"),
        _ => None,
    };
    let time = now.to_offset(time::UtcOffset::UTC).format(TIME).unwrap_or_default();
    let instance = node.instance_uuid.get().map(|uuid| uuid.to_string());
    let parts =
        [Some(node.uuid.to_string()), node.name.clone(), instance, label.map(str::to_owned), Some(time)];
    format!("{}.tar.gz", parts.into_iter().flatten().collect::<Vec<_>>().join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewNode, ProvisionState};
    use uuid::Uuid;

    #[test]
    fn files_are_named_as_in_the_contract() {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(61);
        let mut node = Node::enrol(NewNode { name: Some("n1".into()), ..NewNode::default() }, now);
        let instance = Uuid::nil();
        for (state, instance, expected) in [
            (ProvisionState::Deploying, None, "_n1_1970-01-01-00-01-01.tar.gz".to_owned()),
            (ProvisionState::Cleaning, None, "_n1_cleaning_1970-01-01-00-01-01.tar.gz".to_owned()),
            (
                ProvisionState::RescueWait,
                Some(instance),
                format!("_n1_{instance}_rescue_1970-01-01-00-01-01.tar.gz"),
            ),
        ] {
            node.provision_state = state;
            instance.into_iter().for_each(|uuid| node.instance_uuid.set(uuid).unwrap());
            assert_eq!(file_name(&node, now), format!("{}{expected}", node.uuid), "{state}");
        }
    }
}
