//! What a task may reach beside its node.

use crate::error::Error;
use crate::events::EventLog;
use crate::interfaces::PowerInterface;
use crate::locks::NodeLocks;
use crate::model::Node;
use crate::settings::Settings;
use crate::store::Store;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Power and boot control by driver name.
pub type Drivers = HashMap<String, Arc<dyn PowerInterface>>;

/// Data and connections that all tasks share.
pub(crate) struct Services {
    /// Times and addresses in use.
    pub(crate) settings: Settings,
    /// The records of all nodes.
    pub(crate) store: Arc<dyn Store>,
    /// Control of machines.
    pub(crate) drivers: Drivers,
    /// Who works on which node.
    pub(crate) locks: NodeLocks,
    /// What happened to the nodes.
    pub(crate) events: EventLog,
}

impl Services {
    /// The record with this name or identity, secrets included.
    pub(crate) async fn find(&self, id: &str) -> Result<Node, Error> {
        let found = match id.parse::<Uuid>() {
            Ok(uuid) => self.store.get(uuid).await?,
            Err(_) => self.store.by_name(id).await?,
        };
        found.ok_or_else(|| Error::NodeNotFound(id.to_owned()))
    }

    /// Control of the machine of a node.
    pub(crate) fn power(&self, node: &Node) -> Result<Arc<dyn PowerInterface>, Error> {
        self.drivers.get(&node.driver).cloned().ok_or_else(|| {
            let mut known: Vec<_> = self.drivers.keys().map(String::as_str).collect();
            known.sort_unstable();
            Error::invalid(
                "driver",
                format!("{:?} is not known; use one of: {}", node.driver, known.join(", ")),
            )
        })
    }
}
