//! Auto-discovery: a machine that belongs to no node and posts an inventory becomes a node in `enroll` (Ironic's
//! `[auto_discovery]`).
//!
//! Every host that reaches the ramdisk API can post an inventory, so discovery is off unless a driver is set, and only so
//! many nodes may be in `enroll`. The hooks look at the inventory before there is a node: one that a hook refuses, or of
//! which no network card becomes a port, adds none. The store holds each address once, so a machine that posts twice is
//! one node. An operator gives the node its `driver_info`, and manages it.

use crate::conductor::Ramdisks;
use crate::conductor::agent::lookup::LookupAnswer;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::store::{Filter, NodeColumn, Selection};
use farrier_conductor::inventory::hooks;
use farrier_conductor::inventory::{Claim, Report};
use farrier_conductor::model::{AgentSession, InitialState, NewNode, Node, ProvisionState};
use serde_json::json;

/// Most nodes in `enroll` beside which another one is discovered.
const MOST_IN_ENROLL: u32 = 256;

/// Marks the inventory of a machine that no operator enrolled (ironic-inspector's key, which Ironic keeps).
const AUTO_DISCOVERED: &str = "auto_discovered";

impl Ramdisks {
    /// Whether what a ramdisk posts may add a node: discovery is on, the ramdisk names no node, its network cards belong to
    /// none, and its BMC to none that waits for a report.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn may_discover(&self, claim: &Claim) -> Result<bool, Error> {
        if self.0.settings().inspection.discovery_driver.is_none() || claim.node_uuid.is_some() {
            return Ok(false);
        }
        let is_known = !self.0.store().owners(&claim.addresses).await?.is_empty()
            || !self.inspected_at(claim).await?.is_empty();
        Ok(!is_known && self.has_room_in_enroll().await?)
    }

    /// Enrols the machine of a report as a node of the driver that is set, with what the hooks make of its inventory. The
    /// agent gets no token: a node in `enroll` has no agent.
    ///
    /// # Errors
    ///
    /// [`Error::LookupFailed`] when it cannot become a node, why is in the log; [`Error::Store`].
    pub async fn discover(&self, report: Report) -> Result<LookupAnswer, Error> {
        let settings = &self.0.settings().inspection;
        let driver = settings.discovery_driver.clone().ok_or(Error::LookupFailed)?;
        let new = NewNode { driver, initial_state: InitialState::Enroll, ..NewNode::default() };
        let mut data = report.data;
        data.plugin_data.insert(AUTO_DISCOVERED.to_owned(), json!(true));
        let (node, data) = hooks::run(Node::enrol(new, self.0.now()), data, settings).map_err(|refused| {
            not_enrolled(&format!("inspection hook {}: {}", refused.hook, refused.reason))
        })?;
        if node.ports.is_empty() {
            return Err(not_enrolled("none of its network cards becomes a port"));
        }
        let node = self.0.enrol(node).await.map_err(|error| not_enrolled(&error.to_string()))?;
        tracing::info!(node = %node.uuid, driver = %node.driver, "an unknown machine is enrolled");
        let mut task = HeldTask::try_acquire(self.0.services(), node.uuid).await?;
        task.note_inspection(data);
        task.finish().await?;
        Ok(LookupAnswer { node: node.shown(&AgentSession::default()), token: None })
    }

    async fn has_room_in_enroll(&self) -> Result<bool, Error> {
        let state = ProvisionState::Enroll.as_str().to_owned();
        let enrolled = Filter::IsOneOf(NodeColumn::PROVISION_STATE, vec![state]);
        let selection = Selection { filters: vec![enrolled], ..Selection::first(MOST_IN_ENROLL) };
        let has_room = self.0.store().identities(&selection).await?.len() < MOST_IN_ENROLL as usize;
        if !has_room {
            tracing::warn!(
                "{MOST_IN_ENROLL} nodes are in enroll, and no other machine is discovered; manage or delete them"
            );
        }
        Ok(has_room)
    }
}

/// The ramdisk gets the answer that every unknown machine gets; the reason is in the log alone.
fn not_enrolled(reason: &str) -> Error {
    tracing::warn!("an unknown machine posted an inventory, and is not enrolled: {reason}");
    Error::LookupFailed
}
