//! What a task keeps of certificates of erasure.

use crate::evidence::erasing::{self, EraseCertificate, Expected, InspectedDisk};
use crate::services::Services;
use crate::store::CertificateChange;
use farrier_conductor::Error;
use farrier_conductor::model::{AgentSession, Erasure, Node, PlannedStep, StepKind};
use farrier_protocol::command::CommandResult;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// What of the certificates is to be saved.
#[derive(Debug, Default)]
pub(super) struct UnsavedCertificates {
    forgets: bool,
    new: Vec<EraseCertificate>,
}

impl UnsavedCertificates {
    pub(super) fn change(&self) -> CertificateChange<'_> {
        CertificateChange { forgets: self.forgets, new: &self.new }
    }

    /// Forgets those that are stored.
    pub(super) fn forget(&mut self) {
        *self = Self { forgets: true, new: Vec::new() };
    }

    /// Keeps the certificates of erasure that a step has produced. They must be signed by the agent that ran it; of one
    /// whose own certificate did not come with its heartbeat, nothing is kept.
    pub(super) fn keep(
        &mut self,
        node: &Node,
        agent: &AgentSession,
        kind: StepKind,
        step: &PlannedStep,
        result: &CommandResult,
        now: OffsetDateTime,
    ) -> Result<(), Error> {
        let is_of_erasing = step.interface == "deploy" && step.step.starts_with("erase_devices");
        let produced = result.command_result.as_ref().and_then(|value| value.get(format!("{kind}_result")));
        let (true, Some(Value::Object(produced))) = (is_of_erasing, produced) else { return Ok(()) };
        let agent = agent.agent_verify_ca.as_deref().and_then(erasing::fingerprint);
        let Some(agent) = agent else { return Ok(()) };
        let nonce = node.plan(kind).nonce.as_deref();
        let expected = Expected { node: node.uuid, step: &step.step, nonce, agent: &agent, now };
        let accepted = erasing::accept(produced, &expected);
        let refuse = |refused: erasing::Refused| Error::invalid("the agent's proof", refused.to_string());
        self.new.extend(accepted.map_err(refuse)?);
        Ok(())
    }

    /// Whether the disks are proven to be erased, by the certificates that were kept since the last were forgotten, and by
    /// the disks of the last inspection.
    pub(super) async fn mark(&self, services: &Services, node: Uuid) -> Result<Erasure, Error> {
        let mut certificates = match self.forgets {
            true => Vec::new(),
            false => services.store.certificates(node).await?,
        };
        certificates.extend(self.new.iter().cloned());
        let inspection = services.store.inspection(node).await?;
        let inspected = inspection.map(|found| InspectedDisk::of(&found.inventory)).unwrap_or_default();
        Ok(erasing::proven_by(&certificates, &inspected, services.now()))
    }
}
