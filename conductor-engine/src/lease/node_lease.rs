//! The lease of a node, as what a conductor lends a task.

use crate::explain::ramdisk_logs;
use crate::lease::certificates::UnsavedCertificates;
use crate::lease::diagnosis::UnsavedDiagnosis;
use crate::lease::history::happened;
use crate::lease::reservation::{End, Reservation};
use crate::records::{PendingOrder, ResourceKind};
use crate::services::Services;
use crate::store::{Change, ConfigDrive, OrderChange, Record, ResourceSelection, StoreError};
use async_trait::async_trait;
use farrier_conductor::Error as TaskError;
use farrier_conductor::hardware_type::Hardware;
use farrier_conductor::model::{AgentSession, MacAddress, Node, PlannedStep, PortGroup, StepKind};
use farrier_conductor::settings::Settings;
use farrier_conductor::task::change::Change as TaskChange;
use farrier_conductor::task::event::EventKind;
use farrier_conductor::task::host::Host;
use farrier_protocol::command::CommandResult;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// The lease of a node, with what is to be saved of it beside the node and its agent.
pub(crate) struct NodeLease {
    /// What all tasks share.
    pub(super) services: Arc<Services>,
    /// What is ordered.
    pub(super) order: Option<PendingOrder>,
    /// What of certificates of erasure is to be saved.
    pub(super) certificates: UnsavedCertificates,
    /// What of the last words of the machine is to be saved.
    pub(super) diagnosis: UnsavedDiagnosis,
    reservation: Reservation,
    /// The record and the order as they are stored; apart, since a task is moved much.
    stored: Box<(Node, Option<PendingOrder>)>,
}

impl NodeLease {
    pub(super) fn new(services: Arc<Services>, reservation: Reservation, record: &Record) -> Self {
        Self {
            services,
            order: record.order,
            certificates: UnsavedCertificates::default(),
            diagnosis: UnsavedDiagnosis::Nothing,
            reservation,
            stored: Box::new((record.node.clone(), record.order)),
        }
    }

    /// Whether the conductor that worked on the node before stopped in the middle.
    pub(super) fn follows_crash(&self) -> bool {
        self.reservation.lease().follows_crash
    }

    fn node(&self) -> Uuid {
        self.reservation.lease().node
    }

    /// Stores what changed, and ends the lease with it where nobody needs it any more.
    pub(super) async fn write(
        &mut self,
        change: TaskChange<'_>,
        config_drive: ConfigDrive<'_>,
        ends_lease: bool,
    ) -> Result<(), StoreError> {
        let TaskChange { node, session, inspection, boot_trace } = change;
        let order = match self.order {
            order if order == self.stored.1 => OrderChange::Keep,
            Some(order) => OrderChange::Put(order),
            None => OrderChange::Remove,
        };
        let (before, ordered_before) = &*self.stored;
        let history =
            happened(&self.services, (before, ordered_before.as_ref()), (node, self.order.as_ref()));
        let (certificates, diagnosis) = (self.certificates.change(), self.diagnosis.change());
        let change = Change {
            node,
            session,
            config_drive,
            order,
            inspection,
            certificates,
            boot_trace,
            diagnosis,
            history: &history,
            ends_lease,
        };
        // Should this be cut off, nobody here knows what is stored.
        self.reservation.end = End::Leave;
        let written = self.services.store.write(self.reservation.lease(), &change).await;
        self.reservation.answered(written)?;
        let (was, since) = (self.stored.0.provision_state, self.stored.0.provision_updated_at);
        if was != node.provision_state {
            self.services.state_times.end(was, self.services.now() - since);
        }
        *self.stored = (node.clone(), self.order);
        self.certificates = UnsavedCertificates::default();
        self.diagnosis = UnsavedDiagnosis::Nothing;
        self.reservation.end = match ends_lease {
            true => End::IsOver,
            false => End::when(node, self.order.as_ref()),
        };
        Ok(())
    }

    /// Ends the lease.
    pub(super) async fn release(&mut self) -> Result<(), StoreError> {
        self.services.store.release(self.reservation.lease()).await?;
        self.reservation.end = End::IsOver;
        Ok(())
    }

    /// Forgets the node.
    pub(super) async fn delete(&mut self) -> Result<(), StoreError> {
        let deleted = self.services.store.delete(self.reservation.lease()).await;
        self.reservation.answered(deleted)?;
        self.reservation.end = End::IsOver;
        Ok(())
    }
}

#[async_trait]
impl Host for NodeLease {
    fn settings(&self) -> &Settings {
        &self.services.settings
    }

    fn hardware(&self) -> &Hardware {
        &self.services.hardware
    }

    fn now(&self) -> OffsetDateTime {
        self.services.now()
    }

    fn emit(&self, kind: EventKind) {
        self.services.events.push(self.node(), kind);
    }

    fn emit_once(&self, kind: EventKind) {
        self.services.events.push_once(self.node(), kind);
    }

    async fn hold(&self) -> Result<(), TaskError> {
        Ok(self.reservation.hold().await?)
    }

    async fn lost(&self) -> TaskError {
        self.reservation.lost().await.into()
    }

    async fn save(&mut self, change: TaskChange<'_>) -> Result<(), TaskError> {
        Ok(self.write(change, ConfigDrive::Keep, false).await?)
    }

    async fn config_drive(&self) -> Result<Option<String>, TaskError> {
        Ok(self.services.store.config_drive(self.node()).await?)
    }

    async fn port_groups(&self) -> Result<Vec<PortGroup>, TaskError> {
        let all = ResourceSelection::first(ResourceKind::PortGroup, u32::MAX);
        let own = ResourceSelection { node: Some(self.node()), ..all };
        Ok(self.services.store.resources(&own).await?.into_iter().map(PortGroup::from).collect())
    }

    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, TaskError> {
        Ok(self.services.store.owners(addresses).await?)
    }

    fn end_order(&mut self) {
        self.order = None;
    }

    fn forget_boot(&self) {
        self.services.boot_journal.forget(self.node());
    }

    fn forget_diagnosis(&mut self) {
        self.diagnosis = UnsavedDiagnosis::Forgotten;
    }

    fn keep_proof(
        &mut self,
        node: &Node,
        agent: &AgentSession,
        kind: StepKind,
        step: &PlannedStep,
        result: &CommandResult,
    ) -> Result<(), TaskError> {
        let now = self.services.now();
        self.certificates.keep(node, agent, kind, step, result, now)
    }

    async fn mark_erasure(&mut self, node: &mut Node) -> Result<(), TaskError> {
        let mark = self.certificates.mark(&self.services, node.uuid).await?;
        node.driver_internal_info.erasure = Some(mark);
        Ok(())
    }

    async fn collect_logs(&self, node: &Node, agent: &AgentSession, has_failed: bool) {
        ramdisk_logs::collect(&self.services, node, agent, has_failed).await;
    }

    async fn collect_posted_logs(&self, node: &Node, has_failed: bool) {
        ramdisk_logs::keep_received(&self.services, node, has_failed).await;
    }
}
