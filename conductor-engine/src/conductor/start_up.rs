//! How a conductor begins and ends (section 12.3).

use crate::conductor::{Conductor, Inner};
use crate::error::Error;
use crate::lease::renew_while_used;
use crate::limits;
use crate::placement::{Place, renewal_pause};
use crate::services::{ENDED, Services};
use crate::store::{Filter, NodeColumn, Outline, Position, Selection};
use crate::workers::Workers;
use farrier_conductor::model::{InterfaceKind, Node};
use farrier_conductor::task::act::Call;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How many nodes are looked up at a time.
const OUTLINES: usize = 500;

/// How many records are read at a time.
const RECORDS: u32 = 200;

impl Conductor {
    /// What an earlier conductor of this name left unfinished is gone on with: that one, should it still run, can write
    /// nothing any more.
    pub(crate) async fn begin(services: Services) -> Result<Self, Error> {
        let services = Arc::new(services);
        services.placement.register(&*services.store, renewal_pause(&services.settings)).await?;
        services.store.expire_all(&services.settings.conductor_name).await?;
        tokio::spawn(renew_while_used(Arc::downgrade(&services)));
        let workers = Workers::new(Arc::clone(&services));
        let conductor = Self(Arc::new(Inner { services, workers }));
        conductor.restore_queues().await?;
        conductor.attend().await?;
        Ok(conductor)
    }

    /// Puts the operations that are not over into their queues, in the order in which they were ordered: what has begun is
    /// under way, also where another conductor began it.
    async fn restore_queues(&self) -> Result<(), Error> {
        let services = self.services();
        let states = limits::limited_states().map(|state| state.as_str().to_owned()).collect();
        let filters = vec![Filter::IsOneOf(NodeColumn::PROVISION_STATE, states)];
        let mut selection = Selection { filters, sort: NodeColumn::UUID, ..Selection::first(RECORDS) };
        let mut waiting = Vec::new();
        loop {
            let records = self.store().records(&selection).await?;
            let Some(last) = records.last() else { break };
            let uuid = last.node.uuid;
            selection.after = Some(Position { value: uuid.to_string().into(), uuid });
            for record in records.into_iter().filter(|record| services.leads(&record.node)) {
                match limits::has_begun(&record.node, record.order.as_ref()) {
                    true => {
                        services.limits.admits(&record.node, record.order.as_ref());
                    }
                    false => waiting.push(record),
                }
            }
        }
        waiting.sort_by_key(|record| record.order.map(|order| order.ordered_at));
        for record in waiting {
            services.limits.admits(&record.node, record.order.as_ref());
        }
        Ok(())
    }

    /// Takes no order any more, and waits for what is under way, for as long as
    /// [`graceful_shutdown_timeout`](farrier_conductor::Settings::graceful_shutdown_timeout). What takes longer is cut off. The
    /// leases are given back: another conductor, or the next process of this one, continues at once, and counts no attempt.
    /// Heartbeats are taken and machines served all the while, if [`Self::run`] is polled.
    pub async fn drain(&self) {
        self.workers().drain(self.settings().graceful_shutdown_timeout).await;
        self.give_back().await;
    }

    /// Ends the conductor. What is under way is cut off: [drain](Self::drain) it first. Drivers and consoles end last.
    pub async fn shut_down(&self) {
        self.workers().drain(Duration::ZERO).await;
        self.give_back().await;
        if let Err(error) = self.services().placement.leave(self.store()).await {
            tracing::warn!("others learn later that this conductor has ended: {error}");
        }
        for (_, power) in &self.services().hardware.interfaces.power.0 {
            power.shut_down().await;
        }
        for (_, console) in &self.services().hardware.interfaces.console.0 {
            console.shut_down().await;
        }
    }

    /// Gives the leases back that tasks have left.
    async fn give_back(&self) {
        let services = self.services();
        for node in services.own_leases.left() {
            if let Some(lease) = services.own_leases.claim_left(node) {
                if let Err(error) = services.store.release(&lease).await {
                    tracing::warn!(%node, "a lease is left to expire: {error}");
                }
                services.own_leases.end(node);
            }
        }
    }

    /// Opens the consoles that are open to users of the nodes that this conductor leads, and were not opened here yet. Those of
    /// nodes that another conductor leads from now on are closed: a BMC has one session. One that cannot be opened keeps
    /// nothing from the others.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn open_consoles(&self) -> Result<(), Error> {
        let column = NodeColumn::named("console_enabled").expect("it is a column");
        let with_console = Selection::all(vec![Filter::Flag(column, true)]);
        for node in self.store().identities(&with_console).await? {
            let record = match self.store().get(node).await {
                Ok(Some(record)) => record,
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(%node, "the console cannot be opened: {error}");
                    continue;
                }
            };
            if !record.node.console_enabled || !self.leads_console(&record.node).await {
                continue;
            }
            let label = record.node.label();
            match self.services().hardware.console(&record.node) {
                Ok(console) => {
                    let call = Call::of(&record.node, InterfaceKind::Console, "start_console");
                    let limit = self.settings().interface_timeout;
                    match call.answer(limit, console.start_console(&record.node)).await {
                        Ok(()) => self.services().consoles.note(node, true),
                        Err(error) => tracing::warn!(node = %label, "the console cannot be opened: {error}"),
                    }
                }
                Err(error) => tracing::warn!(node = %label, "the console cannot be opened: {error}"),
            }
        }
        Ok(())
    }

    /// Whether the open console of a node is to be opened here. One that was, and is another conductor's now, is closed.
    async fn leads_console(&self, node: &Node) -> bool {
        let is_open = self.services().consoles.has(node.uuid);
        let leads = self.services().leads(node);
        if is_open
            && !leads
            && let Ok(console) = self.services().hardware.console(node)
        {
            let call = Call::of(node, InterfaceKind::Console, "stop_console");
            if let Err(error) =
                call.answer(self.settings().interface_timeout, console.stop_console(node)).await
            {
                tracing::warn!(node = %node.label(), "the console cannot be left to another conductor: {error}");
            }
            self.services().consoles.note(node.uuid, false);
        }
        leads && !is_open
    }

    /// Has a worker for each node that needs one and has none.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn attend(&self) -> Result<(), Error> {
        let mut unattended = self.store().unattended(ENDED).await?;
        if !self.services().placement.is_alone() {
            unattended = self.led_here(unattended).await?;
        }
        for node in unattended.into_iter().chain(self.services().own_leases.left()) {
            self.workers().attend(node);
        }
        Ok(())
    }

    /// Those of some nodes without a worker that this conductor leads, as far as their columns tell.
    async fn led_here(&self, mut nodes: Vec<Uuid>) -> Result<Vec<Uuid>, Error> {
        nodes.retain(|node| !self.workers().attends(*node));
        let mut led = Vec::new();
        for some in nodes.chunks(OUTLINES) {
            let uuids = some.iter().map(Uuid::to_string).collect();
            let filters = vec![Filter::IsOneOf(NodeColumn::UUID, uuids)];
            let selection = Selection { filters, ..Selection::first(some.len() as u32) };
            let outlines = self.store().outlines(&selection).await?;
            let is_here = |outline: &&Outline| {
                let place = self.services().placement.by_columns(
                    outline.uuid,
                    outline.text("driver"),
                    outline.text("conductor_group"),
                );
                // Where that hangs on its interfaces, its worker reads the record.
                place.is_none_or(|place| place == Place::Here)
            };
            led.extend(outlines.iter().filter(is_here).map(|outline| outline.uuid));
        }
        Ok(led)
    }
}
