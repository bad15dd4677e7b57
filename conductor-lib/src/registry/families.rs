//! The interfaces of nodes that work with tasks: deploy, inspect and rescue.

use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::hardware_type::{Composition, Registered as Named};
use crate::in_band::{InspectInterface, RescueInterface};
use crate::model::{InterfaceKind, Node};
use std::sync::Arc;

/// Those that are registered.
#[derive(Default)]
pub(super) struct Registered {
    pub(super) deploy: Named<dyn DeployInterface>,
    pub(super) inspect: Named<dyn InspectInterface>,
    pub(super) rescue: Named<dyn RescueInterface>,
}

/// Those of each node. Clones are the same ones.
#[derive(Clone)]
pub struct Families(Arc<Registered>);

impl Families {
    pub(super) fn new(registered: Registered) -> Self {
        Self(Arc::new(registered))
    }

    /// The deploy interface of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub fn deploy(&self, node: &Node, composition: &Composition) -> Result<Arc<dyn DeployInterface>, Error> {
        Ok(self.0.deploy.of(node, InterfaceKind::Deploy, composition)?)
    }

    /// Puts the deploy interface into the record of a node before it deploys its instance, where its own only chooses
    /// one (section 5.9). A choice stays until [`Node::restore_deploy_interface`]: it has consumed the wish of the
    /// instance, and another choice would not know of that.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub fn choose_deploy(&self, node: &mut Node, composition: &Composition) -> Result<(), Error> {
        if node.driver_internal_info.original_deploy_interface.is_some() {
            return Ok(());
        }
        let Some(own) = composition.resolve(node, InterfaceKind::Deploy)? else { return Ok(()) };
        let choices = composition.choices(composition.hardware_type(&node.driver)?, own);
        let supports = |name: &&&String| {
            let named = self.0.deploy.0.iter().find(|(one, _)| one == **name);
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
    pub fn inspect(
        &self,
        node: &Node,
        composition: &Composition,
    ) -> Result<Arc<dyn InspectInterface>, Error> {
        Ok(self.0.inspect.of(node, InterfaceKind::Inspect, composition)?)
    }

    /// The rescue interface of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub fn rescue(&self, node: &Node, composition: &Composition) -> Result<Arc<dyn RescueInterface>, Error> {
        Ok(self.0.rescue.of(node, InterfaceKind::Rescue, composition)?)
    }
}
