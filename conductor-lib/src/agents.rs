//! What interfaces may know of the agents of nodes that get a node and no task.

use crate::agent::AgentClient;
use crate::clock::Clock;
use crate::error::Error;
use crate::heartbeat::fast_track;
use crate::model::{AgentSession, BadValue, Node};
use crate::settings::{AgentSettings, Settings};
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// How long an agent may think about an answer that only tells that it is there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The agents of all nodes, as far as their calls tell. Clones see the same ones.
#[derive(Clone)]
pub struct Agents {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Those of the conductor, but that nobody is asked twice.
    settings: Settings,
}

impl Agents {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: &Settings) -> Self {
        let agent = AgentSettings {
            command_timeout: settings.agent.command_timeout.min(PATIENCE),
            max_command_attempts: 1,
            ..settings.agent.clone()
        };
        Self { store, clock, settings: Settings { agent, ..settings.clone() } }
    }

    /// Whether fast track is on for a node: by its `driver_info`, else by the conductor's setting (section 2.3).
    ///
    /// # Errors
    ///
    /// [`BadValue`] where `driver_info` has something else than a boolean.
    pub fn has_fast_track(&self, node: &Node) -> Result<bool, BadValue> {
        self.settings.has_fast_track(node)
    }

    /// Whether the agent of a node was heard of within [`Self::window`]. In states that take no heartbeats its silence
    /// proves nothing, and it is asked.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn is_alive(&self, node: &Node) -> Result<bool, Error> {
        let Some(record) = self.store.get(node.uuid).await? else { return Ok(false) };
        // Of a node whose order is being looked at the state is another one already.
        let (state, now) = (record.node.provision_state, self.clock.now());
        if fast_track::is_alive(&record.session, state, now, self.window()) {
            return Ok(true);
        }
        Ok(!state.takes_heartbeats(true) && self.answers(&record.session).await)
    }

    async fn answers(&self, session: &AgentSession) -> bool {
        match AgentClient::new(session, &self.settings.agent) {
            Ok(agent) => agent.commands().await.is_ok(),
            Err(_) => false,
        }
    }

    /// How long an agent counts as alive after it was heard of.
    pub fn window(&self) -> Duration {
        self.settings.fast_track_window()
    }
}
