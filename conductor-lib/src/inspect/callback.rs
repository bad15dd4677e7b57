//! A ramdisk posts what it saw of its machine: which node is it, and does that wait for it? (section 8.5)
//!
//! It need not prove who it is, so what it posts counts only while its node waits, and counts once. Whoever is refused
//! is told nothing else than that, so that nobody learns which addresses exist (pitfall 13.19).

use super::bmc_addresses;
use super::report::Report;
use crate::conductor::Conductor;
use crate::error::Error;
use crate::lookup::LookupAnswer;
use crate::model::{Event, ProvisionState, Verb};
use crate::store::{ConfigDrive, Filter, NodeColumn, Record, Selection, StoreError};
use crate::task::Task;
use uuid::Uuid;

impl Conductor {
    /// Takes what a ramdisk posts, and goes on with the inspection in the background. With `with_token` the agent gets
    /// its token, as by a lookup.
    ///
    /// # Errors
    ///
    /// [`Error::LookupFailed`] for unknown machines, ambiguous ones and nodes that wait for no ramdisk alike;
    /// [`StoreError::Held`] when the node is worked on, so that it is to be posted again.
    pub async fn continue_inspection(
        &self,
        report: Report,
        node_uuid: Option<Uuid>,
        with_token: bool,
    ) -> Result<LookupAnswer, Error> {
        let seen = self.inspected(&report, node_uuid).await?;
        if !may_post(&seen) {
            return Err(Error::LookupFailed);
        }
        let mut task = Task::try_acquire(self.services(), seen.node.uuid).await?;
        match task.node.provision_state {
            ProvisionState::InspectWait => {}
            ProvisionState::Inspecting => return Err(held(&seen).into()),
            _ => return Err(Error::LookupFailed),
        }
        task.enter(Event::Resume)?;
        task.receive_inspection(report.data);
        let token = with_token.then(|| task.issue_token());
        let node = task.shown();
        self.order(task, Verb::ContinueInspection, ConfigDrive::Keep).await?;
        Ok(LookupAnswer { node, token })
    }

    /// The node of a machine: by its identity where the machine knows it, else by its network cards, else by its BMC.
    /// What is known of it must not speak against that.
    async fn inspected(&self, report: &Report, node_uuid: Option<Uuid>) -> Result<Record, Error> {
        let by_address = self.store().owners(&report.addresses).await?;
        let by_bmc = self.inspected_at(report).await?;
        let known = match (node_uuid, &by_address[..], &by_bmc[..]) {
            (Some(uuid), ..) => uuid,
            (None, [one], _) | (None, [], [one]) => *one,
            (None, ..) => return Err(Error::LookupFailed),
        };
        let contradicts = |found: &[Uuid]| !found.is_empty() && !found.contains(&known);
        if by_address.iter().any(|owner| *owner != known) || contradicts(&by_bmc) {
            tracing::warn!(node = %known, "what a ramdisk posted has addresses of other nodes, and is refused");
            return Err(Error::LookupFailed);
        }
        self.store().get(known).await?.ok_or(Error::LookupFailed)
    }

    /// The nodes that wait for a ramdisk and whose BMC has one of the addresses of the report.
    async fn inspected_at(&self, report: &Report) -> Result<Vec<Uuid>, Error> {
        if report.bmc_addresses.is_empty() {
            return Ok(Vec::new());
        }
        let state = ProvisionState::InspectWait.as_str().to_owned();
        let waiting = Filter::IsOneOf(NodeColumn::PROVISION_STATE, vec![state]);
        let selection = Selection { filters: vec![waiting], ..Selection::first(u32::MAX) };
        let nodes = self.store().records(&selection).await?.into_iter().map(|record| record.node);
        let found = nodes.filter(|node| bmc_addresses::is_at(node, &report.bmc_addresses));
        Ok(found.map(|node| node.uuid).collect())
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
