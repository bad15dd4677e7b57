//! Watches what an agent does between heartbeats: its progress, and the end of each step.
//!
//! Heartbeats alone would do (an agent forces one when a command ends), but they tell nothing
//! about progress, and a lost one costs minutes.

use crate::agent_client::AgentClient;
use crate::conductor::Conductor;
use crate::conductor::direct;
use crate::conductor::steps::{self, Verdict};
use crate::conductor::task::Task;
use crate::events::EventKind;
use crate::model::{Node, ProvisionState};
use farrier_protocol::progress::{Phase, Progress};
use std::sync::PoisonError;
use uuid::Uuid;

/// Starts to watch a node's agent unless it is watched already. The watch ends with the
/// deployment, whose waits have their own deadline.
pub(crate) fn start(task: &Task) {
    let (conductor, node) = (task.conductor.clone(), task.node.uuid);
    if !conductor.watched().lock().unwrap_or_else(PoisonError::into_inner).insert(node) {
        return;
    }
    tokio::spawn(async move {
        watch(&conductor, node).await;
        conductor.watched().lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
    });
}

async fn watch(conductor: &Conductor, uuid: Uuid) {
    let mut known: Option<AgentClient> = None;
    loop {
        tokio::time::sleep(conductor.settings().progress_interval).await;
        let Ok(node) = conductor.find(&uuid.to_string()).await else { return };
        match node.provision_state {
            ProvisionState::DeployWait => {}
            ProvisionState::Deploying => continue,
            _ => return,
        }
        if !node.deploy_step.as_ref().is_some_and(direct::runs_in_agent) {
            continue;
        }
        // One client per agent, since a TLS handshake a second is much for a small machine.
        let session = &node.driver_internal_info.agent;
        if known.as_ref().is_none_or(|client| !client.is_of(session)) {
            known = AgentClient::new(session, &conductor.settings().agent).ok();
        }
        if let Some(client) = &known {
            look(conductor, &node, client).await;
        }
    }
}

/// Tells the progress, and goes on with the deployment when the step has ended. An agent that
/// cannot be reached may be busy or its network slow; silence has its own limit.
async fn look(conductor: &Conductor, node: &Node, client: &AgentClient) {
    if let Ok(progress) = client.progress().await {
        tell(conductor, node.uuid, progress);
    }
    let Ok(commands) = client.commands().await else { return };
    let again = node.driver_internal_info.skip_current_deploy_step == Some(false);
    if matches!(steps::judge(&commands, node.deploy_step.as_ref(), again), Verdict::Wait) {
        return;
    }
    if let Ok(mut task) = conductor.try_acquire(node.uuid).await
        && task.node.provision_state == ProvisionState::DeployWait
    {
        steps::advance(&mut task).await;
    }
}

fn tell(conductor: &Conductor, node: Uuid, progress: Progress) {
    let events = conductor.events();
    if matches!(progress.phase, Phase::Verifying | Phase::Finishing | Phase::Done) {
        events.push_once(node, EventKind::ImageWritten);
    }
    if !matches!(progress.phase, Phase::Idle | Phase::Done | Phase::Failed) {
        events.push(node, EventKind::Progress(progress));
    }
}
