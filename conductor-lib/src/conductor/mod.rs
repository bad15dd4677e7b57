//! The conductor: nodes, and the operations on them.

mod boot_config;
mod builder;
mod orders;
mod periodic;
mod rescue_orders;
mod situation;
mod start_up;
mod step_orders;
mod task_interfaces;
mod turn;
mod vigil;
mod waiting;
mod work;
mod workers;

pub use builder::Builder;
pub(crate) use situation::situation;

use crate::error::Error;
use crate::events::EventLog;
use crate::hardware_type::Validity;
use crate::interfaces::deploy::DeployInterface;
use crate::interfaces::rescue::RescueInterface;
use crate::model::{AgentSession, InterfaceKind, NewNode, Node};
use crate::services::Services;
use crate::settings::Settings;
use crate::store::{Record, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;
use workers::Workers;

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

    /// Enrols a node.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an unusable field, [`Error::Unresolved`] for an interface that the node cannot have,
    /// [`Error::Interface`] when its power interface cannot work with its `driver_info`, [`Error::Store`] when name or address are taken.
    pub async fn create_node(&self, new: NewNode) -> Result<Node, Error> {
        check_name(&new.name)?;
        if new.ports.is_empty() {
            return Err(Error::invalid(
                "ports",
                "at least one MAC address is needed, to know the machine by",
            ));
        }
        let mut node = Node::enrol(new, self.now());
        let hardware = &self.services().hardware;
        node.interfaces = hardware.composition.resolve_all(&node)?;
        hardware.power(&node)?.validate(&node).await?;
        self.store().create(&node).await?;
        Ok(node.shown(&AgentSession::default()))
    }

    /// Every node, by name, secrets masked.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        Ok(self.store().list().await?.iter().map(|record| self.shown(record)).collect())
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
        Ok(self.services().hardware.validate(&self.find(id).await?.node).await)
    }

    /// The keys of `driver_info` that a hardware type reads, with what they mean.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`] when there is no such type.
    pub fn properties(&self, hardware_type: &str) -> Result<BTreeMap<&'static str, &'static str>, Error> {
        Ok(self.services().hardware.properties(hardware_type)?)
    }

    /// A lease that has expired is nobody's.
    fn shown(&self, record: &Record) -> Node {
        let mut shown = record.node.shown(&record.session);
        shown.reservation.take_if(|_| record.lease_expires_at.is_none_or(|until| until <= self.now()));
        shown
    }

    /// Something happened to a node that its worker waits for.
    pub(crate) fn wake(&self, node: Uuid) {
        self.0.workers.wake(node);
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.services().store.as_ref()
    }

    fn deploy_interface(&self, node: &Node) -> Result<Arc<dyn DeployInterface>, Error> {
        self.0.workers.interfaces.deploy(node)
    }

    fn rescue_interface(&self, node: &Node) -> Result<Arc<dyn RescueInterface>, Error> {
        self.0.workers.interfaces.rescue(node)
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.0.services
    }

    /// The record with this name or identity, secrets included.
    pub(crate) async fn find(&self, id: &str) -> Result<Record, Error> {
        self.services().find(id).await
    }

    /// The time now.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.services().now()
    }
}

/// Names appear in paths and URLs, and must not be taken for an identity.
fn check_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let usable = !name.is_empty() && name.len() <= 255 && name.chars().all(plain);
    if !usable || name.starts_with('.') || name.parse::<Uuid>().is_ok() {
        let reason =
            format!("{name:?} must be letters, digits, '.', '_' and '-', not start with '.' and be no UUID");
        return Err(Error::invalid("name", reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, usable) in [
            ("demo", true),
            ("rack1-u07.dc_2", true),
            ("", false),
            (".hidden", false),
            ("a/b", false),
            ("a b", false),
            ("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", false),
        ] {
            assert_eq!(check_name(name).is_ok(), usable, "{name:?}");
        }
    }
}
