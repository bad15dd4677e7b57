//! What a task may reach beside its node.

use crate::error::Error;
use crate::evidence::boot_trace::BootTrace;
use crate::evidence::boot_trace::journal::BootJournal;
use crate::evidence::events::EventLog;
use crate::evidence::state_times::StateTimes;
use crate::limits::Limits;
use crate::placement::open_consoles::OpenConsoles;
use crate::placement::own_leases::OwnLeases;
use crate::placement::{Place, Placement};
use crate::store::{Documents, Filter, NodeColumn, Outline, Record, Selection, Store, Terms};
use farrier_conductor::deploy::DeployInterface;
use farrier_conductor::hardware_type::Hardware;
use farrier_conductor::heartbeat::{self, Situation};
use farrier_conductor::in_band::{InspectInterface, RescueInterface};
use farrier_conductor::model::clock::Clock;
use farrier_conductor::model::{Node, PowerState};
use farrier_conductor::registry::Families;
use farrier_conductor::settings::Settings;
use farrier_conductor::task;
use farrier_conductor::task::power_reading::power_state;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use uuid::Uuid;

/// The time at which a lease is over that has ended, and none that has not.
pub(crate) const ENDED: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

/// How long a machine that is read has its slot. Most BMCs that are well answer within it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Machines that workers read at a time.
pub(crate) const POWER_SLOTS: usize = 32;

/// How far a conductor is from its start to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It takes orders, and carries them out.
    #[default]
    Runs,
    /// It takes no order and begins nothing; what is under way comes to its next pause.
    Drains,
    /// What is under way is cut off, for another conductor to go on with.
    Ends,
}

/// Data and connections that all tasks share.
pub(crate) struct Services {
    /// Times and addresses in use.
    pub(crate) settings: Settings,
    /// The records of all nodes.
    pub(crate) store: Arc<dyn Store>,
    /// Control of machines.
    pub(crate) hardware: Hardware,
    /// The interfaces of machines that work with tasks.
    pub(crate) families: Families,
    /// What happened to the nodes.
    pub(crate) events: EventLog,
    /// How long nodes stayed in their states.
    pub(crate) state_times: StateTimes,
    /// What machines load that boot from the network, until that is in the store.
    pub(crate) boot_journal: BootJournal,
    /// The leases that tasks of this process have.
    pub(crate) own_leases: OwnLeases,
    /// Slots of machines that workers read at a time.
    pub(crate) power_slots: Semaphore,
    /// Which conductor leads which node.
    pub(crate) placement: Placement,
    /// The consoles that this process has opened.
    pub(crate) consoles: OpenConsoles,
    /// How many operations are under way.
    pub(crate) limits: Limits,
    /// Whether this conductor runs, or stops.
    pub(crate) phase: watch::Sender<Phase>,
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
            false => {
                let written = self.store.reach_boot_stages(&reached).await;
                if written.is_err() {
                    self.boot_journal.put_back(reached);
                }
                Ok(written?)
            }
        }
    }

    /// How far the machine of a node came; nothing when the conductor serves nothing for its boot.
    pub(crate) async fn boot_trace(&self, node: Uuid) -> Result<Option<BootTrace>, Error> {
        self.write_boot_journal().await?;
        Ok(self.store.boot_trace(node).await?)
    }

    /// The ramdisk API as the machine of a node reaches it.
    pub(crate) fn callback_url(&self, node: &Node) -> String {
        task::callback_url(node, &self.hardware, &self.settings)
    }

    /// Whether the agent of a node may stay between operations.
    pub(crate) fn is_fast_track_able(&self, node: &Node) -> bool {
        task::is_fast_track_able(node, &self.hardware, &self.settings)
    }

    /// The situation of a node, which decides what a heartbeat of its agent sets off.
    pub(crate) fn situation<'a>(&self, record: &'a Record) -> Situation<'a> {
        let Record { node, session, .. } = record;
        let pauses = self.settings.allow_provisioning_in_maintenance;
        heartbeat::situation(node, session, self.is_fast_track_able(node), pauses)
    }

    /// The power state of a node's machine, as its driver reads it now.
    pub(crate) async fn power_state(&self, node: &Node) -> Result<PowerState, Error> {
        Ok(power_state(&self.hardware, node, self.settings.power_read_timeout).await?)
    }

    /// The same, with one of the slots by which the number of machines that are read at a time is limited. A BMC that does
    /// not answer soon gives the slot up, so that BMCs that hang keep no others from their turn.
    pub(crate) async fn power_state_in<S>(&self, slot: S, node: &Node) -> Result<PowerState, Error> {
        let mut reading = std::pin::pin!(self.power_state(node));
        match timeout(ANSWER_TIMEOUT, &mut reading).await {
            Ok(answer) => answer,
            Err(_) => {
                drop(slot);
                reading.await
            }
        }
    }

    /// The same, of a node that a worker waits for, as soon as a slot is free.
    pub(crate) async fn read_power(&self, node: &Node) -> Result<PowerState, Error> {
        // The semaphore is never closed.
        let slot = self.power_slots.acquire().await.ok();
        self.power_state_in(slot, node).await
    }

    /// The deploy interface of a node.
    pub(crate) fn deploy_interface(&self, node: &Node) -> Result<Arc<dyn DeployInterface>, Error> {
        Ok(self.families.deploy(node, &self.hardware.composition)?)
    }

    /// Puts the deploy interface into the record of a node whose own only chooses one.
    pub(crate) fn choose_deploy(&self, node: &mut Node) -> Result<(), Error> {
        Ok(self.families.choose_deploy(node, &self.hardware.composition)?)
    }

    /// The inspect interface of a node.
    pub(crate) fn inspect_interface(&self, node: &Node) -> Result<Arc<dyn InspectInterface>, Error> {
        Ok(self.families.inspect(node, &self.hardware.composition)?)
    }

    /// The rescue interface of a node.
    pub(crate) fn rescue_interface(&self, node: &Node) -> Result<Arc<dyn RescueInterface>, Error> {
        Ok(self.families.rescue(node, &self.hardware.composition)?)
    }

    /// Waits until this conductor has come to a phase.
    pub(crate) async fn reaches(&self, phase: Phase) {
        // The sender lives as long as this.
        drop(self.phase.subscribe().wait_for(|now| *now >= phase).await);
    }

    /// Whether this conductor begins nothing any more.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.phase.borrow() >= Phase::Drains
    }

    /// Whether this conductor leads a node.
    pub(crate) fn leads(&self, node: &Node) -> bool {
        self.placement.of(node) == Place::Here
    }

    /// The time now.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// A lease for this conductor, from now on. No clock ends the lease of another conductor: it is ended when it was seen
    /// unchanged for as long as a lease lasts ([`expired_leases`](crate::periodic)).
    pub(crate) fn terms(&self) -> Terms<'_> {
        let expires_at = self.now() + self.settings.lease;
        Terms { holder: &self.settings.conductor_name, now: ENDED, expires_at }
    }
}
