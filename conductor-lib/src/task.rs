//! A task: a node under its lock, with the means to change it.

use crate::agent_client::{AgentClient, AgentError};
use crate::error::Error;
use crate::events::EventKind;
use crate::interfaces::{Boot, PowerInterface};
use crate::model::{AgentSession, Event, Node, PowerState};
use crate::services::Services;
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

/// A node that nobody else can change until this is dropped.
pub(crate) struct Task {
    /// The record; changes count once saved.
    pub(crate) node: Node,
    /// What all tasks share.
    pub(crate) services: Arc<Services>,
    /// Control of the machine.
    pub(crate) power: Arc<dyn PowerInterface>,
    _lock: OwnedMutexGuard<()>,
}

impl Task {
    /// Locks a node at once or not at all.
    pub(crate) async fn try_acquire(services: &Arc<Services>, uuid: Uuid) -> Result<Self, Error> {
        let lock = services.locks.try_lock(uuid).ok_or_else(|| Error::NodeLocked(uuid.to_string()))?;
        let node = services.find(&uuid.to_string()).await?;
        let power = services.power(&node)?;
        Ok(Self { node, services: Arc::clone(services), power, _lock: lock })
    }

    /// Locks a node for an operator, with some patience.
    pub(crate) async fn acquire(services: &Arc<Services>, id: &str) -> Result<Self, Error> {
        let node = services.find(id).await?;
        for _ in 1..services.settings.node_locked_attempts {
            match Self::try_acquire(services, node.uuid).await {
                Err(Error::NodeLocked(_)) => tokio::time::sleep(services.settings.node_locked_pause).await,
                other => return other,
            }
        }
        Self::try_acquire(services, node.uuid).await.map_err(|error| match error {
            Error::NodeLocked(_) => Error::NodeLocked(node.name),
            other => other,
        })
    }

    /// A client for the agent that runs now.
    pub(crate) fn agent(&self) -> Result<AgentClient, AgentError> {
        AgentClient::new(&self.node.driver_internal_info.agent, &self.services.settings.agent)
    }

    /// Stores the record.
    pub(crate) async fn save(&mut self) -> Result<(), Error> {
        self.node.updated_at = OffsetDateTime::now_utc();
        Ok(self.services.store.save(&self.node).await?)
    }

    /// Moves the node to the state that `event` leads to, and stores it.
    pub(crate) async fn apply(&mut self, event: Event) -> Result<(), Error> {
        if !self.node.apply(event) {
            return Err(Error::not_allowed(&self.node, event));
        }
        tracing::info!(node = %self.node.name, state = %self.node.provision_state, "new state");
        self.save().await
    }

    /// Records what happened.
    pub(crate) fn emit(&self, kind: EventKind) {
        self.services.events.push(self.node.uuid, kind);
    }

    /// Records what happened unless the operation has such an event already.
    pub(crate) fn emit_once(&self, kind: EventKind) {
        self.services.events.push_once(self.node.uuid, kind);
    }

    /// Forgets the agent: its memory is gone or about to go (contract 2.10).
    pub(crate) fn drop_agent(&mut self) {
        self.node.driver_internal_info.agent = AgentSession::default();
    }

    /// Powers the machine off. The agent is forgotten before, so that no late heartbeat of it is
    /// taken for one of the next boot (contract 13.6).
    pub(crate) async fn power_off(&mut self) -> Result<(), Error> {
        self.drop_agent();
        self.save().await?;
        self.power.power_off(&self.node).await?;
        self.node.power_state = Some(PowerState::Off);
        self.save().await
    }

    /// Powers the machine on, to start `boot` where that is given.
    pub(crate) async fn power_on(&mut self, boot: Option<&Boot>) -> Result<(), Error> {
        if let Some(boot) = boot {
            self.power.set_boot(&self.node, boot).await?;
        }
        self.power.power_on(&self.node).await?;
        self.node.power_state = Some(PowerState::On);
        self.save().await
    }

    /// Ends the operation as failed: the machine is off, the agent forgotten, and `last_error`
    /// written once, with the transition (lesson F64).
    pub(crate) async fn fail(&mut self, reason: &str) {
        let mut text = reason.to_owned();
        if let Err(error) = self.power_off().await {
            text = format!("{text} (and then the machine could not be powered off: {error})");
        }
        self.end_plan();
        self.node.set_last_error(&text);
        tracing::error!(node = %self.node.name, "{text}");
        if let Err(error) = self.apply(Event::Fail).await {
            tracing::error!(node = %self.node.name, "the failure cannot be recorded: {error}");
        }
        self.emit(EventKind::Failed { error: self.node.last_error.clone().unwrap_or_default() });
    }

    /// Forgets the plan of the operation.
    pub(crate) fn end_plan(&mut self) {
        self.node.deploy_step = None;
        let notes = &mut self.node.driver_internal_info;
        notes.deploy_steps.clear();
        notes.deploy_step_index = None;
        notes.skip_current_deploy_step = None;
    }
}
