//! A ramdisk posts what it saw of its machine: which node is it, and does that wait for it? (section 8.5)
//!
//! What it posts counts only while its node waits, and counts once. It proves to be the machine of the node by the token
//! that its medium has, or by having loaded what the node boots, where there is one of the two. A client that is refused is
//! told nothing else than that, so that nobody learns which addresses exist (pitfall 13.19).

use crate::conductor::Ramdisks;
use crate::conductor::agent::lookup::LookupAnswer;
use crate::error::Error;
use crate::evidence::boot_trace::BootStage;
use crate::explain::ramdisk_logs;
use crate::lease::HeldTask;
use crate::records::Verb;
use crate::store::{ConfigDrive, Record, StoreError};
use farrier_conductor::agent::token::is_same;
use farrier_conductor::inventory::{Claim, Report};
use farrier_conductor::model::{Event, ProvisionState};
use uuid::Uuid;

impl Ramdisks {
    /// Takes what a ramdisk posts, and continues the inspection in the background. With `with_token` the agent gets
    /// its token, as by a lookup.
    ///
    /// # Errors
    ///
    /// [`Error::LookupFailed`] for unknown machines, ambiguous ones and nodes that wait for no ramdisk alike;
    /// [`StoreError::Held`] when the node is worked on, so that it must be posted again.
    pub async fn continue_inspection(
        &self,
        report: Report,
        claim: &Claim,
        with_token: bool,
    ) -> Result<LookupAnswer, Error> {
        let seen = self.awaits_report(claim).await?;
        let mut task = HeldTask::try_acquire(self.0.services(), seen.node.uuid).await?;
        match task.node.provision_state {
            ProvisionState::InspectWait => {}
            ProvisionState::Inspecting => return Err(held(&seen).into()),
            _ => return Err(Error::LookupFailed),
        }
        task.enter(Event::Resume)?;
        ramdisk_logs::receive(self.0.services(), &task.node, report.logs.as_deref()).await;
        task.receive_inspection(report.data);
        let token = with_token.then(|| task.issue_token());
        let node = task.shown();
        self.0.write_order(task, Verb::ContinueInspection, ConfigDrive::Keep).await?;
        Ok(LookupAnswer { node, token })
    }

    /// The node that waits for a report, before more of that is read than the claim.
    ///
    /// # Errors
    ///
    /// [`Error::LookupFailed`] as [`Self::continue_inspection`], [`Error::Store`].
    pub async fn awaits_report(&self, claim: &Claim) -> Result<Record, Error> {
        let seen = self.inspected(claim).await?;
        let is_proven = may_post(&seen) && self.is_proven(&seen, claim).await?;
        if is_proven { Ok(seen) } else { Err(Error::LookupFailed) }
    }

    /// Whether a claim is proven, where there is something to prove it by. A token that was sent is the right one.
    /// Where only the medium of a machine has a token, it is needed. Where firmware asks this conductor what to boot,
    /// somebody has asked since the boot was ordered.
    async fn is_proven(&self, seen: &Record, claim: &Claim) -> Result<bool, Error> {
        let Record { node, session, .. } = seen;
        let is_proven = match (&session.agent_secret_token, &claim.token) {
            (Some(known), Some(sent)) => return Ok(is_same(known, sent)),
            (None, Some(_)) => false,
            (Some(_), None) if session.agent_secret_token_pregenerated => false,
            (_, None) if node.driver_internal_info.ramdisk_parameters.is_none() => true,
            (_, None) => {
                let trace = self.0.services().boot_trace(node.uuid).await?;
                trace.is_none_or(|trace| trace.marks().iter().any(|mark| mark.stage >= BootStage::Script))
            }
        };
        if !is_proven {
            tracing::warn!(node = %node.label(), "the conductor refuses an inspection that a ramdisk posted: nothing \
                proves that it is of this node");
        }
        Ok(is_proven)
    }

    /// The node of a machine: by its identity where the machine knows it, else by its network cards, else by its BMC.
    /// What is known of it must not speak against that.
    async fn inspected(&self, claim: &Claim) -> Result<Record, Error> {
        let by_address = self.0.store().owners(&claim.addresses).await?;
        let by_bmc = self.inspected_at(claim).await?;
        let known = match (claim.node_uuid, &by_address[..], &by_bmc[..]) {
            (Some(uuid), ..) => uuid,
            (None, [one], _) | (None, [], [one]) => *one,
            (None, ..) => return Err(Error::LookupFailed),
        };
        let contradicts = |found: &[Uuid]| !found.is_empty() && !found.contains(&known);
        if by_address.iter().any(|owner| *owner != known) || contradicts(&by_bmc) {
            tracing::warn!(node = %known, "the conductor refuses an inspection that a ramdisk posted: it has \
                addresses of other nodes");
            return Err(Error::LookupFailed);
        }
        self.0.store().get(known).await?.ok_or(Error::LookupFailed)
    }

    /// The nodes that wait for a ramdisk and whose BMC has one of the addresses of the report.
    pub(crate) async fn inspected_at(&self, claim: &Claim) -> Result<Vec<Uuid>, Error> {
        Ok(self.0.store().at_bmc(&claim.bmc_addresses).await?)
    }
}

/// Whether a node waits for its ramdisk, or is about to: a machine may post as soon as it is on.
fn may_post(seen: &Record) -> bool {
    match seen.node.provision_state {
        ProvisionState::InspectWait => true,
        ProvisionState::Inspecting => seen.order.is_some_and(|order| order.verb == Verb::Inspect),
        _ => false,
    }
}

fn held(seen: &Record) -> StoreError {
    let holder = seen.node.reservation.clone().unwrap_or_else(|| "another request".to_owned());
    StoreError::Held { node: seen.node.uuid, holder }
}
