//! The conductor: nodes, and the operations on them.

mod agent;
mod builder;
mod explain;
mod machine;
pub(crate) mod orders;
mod records;
mod start_up;

pub use agent::lookup::{LookupAnswer, LookupQuery};
pub use builder::Builder;

use crate::error::Error;
use crate::evidence::events::EventLog;
use crate::services::Services;
use crate::store::{Documents, Outline, Record, Store};
use crate::workers::Workers;
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::model::{InterfaceKind, Node};
use farrier_conductor::settings::Settings;
use std::collections::BTreeMap;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// A conductor. Clones are handles to the same one.
#[derive(Clone)]
pub struct Conductor(Arc<Inner>);

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

    /// What each interface of the node with this name or identity says about it.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`].
    pub async fn validate(&self, id: &str) -> Result<BTreeMap<InterfaceKind, Validity>, Error> {
        let mut node = self.find(id).await?.node;
        if node.driver_internal_info.original_deploy_interface.is_none() {
            // What cannot be resolved, validation tells.
            self.services().choose_deploy(&mut node).unwrap_or_default();
        }
        Ok(self.services().hardware.validate(&node).await)
    }

    /// The keys of `driver_info` that a hardware type reads, with what they mean.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`] when there is no such type.
    pub fn properties(&self, hardware_type: &str) -> Result<BTreeMap<&'static str, &'static str>, Error> {
        Ok(self.services().hardware.properties(hardware_type)?)
    }

    /// The keys of a RAID volume that operators may set for nodes of a hardware type, with what they mean.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`] when there is no such type.
    pub fn logical_disk_properties(
        &self,
        hardware_type: &str,
    ) -> Result<BTreeMap<&'static str, &'static str>, Error> {
        Ok(self.services().hardware.logical_disk_properties(hardware_type)?)
    }

    /// Something happened to a node that its worker waits for.
    pub(crate) fn wake(&self, node: Uuid) {
        self.0.workers.wake(node);
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

    /// The node with this name or identity as it is kept, secrets included.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn document(&self, id: &str) -> Result<(Outline, Documents), Error> {
        self.services().document(id).await
    }

    /// The time now.
    pub fn now(&self) -> OffsetDateTime {
        self.services().now()
    }
}
