//! What a task may reach beside its node.

use crate::clock::Clock;
use crate::error::Error;
use crate::evidence::boot_trace::BootTrace;
use crate::evidence::boot_trace::journal::BootJournal;
use crate::evidence::events::EventLog;
use crate::hardware_type::Hardware;
use crate::heartbeat::fast_track::{self, Candidate};
use crate::model::Node;
use crate::settings::Settings;
use crate::store::{Documents, Filter, Lease, NodeColumn, Outline, Record, Selection, Store, Terms};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;
use uuid::Uuid;

/// Data and connections that all tasks share.
pub(crate) struct Services {
    /// Times and addresses in use.
    pub(crate) settings: Settings,
    /// The records of all nodes.
    pub(crate) store: Arc<dyn Store>,
    /// Control of machines.
    pub(crate) hardware: Hardware,
    /// What happened to the nodes.
    pub(crate) events: EventLog,
    /// What machines load that boot from the network, until that is in the store.
    pub(crate) boot_journal: BootJournal,
    /// Leases that were left.
    pub(crate) left_leases: Mutex<HashMap<Uuid, Lease>>,
    /// The time of day.
    pub(crate) clock: Arc<dyn Clock>,
}

impl Services {
    /// The record with this name or identity, secrets included.
    pub(crate) async fn find(&self, id: &str) -> Result<Record, Error> {
        let found = match id.parse::<Uuid>() {
            Ok(uuid) => self.store.get(uuid).await?,
            Err(_) => self.store.by_name(id).await?,
        };
        found.ok_or_else(|| Error::NodeNotFound(id.to_owned()))
    }

    /// The node with this name or identity, as it is kept.
    pub(crate) async fn document(&self, id: &str) -> Result<(Outline, Documents), Error> {
        let filter = match id.parse::<Uuid>() {
            Ok(uuid) => Filter::IsOneOf(NodeColumn::UUID, vec![uuid.to_string()]),
            Err(_) => Filter::IsOneOf(NodeColumn::NAME, vec![id.to_owned()]),
        };
        let found = self.store.documents(&Selection { filters: vec![filter], ..Selection::first(1) }).await?;
        found.into_iter().next().ok_or_else(|| Error::NodeNotFound(id.to_owned()))
    }

    /// Writes down how far machines came that boot from the network.
    pub(crate) async fn write_boot_journal(&self) -> Result<(), Error> {
        let reached = self.boot_journal.take();
        match reached.is_empty() {
            true => Ok(()),
            false => Ok(self.store.reach_boot_stages(&reached).await?),
        }
    }

    /// How far the machine of a node came, in words; nothing when it is not to boot from the network, or asked for nothing.
    pub(crate) async fn boot_trace_told(&self, node: Uuid) -> Result<Option<String>, Error> {
        Ok(self.boot_trace(node).await?.and_then(|trace| trace.told(self.now())))
    }

    /// How far the machine of a node came; nothing when it is not to boot from the network.
    pub(crate) async fn boot_trace(&self, node: Uuid) -> Result<Option<BootTrace>, Error> {
        self.write_boot_journal().await?;
        Ok(self.store.boot_trace(node).await?)
    }

    /// The ramdisk API as the machine of a node reaches it.
    pub(crate) fn callback_url(&self, node: &Node) -> String {
        let url = &self.settings.api_url;
        let boot = self.hardware.boot(node).ok().flatten();
        boot.map_or_else(|| url.clone(), |boot| boot.boot.callback_url(url))
    }

    /// Whether the agent of a node may stay between operations. Where nothing else can switch the machine, it stays
    /// also after one that failed: without it there would be no other.
    pub(crate) fn is_fast_track_able(&self, node: &Node) -> bool {
        let (storage, power) = (self.hardware.storage(node), self.hardware.power(node));
        let has_only_agent = power.is_ok_and(|power| power.in_band().is_some());
        fast_track::is_able(&Candidate {
            is_enabled: self.settings.has_fast_track(node).unwrap_or(false),
            writes_image: storage.is_ok_and(|storage| storage.should_write_image(node)),
            has_failed: node.last_error.is_some() && !has_only_agent,
            awaits_firmware: node.driver_internal_info.awaits_firmware(),
            state: node.provision_state,
        })
    }

    /// Nodes whose lease a task of this process left.
    pub(crate) fn left(&self) -> Vec<Uuid> {
        self.left_leases().keys().copied().collect()
    }

    /// Leases of nodes that are worked on, or may be, whose task ended without a word: its client went away, it
    /// panicked, or the store failed. Whoever takes up the node in this process has them.
    pub(crate) fn left_leases(&self) -> MutexGuard<'_, HashMap<Uuid, Lease>> {
        self.left_leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time now.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// A lease for this conductor, from now on.
    pub(crate) fn terms(&self) -> Terms<'_> {
        let now = self.now();
        Terms { holder: &self.settings.conductor_name, now, expires_at: now + self.settings.lease }
    }
}
