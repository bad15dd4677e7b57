//! The conductor: nodes, and the operations on them.

mod agent;
mod builder;
mod estate;
mod explain;
mod figures;
mod machine;
pub(crate) mod orders;
mod records;
mod served;
mod start_up;

pub use agent::lookup::{LookupAnswer, LookupQuery};
pub use builder::Builder;
pub use figures::Figures;

use crate::error::Error;
use crate::evidence::events::EventLog;
use crate::services::Services;
use crate::store::{Record, Store};
use crate::workers::Workers;
use farrier_conductor::model::Node;
use farrier_conductor::settings::Settings;
use std::sync::Arc;
use time::OffsetDateTime;

/// A conductor. Clones are handles to the same one.
#[derive(Clone)]
pub struct Conductor(Arc<Inner>);

/// What operators ask of machines at once: their BMCs, their interfaces, and the disks that their agents export.
#[derive(Clone)]
pub struct Machines(Conductor);

/// The records as they are kept: nodes, ports, allocations, and what operators define.
#[derive(Clone)]
pub struct Catalogue(Conductor);

/// What agents and the firmware of their machines ask: lookups, heartbeats, inventories and boot files.
#[derive(Clone)]
pub struct Ramdisks(Conductor);

/// What is known of what happened to a node: its explanation, inventory, certificates of erasure and logs; and to all nodes.
#[derive(Clone)]
pub struct KeptEvidence(Conductor);

struct Inner {
    services: Arc<Services>,
    workers: Arc<Workers>,
}

impl Conductor {
    /// What happened to the nodes.
    pub fn events(&self) -> &EventLog {
        &self.services().events
    }

    /// Times and addresses in use.
    pub fn settings(&self) -> &Settings {
        &self.services().settings
    }

    /// The node with this name or identity, secrets masked.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`].
    pub async fn node(&self, id: &str) -> Result<Node, Error> {
        Ok(self.shown(&self.find(id).await?))
    }

    /// What operators ask of machines at once: their BMCs, their interfaces, and the disks that their agents export.
    pub fn machines(&self) -> Machines {
        Machines(self.clone())
    }

    /// The records as they are kept: nodes, ports, allocations, and what operators define.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue(self.clone())
    }

    /// What agents and the firmware of their machines ask: lookups, heartbeats, inventories and boot files.
    pub fn ramdisks(&self) -> Ramdisks {
        Ramdisks(self.clone())
    }

    /// What is known of what happened to a node: its explanation, inventory, certificates of erasure and logs; and to all nodes.
    pub fn evidence(&self) -> KeptEvidence {
        KeptEvidence(self.clone())
    }

    /// The store of the records, for requests that read many of them.
    pub fn store(&self) -> &dyn Store {
        self.services().store.as_ref()
    }

    pub(crate) fn workers(&self) -> &Arc<Workers> {
        &self.0.workers
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.0.services
    }

    /// The record with this name or identity, secrets included.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn find(&self, id: &str) -> Result<Record, Error> {
        self.services().find(id).await
    }

    /// The time now.
    pub fn now(&self) -> OffsetDateTime {
        self.services().now()
    }
}
