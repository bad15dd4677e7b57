//! Watches what an agent does between heartbeats: its progress, and the end of each step.
//!
//! Heartbeats alone would do (an agent forces one when a command ends), but they tell nothing
//! about progress, and a lost one costs minutes.

use crate::agent_client::AgentClient;
use crate::deploy::DeployInterface;
use crate::events::EventKind;
use crate::model::{Node, ProvisionState};
use crate::services::Services;
use crate::steps::{self, Verdict};
use crate::task::Task;
use farrier_protocol::progress::{Phase, Progress};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Those who watch.
pub(crate) struct Watches {
    services: Arc<Services>,
    deploy: Arc<dyn DeployInterface>,
    /// The nodes whose running step is being watched.
    watched: Mutex<HashSet<Uuid>>,
}

impl Watches {
    /// Nobody watches yet.
    pub(crate) fn new(services: Arc<Services>, deploy: Arc<dyn DeployInterface>) -> Arc<Self> {
        Arc::new(Self { services, deploy, watched: Mutex::default() })
    }

    /// Starts to watch the agent of a node that waits for it, unless it is watched already. The watch ends with
    /// the deployment, whose waits have their own deadline.
    pub(crate) fn start(self: &Arc<Self>, node: &Node) {
        if node.provision_state != ProvisionState::DeployWait || !self.watched().insert(node.uuid) {
            return;
        }
        let (watches, node) = (Arc::clone(self), node.uuid);
        tokio::spawn(async move {
            watches.watch(node).await;
            watches.watched().remove(&node);
        });
    }

    fn watched(&self) -> MutexGuard<'_, HashSet<Uuid>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn watch(&self, uuid: Uuid) {
        let settings = &self.services.settings;
        let mut known: Option<AgentClient> = None;
        loop {
            tokio::time::sleep(settings.progress_interval).await;
            let Ok(node) = self.services.find(&uuid.to_string()).await else { return };
            match node.provision_state {
                ProvisionState::DeployWait => {}
                ProvisionState::Deploying => continue,
                _ => return,
            }
            if !self.runs_in_agent(&node) {
                continue;
            }
            // One client per agent, since a TLS handshake a second is much for a small machine.
            let session = &node.driver_internal_info.agent;
            if known.as_ref().is_none_or(|client| !client.is_of(session)) {
                known = AgentClient::new(session, &settings.agent).ok();
            }
            if let Some(client) = &known {
                self.look(&node, client).await;
            }
        }
    }

    /// Tells the progress, and goes on with the deployment when the step has ended. An agent that
    /// cannot be reached may be busy or its network slow; silence has its own limit.
    async fn look(&self, node: &Node, client: &AgentClient) {
        if let Ok(progress) = client.progress().await {
            self.tell(node.uuid, progress);
        }
        let Ok(commands) = client.commands().await else { return };
        let again = node.driver_internal_info.skip_current_deploy_step == Some(false);
        let verdict = steps::judge(&commands, node.deploy_step.as_ref(), self.runs_in_agent(node), again);
        if matches!(verdict, Verdict::Wait) {
            return;
        }
        if let Ok(mut task) = Task::try_acquire(&self.services, node.uuid).await
            && task.node.provision_state == ProvisionState::DeployWait
        {
            steps::advance(&mut task, &*self.deploy).await;
        }
    }

    fn runs_in_agent(&self, node: &Node) -> bool {
        node.deploy_step.as_ref().is_some_and(|step| self.deploy.runs_in_agent(step))
    }

    fn tell(&self, node: Uuid, progress: Progress) {
        let events = &self.services.events;
        if matches!(progress.phase, Phase::Verifying | Phase::Finishing | Phase::Done) {
            events.push_once(node, EventKind::ImageWritten);
        }
        if !matches!(progress.phase, Phase::Idle | Phase::Done | Phase::Failed) {
            events.push(node, EventKind::Progress(progress));
        }
    }
}
