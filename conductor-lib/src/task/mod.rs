//! A task: a node under its lease, with the means to change it.

pub mod act;
pub mod agent_steps;
mod boot;
mod boot_fallback;
pub mod change;
pub mod event;
mod fast_track;
pub mod host;
mod in_band_power;
mod inspection;
mod networks;
mod power;
pub mod power_reading;
pub mod ramdisk;

use crate::agent::AgentClient;
use crate::error::Error;
use crate::heartbeat::SessionEnd;
use crate::model::{AgentSession, Event, Node, Port};
use crate::settings::Settings;
pub use act::confirm_lease;
pub use boot::callback_url;
pub use boot_fallback::can_fall_back;
use change::{BootTraceChange, Change, SessionChange};
pub use event::EventKind;
pub use fast_track::{AgentReuse, is_fast_track_able};
pub use host::Host;
use inspection::UnsavedInspection;
pub use networks::NetworkChange;

/// A node that no one else can change until this ends: what interfaces get that work with an agent.
///
/// What is done to the machine is done by the node's own interfaces, and no later than its lease lasts. What is changed
/// of the node counts once it is saved, as it is at the end of each step. Interfaces take a `&mut Task`, whatever its
/// conductor is; a conductor makes one for its own [`Host`], and so does a test.
pub struct Task<H: Host + ?Sized = dyn Host> {
    /// The record.
    pub node: Node,
    /// What is known of the agent; changes count once saved.
    pub(crate) session: AgentSession,
    /// Whether the machine stays on that was to go off, and is reset, or rebooted by its agent, when it is to be on.
    resets_when_on: bool,
    /// How much of the session is to be saved.
    unsaved: Unsaved,
    /// What of an inspection is to be saved.
    inspection: UnsavedInspection,
    /// What of the trace of a boot is to be saved.
    boot_trace: BootTraceChange,
    /// What the conductor lends.
    pub(crate) host: H,
}

/// How much of a session is to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsaved {
    Nothing,
    Learned,
    All,
}

impl<H: Host> Task<H> {
    /// A task of a node as its record is, with what is known of its agent. Tests have one by
    /// [`testing::task`](crate::testing::task), whose host is in memory.
    pub fn new(node: Node, session: AgentSession, host: H) -> Self {
        Self {
            node,
            session,
            resets_when_on: false,
            unsaved: Unsaved::Nothing,
            inspection: UnsavedInspection::Nothing,
            boot_trace: BootTraceChange::Keep,
            host,
        }
    }
}

impl<H: Host + ?Sized> Task<H> {
    /// What its conductor lends it.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// What its conductor lends it.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// What changed since the last [`Self::mark_saved`], with the host that saves it.
    pub fn changes(&mut self) -> (Change<'_>, &mut H) {
        self.node.updated_at = self.host.now();
        let session = match self.unsaved {
            Unsaved::Nothing => SessionChange::Keep,
            Unsaved::Learned => SessionChange::Learned(&self.session),
            Unsaved::All => SessionChange::Replace(&self.session),
        };
        let inspection = self.inspection.change();
        let change = Change { node: &self.node, session, inspection, boot_trace: self.boot_trace };
        (change, &mut self.host)
    }

    /// What changed is saved.
    pub fn mark_saved(&mut self) {
        self.unsaved = Unsaved::Nothing;
        self.inspection = UnsavedInspection::Nothing;
        self.boot_trace = BootTraceChange::Keep;
    }
}

impl Task {
    /// Makes sure that the lease lasts for a while yet, before something is done outside of the record.
    ///
    /// # Errors
    ///
    /// [`Error::Host`] when the lease is lost: another conductor works on the node.
    pub async fn hold(&self) -> Result<(), Error> {
        self.host.hold().await
    }

    /// A client for the agent that runs now. The lease lasts while it is used.
    ///
    /// # Errors
    ///
    /// [`Error::Agent`] when none called since the machine was started, [`Error::Host`] when the lease is lost.
    pub async fn agent(&self) -> Result<AgentClient, Error> {
        self.hold().await?;
        Ok(AgentClient::new(&self.session, &self.settings().agent)?)
    }

    /// What is known of the agent that runs now.
    pub fn session(&self) -> &AgentSession {
        &self.session
    }

    /// Times and addresses that the conductor works with.
    pub fn settings(&self) -> &Settings {
        self.host.settings()
    }

    /// The config drive of the node's instance, as base64 of gzip.
    ///
    /// # Errors
    ///
    /// [`Error::Host`].
    pub async fn config_drive(&self) -> Result<Option<String>, Error> {
        self.host.config_drive().await
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
    /// [`Error::Host`].
    pub async fn save(&mut self) -> Result<(), Error> {
        let (change, host) = self.changes();
        host.save(change).await?;
        self.mark_saved();
        Ok(())
    }

    /// Moves the node to the state that `event` leads to, which counts once saved.
    pub fn enter(&mut self, event: Event) -> Result<(), Error> {
        if !self.node.apply(event, self.host.now()) {
            return Err(Error::not_allowed(&self.node, event));
        }
        tracing::info!(node = %self.node.label(), state = %self.node.provision_state, "new state");
        Ok(())
    }

    /// Records what happened.
    pub fn emit(&self, kind: EventKind) {
        self.host.emit(kind);
    }

    /// Records what happened unless the operation has such an event already.
    pub fn emit_once(&self, kind: EventKind) {
        self.host.emit_once(kind);
    }

    /// Keeps the logs of the ramdisk, where those of successful operations are wanted.
    pub async fn collect_logs(&self) {
        self.host.collect_logs(&self.node, &self.session, false).await;
    }

    /// Keeps the answer of the agent.
    pub fn learn(&mut self, change: impl FnOnce(&mut AgentSession)) {
        change(&mut self.session);
        if self.unsaved == Unsaved::Nothing {
            self.unsaved = Unsaved::Learned;
        }
    }

    /// Forgets of the agent what ends with `end`. Of one that stays nothing ends, also not its heartbeats since the
    /// record was read (lesson F40). That everything ends counts also where nothing was known: it may have called
    /// since.
    pub fn end_session(&mut self, end: SessionEnd) {
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
