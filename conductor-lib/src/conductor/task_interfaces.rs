//! The interfaces of nodes that work with tasks, and so stand above what tasks may reach.

use crate::error::Error;
use crate::hardware_type::Registered;
use crate::interfaces::deploy::DeployInterface;
use crate::interfaces::inspect::InspectInterface;
use crate::interfaces::rescue::RescueInterface;
use crate::model::{InterfaceKind, Node};
use crate::services::Services;
use std::sync::Arc;

/// Those that are registered.
#[derive(Default)]
pub(super) struct RegisteredWithTasks {
    pub(super) deploy: Registered<dyn DeployInterface>,
    pub(super) inspect: Registered<dyn InspectInterface>,
    pub(super) rescue: Registered<dyn RescueInterface>,
}

/// Those of each node.
#[derive(Clone)]
pub(super) struct TaskInterfaces {
    services: Arc<Services>,
    registered: Arc<RegisteredWithTasks>,
}

impl TaskInterfaces {
    pub(super) fn new(services: &Arc<Services>, registered: RegisteredWithTasks) -> Self {
        Self { services: Arc::clone(services), registered: Arc::new(registered) }
    }

    /// The deploy interface of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub(super) fn deploy(&self, node: &Node) -> Result<Arc<dyn DeployInterface>, Error> {
        let composition = &self.services.hardware.composition;
        Ok(self.registered.deploy.of(node, InterfaceKind::Deploy, composition)?)
    }

    /// The inspect interface of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub(super) fn inspect(&self, node: &Node) -> Result<Arc<dyn InspectInterface>, Error> {
        let composition = &self.services.hardware.composition;
        Ok(self.registered.inspect.of(node, InterfaceKind::Inspect, composition)?)
    }

    /// The rescue interface of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub(super) fn rescue(&self, node: &Node) -> Result<Arc<dyn RescueInterface>, Error> {
        let composition = &self.services.hardware.composition;
        Ok(self.registered.rescue.of(node, InterfaceKind::Rescue, composition)?)
    }
}
