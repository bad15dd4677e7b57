//! A host in memory: what a conductor lends a task, without a store.

use crate::error::Error;
use crate::hardware_type::Hardware;
use crate::model::{AgentSession, MacAddress, Node, PlannedStep, PortGroup, StepKind};
use crate::settings::Settings;
use crate::task::change::Change;
use crate::task::{EventKind, Host};
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use std::mem::discriminant;
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;
use uuid::Uuid;

/// What a conductor lends a task, in memory. Its time stands still.
pub struct MemoryHost {
    /// The config drive of the instance, as base64 of gzip.
    pub config_drive: Option<String>,
    /// The groups of the node's ports.
    pub port_groups: Vec<PortGroup>,
    /// Why the lease is lost, if so: nothing can be done to the machine then, and nothing saved.
    pub lost: Option<String>,
    settings: Settings,
    hardware: Hardware,
    saved: Vec<Node>,
    events: Mutex<Vec<EventKind>>,
    has_order: bool,
}

/// The lease of the node is lost.
#[derive(Debug, thiserror::Error)]
#[error("the lease of the node is lost: {0}")]
struct Lost(String);

impl MemoryHost {
    /// A host with these settings and interfaces.
    pub fn new(settings: Settings, hardware: Hardware) -> Self {
        Self {
            config_drive: None,
            port_groups: Vec::new(),
            lost: None,
            settings,
            hardware,
            saved: Vec::new(),
            events: Mutex::default(),
            has_order: true,
        }
    }

    /// The node as it was each time that it was saved, the first first.
    pub fn saved(&self) -> &[Node] {
        &self.saved
    }

    /// What happened, the first first.
    pub fn events(&self) -> Vec<EventKind> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the operator's order is not carried out yet.
    pub fn has_order(&self) -> bool {
        self.has_order
    }

    fn check_lease(&self) -> Result<(), Error> {
        self.lost.as_ref().map_or(Ok(()), |reason| Err(Error::host(Lost(reason.clone()))))
    }
}

#[async_trait]
impl Host for MemoryHost {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH
    }

    fn emit(&self, kind: EventKind) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(kind);
    }

    fn emit_once(&self, kind: EventKind) {
        if !self.events().iter().any(|known| discriminant(known) == discriminant(&kind)) {
            self.emit(kind);
        }
    }

    async fn hold(&self) -> Result<(), Error> {
        self.check_lease()
    }

    async fn lost(&self) -> Error {
        match self.check_lease() {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    }

    async fn save(&mut self, change: Change<'_>) -> Result<(), Error> {
        self.check_lease()?;
        self.saved.push(change.node.clone());
        Ok(())
    }

    async fn config_drive(&self) -> Result<Option<String>, Error> {
        Ok(self.config_drive.clone())
    }

    async fn port_groups(&self) -> Result<Vec<PortGroup>, Error> {
        Ok(self.port_groups.clone())
    }

    /// The node's own ports belong to no other node.
    async fn owners(&self, _addresses: &[MacAddress]) -> Result<Vec<Uuid>, Error> {
        Ok(Vec::new())
    }

    fn end_order(&mut self) {
        self.has_order = false;
    }

    fn forget_boot(&self) {}

    fn forget_diagnosis(&mut self) {}

    fn keep_proof(
        &mut self,
        _node: &Node,
        _agent: &AgentSession,
        _kind: StepKind,
        _step: &PlannedStep,
        _result: &CommandResult,
    ) -> Result<(), Error> {
        Ok(())
    }

    async fn mark_erasure(&mut self, _node: &mut Node) -> Result<(), Error> {
        Ok(())
    }

    async fn collect_logs(&self, _node: &Node, _agent: &AgentSession, _has_failed: bool) {}

    async fn collect_posted_logs(&self, _node: &Node, _has_failed: bool) {}
}
