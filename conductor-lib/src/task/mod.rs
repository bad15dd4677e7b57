//! A task: a node under its lease, with the means to change it.

pub(crate) mod agent_steps;
mod boot;
mod boot_fallback;
mod erasing;
mod fast_track;
mod history;
mod in_band_power;
mod inspection;
mod last_words;
mod networks;
mod power;
pub(crate) mod power_reading;
pub(crate) mod ramdisk;
mod reservation;

use crate::agent::AgentClient;
use crate::error::Error;
use crate::evidence::events::EventKind;
use crate::heartbeat::SessionEnd;
use crate::model::{AgentSession, Event, Node, Order, Port};
use crate::services::Services;
use crate::settings::Settings;
use crate::store::{BootTraceChange, Change, ConfigDrive, OrderChange, Record, SessionChange, StoreError};
pub(crate) use boot_fallback::can_fall_back;
use erasing::UnsavedCertificates;
pub(crate) use fast_track::Stayed;
use inspection::UnsavedInspection;
use last_words::UnsavedLastWords;
pub use networks::NetworkChange;
use reservation::{End, Reservation};
use std::sync::Arc;
use uuid::Uuid;

/// A node that nobody else can change until this ends: what interfaces get that work with an agent.
///
/// What is done to the machine is done by the node's own interfaces, and no later than its lease lasts. What is changed
/// of the node counts once it is saved, as it is at the end of each step.
pub struct Task {
    /// The record.
    pub node: Node,
    /// What is known of the agent; changes count once saved.
    pub(crate) session: AgentSession,
    /// What is ordered; changes count once saved.
    pub(crate) order: Option<Order>,
    /// What all tasks share.
    pub(crate) services: Arc<Services>,
    /// Whether a task of this process left the node in the middle of its work.
    pub(crate) was_left: bool,
    /// Whether the machine stayed on that was to go off, and is reset, or rebooted by its agent, when it is to be on.
    resets_when_on: bool,
    reservation: Reservation,
    /// The record and the order as they are stored; apart, since a task is moved much.
    stored: Box<(Node, Option<Order>)>,
    /// How much of the session is to be saved.
    unsaved: Unsaved,
    /// What of an inspection is to be saved.
    inspection: UnsavedInspection,
    /// What of certificates of erasure is to be saved.
    certificates: UnsavedCertificates,
    /// What of the trace of a boot is to be saved.
    boot_trace: BootTraceChange,
    /// What of the last words of the machine is to be saved.
    last_words: UnsavedLastWords,
}

/// How much of a session is to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsaved {
    Nothing,
    Learned,
    All,
}

impl Task {
    /// Takes the lease of a node, at once or not at all.
    pub(crate) async fn try_acquire(services: &Arc<Services>, uuid: Uuid) -> Result<Self, Error> {
        let (reservation, record, was_left) = Reservation::take(services, uuid).await?;
        Ok(Self::of(services, reservation, record, was_left))
    }

    /// Goes on with a node that a task of this process left, if one did and nobody else took it meanwhile.
    pub(crate) async fn pick_up(services: &Arc<Services>, uuid: Uuid) -> Result<Option<Self>, Error> {
        let left = Reservation::pick_up(services, uuid).await?;
        Ok(left.map(|(reservation, record)| Self::of(services, reservation, record, true)))
    }

    fn of(services: &Arc<Services>, reservation: Reservation, record: Record, was_left: bool) -> Self {
        Self {
            stored: Box::new((record.node.clone(), record.order)),
            node: record.node,
            session: record.session,
            order: record.order,
            services: Arc::clone(services),
            was_left,
            resets_when_on: false,
            reservation,
            unsaved: Unsaved::Nothing,
            inspection: UnsavedInspection::Nothing,
            certificates: UnsavedCertificates::default(),
            boot_trace: BootTraceChange::Keep,
            last_words: UnsavedLastWords::Nothing,
        }
    }

    /// Takes the lease of a node for an operator, with some patience.
    pub(crate) async fn acquire(services: &Arc<Services>, id: &str) -> Result<Self, Error> {
        let node = services.find(id).await?.node;
        for _ in 1..services.settings.node_locked_attempts {
            match Self::try_acquire(services, node.uuid).await {
                Err(Error::Store(StoreError::Held { .. })) => {
                    tokio::time::sleep(services.settings.node_locked_pause).await;
                }
                other => return other,
            }
        }
        Self::try_acquire(services, node.uuid).await
    }

    /// Makes sure that the lease lasts for a while yet, before something is done outside of the record.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the lease is lost: somebody else works on the node.
    pub async fn hold(&self) -> Result<(), Error> {
        self.reservation.hold().await
    }

    /// A client for the agent that runs now. The lease lasts while it is used.
    ///
    /// # Errors
    ///
    /// [`Error::Agent`] when none called since the machine was started, [`Error::Store`] when the lease is lost.
    pub async fn agent(&self) -> Result<AgentClient, Error> {
        self.reservation.hold().await?;
        Ok(AgentClient::new(&self.session, &self.services.settings.agent)?)
    }

    /// What is known of the agent that runs now.
    pub fn session(&self) -> &AgentSession {
        &self.session
    }

    /// Times and addresses that the conductor works with.
    pub fn settings(&self) -> &Settings {
        &self.services.settings
    }

    /// The config drive of the node's instance, as base64 of gzip.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn config_drive(&self) -> Result<Option<String>, Error> {
        Ok(self.services.store.config_drive(self.node.uuid).await?)
    }

    /// The record as the agent may see it.
    pub fn shown(&self) -> Node {
        self.node.shown_to_agent(&self.session)
    }

    /// The ports as the agent may see them.
    pub(crate) fn shown_ports(&self) -> Vec<Port> {
        self.node.ports.iter().map(Port::shown).collect()
    }

    /// Stores what changed.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn save(&mut self) -> Result<(), Error> {
        self.write(ConfigDrive::Keep, false).await
    }

    /// Stores what changed, and the config drive.
    pub(crate) async fn save_with(&mut self, config_drive: ConfigDrive<'_>) -> Result<(), Error> {
        self.write(config_drive, false).await
    }

    /// Stores what changed, and leaves the node to others.
    pub(crate) async fn finish(self) -> Result<(), Error> {
        self.finish_with(ConfigDrive::Keep).await
    }

    /// Stores what changed, and the config drive, and leaves the node to others.
    pub(crate) async fn finish_with(mut self, config_drive: ConfigDrive<'_>) -> Result<(), Error> {
        self.write(config_drive, true).await
    }

    /// Leaves the node to others. What changed and was not saved never was.
    pub(crate) async fn leave(mut self) -> Result<(), Error> {
        self.services.store.release(&self.reservation.lease).await?;
        self.reservation.end = End::IsOver;
        Ok(())
    }

    async fn write(&mut self, config_drive: ConfigDrive<'_>, ends_lease: bool) -> Result<(), Error> {
        self.node.updated_at = self.services.now();
        let session = match self.unsaved {
            Unsaved::Nothing => SessionChange::Keep,
            Unsaved::Learned => SessionChange::Learned(&self.session),
            Unsaved::All => SessionChange::Replace(&self.session),
        };
        let order = match self.order {
            order if order == self.stored.1 => OrderChange::Keep,
            Some(order) => OrderChange::Put(order),
            None => OrderChange::Remove,
        };
        let (inspection, history) = (self.inspection.change(), self.happened());
        let change = Change {
            node: &self.node,
            session,
            config_drive,
            order,
            inspection,
            certificates: self.certificates.change(),
            boot_trace: self.boot_trace,
            last_words: self.last_words.change(),
            history: &history,
            ends_lease,
        };
        // Should this be cut off, nobody here knows what is stored.
        self.reservation.end = End::Leave;
        self.services.store.write(&self.reservation.lease, &change).await?;
        self.unsaved = Unsaved::Nothing;
        *self.stored = (self.node.clone(), self.order);
        self.inspection = UnsavedInspection::Nothing;
        self.certificates = UnsavedCertificates::default();
        self.boot_trace = BootTraceChange::Keep;
        self.last_words = UnsavedLastWords::Nothing;
        self.reservation.end = match ends_lease {
            true => End::IsOver,
            false => End::when(&self.node, self.order.as_ref()),
        };
        Ok(())
    }

    /// Forgets the node itself.
    pub(crate) async fn delete(mut self) -> Result<(), Error> {
        self.services.store.delete(&self.reservation.lease).await?;
        self.reservation.end = End::IsOver;
        Ok(())
    }

    /// Moves the node to the state that `event` leads to, which counts once saved.
    pub(crate) fn enter(&mut self, event: Event) -> Result<(), Error> {
        if !self.node.apply(event, self.services.now()) {
            return Err(Error::not_allowed(&self.node, event));
        }
        tracing::info!(node = %self.node.label(), state = %self.node.provision_state, "new state");
        Ok(())
    }

    /// Records what happened.
    pub fn emit(&self, kind: EventKind) {
        self.services.events.push(self.node.uuid, kind);
    }

    /// Records what happened unless the operation has such an event already.
    pub fn emit_once(&self, kind: EventKind) {
        self.services.events.push_once(self.node.uuid, kind);
    }

    /// Takes note of what the agent told when it was asked.
    pub(crate) fn learn(&mut self, change: impl FnOnce(&mut AgentSession)) {
        change(&mut self.session);
        if self.unsaved == Unsaved::Nothing {
            self.unsaved = Unsaved::Learned;
        }
    }

    /// Forgets of the agent what ends with `end`. Of one that stays nothing ends, also not what it told since the
    /// record was read (lesson F40). That everything ends counts also where nothing was known: it may have called
    /// since.
    pub(crate) fn end_session(&mut self, end: SessionEnd) {
        if end == (SessionEnd::Operation { keeps_agent: true }) {
            return;
        }
        self.session = end.after(&self.session);
        // What an agent exports ends with it.
        self.node.driver_internal_info.disk_export = None;
        self.replace_session();
    }

    /// The session counts as it is here, whatever was stored meanwhile.
    fn replace_session(&mut self) {
        self.unsaved = Unsaved::All;
    }
}
