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

    /// Puts the deploy interface into the record of a node that is to deploy its instance, where its own only chooses
    /// one (section 5.9).
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub(super) fn choose_deploy(&self, node: &mut Node) -> Result<(), Error> {
        node.restore_deploy_interface();
        let composition = &self.services.hardware.composition;
        let Some(own) = composition.resolve(node, InterfaceKind::Deploy)? else { return Ok(()) };
        let choices = composition.choices(composition.hardware_type(&node.driver)?, own);
        let supports = |name: &&&String| {
            let named = self.registered.deploy.0.iter().find(|(one, _)| one == **name);
            named.is_some_and(|(_, deploy)| deploy.supports_deploy(node))
        };
        let chosen = choices.iter().find(supports).or(choices.last());
        if let Some(name) = chosen.map(|name| (*name).clone()) {
            node.switch_deploy_interface(&name);
        }
        Ok(())
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
