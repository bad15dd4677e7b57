//! The implementations of interfaces, by name.

use super::composition::Composition;
use super::resolution::Unresolved;
use crate::interfaces::base::Interface;
use crate::interfaces::boot::{BootContext, BootInterface};
use crate::interfaces::console::ConsoleInterface;
use crate::interfaces::management::ManagementInterface;
use crate::interfaces::network::NetworkInterface;
use crate::interfaces::power::PowerInterface;
use crate::interfaces::raid::RaidInterface;
use crate::interfaces::storage::StorageInterface;
use crate::interfaces::vendor::VendorInterface;
use crate::model::{InterfaceKind, Node};
use std::sync::Arc;

/// Implementations of one kind, by name.
pub struct Registered<T: ?Sized>(pub Vec<(String, Arc<T>)>);

impl<T: ?Sized> Default for Registered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: ?Sized> Registered<T> {
    /// Adds one.
    pub fn add(&mut self, name: impl Into<String>, interface: Arc<T>) {
        self.0.push((name.into(), interface));
    }

    /// The one with this name.
    pub(super) fn named(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(one, _)| one == name).map(|(_, interface)| &**interface)
    }

    /// That of a node; nothing where its hardware type has none.
    ///
    /// # Errors
    ///
    /// The node has one that it cannot have.
    fn find(
        &self,
        node: &Node,
        kind: InterfaceKind,
        composition: &Composition,
    ) -> Result<Option<Arc<T>>, Unresolved> {
        let resolved = composition.resolve(node, kind)?;
        let found = resolved.and_then(|name| self.0.iter().find(|(one, _)| one == name));
        Ok(found.map(|(_, interface)| Arc::clone(interface)))
    }

    /// That of a node.
    ///
    /// # Errors
    ///
    /// The node has none, or one that it cannot have.
    pub fn of(
        &self,
        node: &Node,
        kind: InterfaceKind,
        composition: &Composition,
    ) -> Result<Arc<T>, Unresolved> {
        let none = || Unresolved::None { kind, hardware_type: node.driver.clone() };
        self.find(node, kind, composition)?.ok_or_else(none)
    }
}

/// What controls machines from outside.
#[derive(Default)]
pub struct Interfaces {
    /// Every interface there is, those too that act through a task.
    pub all: Vec<(InterfaceKind, String, Arc<dyn Interface>)>,
    /// The power interfaces.
    pub power: Registered<dyn PowerInterface>,
    /// The management interfaces.
    pub management: Registered<dyn ManagementInterface>,
    /// The boot interfaces.
    pub boot: Registered<dyn BootInterface>,
    /// The network interfaces.
    pub network: Registered<dyn NetworkInterface>,
    /// The storage interfaces.
    pub storage: Registered<dyn StorageInterface>,
    /// The console interfaces.
    pub console: Registered<dyn ConsoleInterface>,
    /// The vendor interfaces.
    pub vendor: Registered<dyn VendorInterface>,
    /// The RAID interfaces.
    pub raid: Registered<dyn RaidInterface>,
}

impl Interfaces {
    /// The interface of a kind with this name.
    pub(super) fn named(&self, kind: InterfaceKind, name: &str) -> Option<&dyn Interface> {
        let found = self.all.iter().find(|(of, one, _)| *of == kind && one == name);
        found.map(|(_, _, interface)| &**interface)
    }
}

/// What controls machines from outside, and which of it controls which.
pub struct Hardware {
    /// Which interfaces nodes have.
    pub composition: Composition,
    /// The interfaces themselves.
    pub interfaces: Interfaces,
}

impl Hardware {
    /// The interfaces that every operation on a node's machine needs, by their kinds.
    pub(crate) fn that_control(
        &self,
        node: &Node,
    ) -> Result<Vec<(InterfaceKind, &dyn Interface)>, Unresolved> {
        use InterfaceKind::{Boot, Management, Network, Power, Storage};
        let mut found = Vec::new();
        for kind in [Power, Management, Network, Storage, Boot] {
            let name = self.composition.resolve(node, kind)?;
            let interface = name.and_then(|name| self.interfaces.named(kind, name));
            found.extend(interface.map(|interface| (kind, interface)));
        }
        Ok(found)
    }

    /// The power interface of a node.
    pub fn power(&self, node: &Node) -> Result<Arc<dyn PowerInterface>, Unresolved> {
        self.interfaces.power.of(node, InterfaceKind::Power, &self.composition)
    }

    /// The console interface of a node.
    pub fn console(&self, node: &Node) -> Result<Arc<dyn ConsoleInterface>, Unresolved> {
        self.interfaces.console.of(node, InterfaceKind::Console, &self.composition)
    }

    /// The management interface of a node.
    pub fn management(&self, node: &Node) -> Result<Arc<dyn ManagementInterface>, Unresolved> {
        self.interfaces.management.of(node, InterfaceKind::Management, &self.composition)
    }

    /// The vendor interface of a node.
    pub fn vendor(&self, node: &Node) -> Result<Arc<dyn VendorInterface>, Unresolved> {
        self.interfaces.vendor.of(node, InterfaceKind::Vendor, &self.composition)
    }

    /// The network interface of a node.
    pub fn network(&self, node: &Node) -> Result<Arc<dyn NetworkInterface>, Unresolved> {
        self.interfaces.network.of(node, InterfaceKind::Network, &self.composition)
    }

    /// The storage interface of a node.
    pub fn storage(&self, node: &Node) -> Result<Arc<dyn StorageInterface>, Unresolved> {
        self.interfaces.storage.of(node, InterfaceKind::Storage, &self.composition)
    }

    /// The RAID interface of a node.
    pub fn raid(&self, node: &Node) -> Result<Arc<dyn RaidInterface>, Unresolved> {
        self.interfaces.raid.of(node, InterfaceKind::Raid, &self.composition)
    }

    /// The boot interface of a node, with those below it; nothing where its hardware type has none.
    pub fn boot(&self, node: &Node) -> Result<Option<NodeBoot>, Unresolved> {
        let Interfaces { boot, management, .. } = &self.interfaces;
        let Some(boot) = boot.find(node, InterfaceKind::Boot, &self.composition)? else { return Ok(None) };
        let management = management.of(node, InterfaceKind::Management, &self.composition)?;
        Ok(Some(NodeBoot { boot, management, network: self.network(node)? }))
    }
}

/// The boot interface of a node, with those below it.
pub struct NodeBoot {
    /// The boot interface.
    pub boot: Arc<dyn BootInterface>,
    management: Arc<dyn ManagementInterface>,
    network: Arc<dyn NetworkInterface>,
}

impl NodeBoot {
    /// What calls of the boot interface get.
    pub fn context<'a>(&'a self, node: &'a Node) -> BootContext<'a> {
        BootContext { node, management: &*self.management, network: &*self.network }
    }
}
