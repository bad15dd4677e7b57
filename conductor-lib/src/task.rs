//! A task: a node under its lock, with the means to change it.

use crate::conductor::Conductor;
use crate::error::Error;
use crate::events::EventKind;
use crate::interfaces::{Boot, PowerInterface};
use crate::model::{AgentSession, Event, Node, PowerState};
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::sync::OwnedMutexGuard;

/// A node that nobody else can change until this is dropped.
pub(crate) struct Task {
    /// The record; changes count once saved.
    pub(crate) node: Node,
    /// Who works on it.
    pub(crate) conductor: Conductor,
    /// Control of the machine.
    pub(crate) power: Arc<dyn PowerInterface>,
    _lock: OwnedMutexGuard<()>,
}

impl Task {
    pub(crate) fn new(
        node: Node,
        conductor: Conductor,
        power: Arc<dyn PowerInterface>,
        lock: OwnedMutexGuard<()>,
    ) -> Self {
        Self { node, conductor, power, _lock: lock }
    }

    /// Stores the record.
    pub(crate) async fn save(&mut self) -> Result<(), Error> {
        self.node.updated_at = OffsetDateTime::now_utc();
        Ok(self.conductor.store().save(&self.node).await?)
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
        self.conductor.events().push(self.node.uuid, kind);
    }

    /// Records what happened unless the operation has such an event already.
    pub(crate) fn emit_once(&self, kind: EventKind) {
        self.conductor.events().push_once(self.node.uuid, kind);
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
