//! Which agents are there, for interfaces that get a node and no task.

use crate::store::Store;
use async_trait::async_trait;
use farrier_conductor::agent::AgentClient;
use farrier_conductor::agent::AgentSettings;
use farrier_conductor::heartbeat::fast_track;
use farrier_conductor::interfaces::{Agents, InterfaceError};
use farrier_conductor::model::clock::Clock;
use farrier_conductor::model::{AgentSession, BadValue, Node};
use farrier_conductor::settings::Settings;
use std::sync::Arc;
use std::time::Duration;

/// How long an agent may think about an answer that only tells that it is there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The agents of all nodes, as far as their calls tell. Clones see the same ones.
#[derive(Clone)]
pub struct AgentLiveness {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Those of the conductor, but that nobody is asked twice.
    settings: Settings,
}

impl AgentLiveness {
    /// Those of the nodes in a store, by a clock and the settings of a conductor.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: &Settings) -> Self {
        let agent = AgentSettings {
            command_timeout: settings.agent.command_timeout.min(PATIENCE),
            max_command_attempts: 1,
            ..settings.agent.clone()
        };
        Self { store, clock, settings: Settings { agent, ..settings.clone() } }
    }

    async fn answers(&self, session: &AgentSession) -> bool {
        match AgentClient::new(session, &self.settings.agent) {
            Ok(agent) => agent.commands().await.is_ok(),
            Err(_) => false,
        }
    }
}

#[async_trait]
impl Agents for AgentLiveness {
    fn has_fast_track(&self, node: &Node) -> Result<bool, BadValue> {
        self.settings.has_fast_track(node)
    }

    async fn is_alive(&self, node: &Node) -> Result<bool, InterfaceError> {
        let Some(record) = self.store.get(node.uuid).await.map_err(InterfaceError::driver)? else {
            return Ok(false);
        };
        // Of a node whose order is being looked at the state is another one already.
        let (state, now) = (record.node.provision_state, self.clock.now());
        if fast_track::is_alive(&record.session, state, now, self.window()) {
            return Ok(true);
        }
        Ok(!state.takes_heartbeats(true) && self.answers(&record.session).await)
    }

    fn window(&self) -> Duration {
        self.settings.fast_track_window()
    }
}
