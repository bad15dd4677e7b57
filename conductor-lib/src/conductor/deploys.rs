//! The deploy interfaces of nodes.

use crate::error::Error;
use crate::hardware_type::Registered;
use crate::interfaces::deploy::DeployInterface;
use crate::model::{InterfaceKind, Node};
use crate::services::Services;
use std::sync::Arc;

/// The deploy interfaces that are registered. They work with tasks, and so stand above what tasks may reach.
#[derive(Clone)]
pub(super) struct Deploys {
    services: Arc<Services>,
    registered: Arc<Registered<dyn DeployInterface>>,
}

impl Deploys {
    pub(super) fn new(services: &Arc<Services>, registered: Registered<dyn DeployInterface>) -> Self {
        Self { services: Arc::clone(services), registered: Arc::new(registered) }
    }

    /// That of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub(super) fn of(&self, node: &Node) -> Result<Arc<dyn DeployInterface>, Error> {
        Ok(self.registered.of(node, InterfaceKind::Deploy, &self.services.hardware.composition)?)
    }
}
