//! What a conductor lends a task beside the node.

use super::change::Change;
use super::event::EventKind;
use crate::error::Error;
use crate::hardware_type::Hardware;
use crate::model::{AgentSession, MacAddress, Node, PlannedStep, PortGroup, StepKind};
use crate::settings::Settings;
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a conductor lends the task of one node: its lease, its records, and the conductor's settings and interfaces.
///
/// Every method may end with [`Error::Host`] where the conductor's own records fail it, which fails no step.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Times and addresses that the conductor works with.
    fn settings(&self) -> &Settings;

    /// The interfaces of all nodes.
    fn hardware(&self) -> &Hardware;

    /// The time now.
    fn now(&self) -> OffsetDateTime;

    /// Records what happened.
    fn emit(&self, kind: EventKind);

    /// Records what happened unless the operation has such an event already.
    fn emit_once(&self, kind: EventKind);

    /// Has the conductor's records confirm the lease, before something is done outside of the record.
    ///
    /// # Errors
    ///
    /// The lease is lost: another conductor works on the node.
    async fn hold(&self) -> Result<(), Error>;

    /// Waits until the lease is known to be lost. Who acts on the machine ends then.
    async fn lost(&self) -> Error;

    /// Stores what changed of the node and its agent.
    ///
    /// # Errors
    ///
    /// It is not stored.
    async fn save(&mut self, change: Change<'_>) -> Result<(), Error>;

    /// The config drive of the node's instance, as base64 of gzip.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    async fn config_drive(&self) -> Result<Option<String>, Error>;

    /// The groups of the node's ports.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    async fn port_groups(&self) -> Result<Vec<PortGroup>, Error>;

    /// The nodes that own any of these addresses, each once.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, Error>;

    /// The order of the operator is carried out, which counts once saved.
    fn end_order(&mut self);

    /// Forgets how far an earlier boot of the machine came.
    fn forget_boot(&self);

    /// Forgets why an earlier boot of the machine failed, which counts once saved.
    fn forget_diagnosis(&mut self);

    /// Keeps what a step proves that the agent has run, such as certificates of erasure, which counts once saved.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a proof that proves something else: the step has failed.
    fn keep_proof(
        &mut self,
        node: &Node,
        agent: &AgentSession,
        kind: StepKind,
        step: &PlannedStep,
        result: &CommandResult,
    ) -> Result<(), Error>;

    /// Marks the node with what the proofs of its cleaning say of its disks, which counts once saved.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    async fn mark_erasure(&mut self, node: &mut Node) -> Result<(), Error>;

    /// Keeps the logs of the ramdisk that the node's operation runs in, where they are wanted after a success or when it
    /// `has_failed`. Errors go to the log of the conductor.
    async fn collect_logs(&self, node: &Node, agent: &AgentSession, has_failed: bool);

    /// As [`Self::collect_logs`], of the logs that the ramdisk has posted for an inspection.
    async fn collect_posted_logs(&self, node: &Node, has_failed: bool);
}
