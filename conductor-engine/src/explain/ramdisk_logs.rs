//! Fetches the logs of ramdisks, for operators who look for what went wrong (section 2.8).

use crate::evidence::log_files;
use crate::services::Services;
use farrier_conductor::agent::{AgentClient, AgentError};
use farrier_conductor::agent::{AgentSettings, LogCollection};
use farrier_conductor::model::{AgentSession, Node};
use std::io;
use std::path::{Path, PathBuf};

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
pub(crate) async fn collect(services: &Services, node: &Node, agent: &AgentSession, has_failed: bool) {
    let Some(folder) = folder(services, has_failed) else { return };
    if agent.agent_url.is_none() {
        return;
    }
    let kept = async { keep(services, node, folder, fetch(services, agent).await?).await };
    tell(node, kept.await);
}

/// Sets aside logs that the ramdisk has posted by itself, until its inspection has failed or not.
pub(crate) async fn receive(services: &Services, node: &Node, logs: Option<&[u8]>) {
    if let (Some(folder), Some(logs)) = (folder(services, true), logs) {
        let set_aside = log_files::set_aside(folder, node.uuid, logs).await;
        if let Err(source) = set_aside {
            tell(node, Err(LogError::File { file: folder.to_owned(), source }));
        }
    }
}

/// As [`collect`], of logs that were set aside; what is not wanted is removed.
pub(crate) async fn keep_received(services: &Services, node: &Node, has_failed: bool) {
    let Some(place) = folder(services, true) else { return };
    let received = log_files::take_back(place, node.uuid).await;
    if let (Some(folder), Some(logs)) = (folder(services, has_failed), received) {
        tell(node, keep(services, node, folder, logs).await);
    }
}

/// Where logs are kept, if they are wanted.
fn folder(services: &Services, has_failed: bool) -> Option<&Path> {
    let settings = &services.settings.agent;
    let is_wanted = match settings.deploy_logs_collect {
        LogCollection::Always => true,
        LogCollection::OnFailure => has_failed,
        LogCollection::Never => false,
    };
    settings.deploy_logs_local_path.as_deref().filter(|_| is_wanted)
}

fn tell(node: &Node, kept: Result<PathBuf, LogError>) {
    match kept {
        Ok(file) => tracing::info!(node = %node.label(), "the ramdisk's logs are in {}", file.display()),
        Err(error) => tracing::warn!(node = %node.label(), "the ramdisk's logs are not kept: {error}"),
    }
}

async fn fetch(services: &Services, agent: &AgentSession) -> Result<Vec<u8>, LogError> {
    // An agent that is silent is not waited for again and again.
    let once = AgentSettings { max_command_attempts: 1, ..services.settings.agent.clone() };
    let client = AgentClient::new(agent, &once)?;
    client.collect_system_logs().await?.ok_or(LogError::Missing)
}

async fn keep(
    services: &Services,
    node: &Node,
    folder: &Path,
    archive: Vec<u8>,
) -> Result<PathBuf, LogError> {
    let name = format!("{}.tar.gz", log_files::stem(node, services.now()));
    let file = log_files::place(folder, node.uuid, &name);
    let room = services.settings.agent.deploy_logs_room;
    match log_files::write(folder, node.uuid, &name, archive, room).await {
        Ok(()) => Ok(file),
        Err(source) => Err(LogError::File { file, source }),
    }
}
