//! Ports of nodes: created, changed and deleted under the lease of their node.

use crate::conductor::Catalogue;
use crate::conductor::records::nodes::check_name;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::ResourceKind;
use crate::store::OwnedPort;
use farrier_conductor::model::{Node, Port};

impl Catalogue {
    /// The port with this name or identity, with its node.
    ///
    /// # Errors
    ///
    /// [`Error::PortNotFound`].
    pub async fn port(&self, id: &str) -> Result<OwnedPort, Error> {
        self.0.store().port(id).await?.ok_or_else(|| Error::PortNotFound(id.to_owned()))
    }

    /// Gives a node another port.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Invalid`](Error::Task), [`Error::Store`] when a conductor works on the node, or
    /// name, identity or address are taken.
    pub async fn create_port(&self, node: &str, port: Port) -> Result<OwnedPort, Error> {
        port.name.iter().try_for_each(|name| check_name(name))?;
        let mut task = HeldTask::acquire(self.0.services(), node).await?;
        self.check_group_of(&port, &task.node).await?;
        check_physical_network(&port, &task.node)?;
        let uuid = port.uuid;
        task.node.ports.push(Port { created_at: Some(self.0.now()), updated_at: None, ..port });
        task.finish().await?;
        self.port(&uuid.to_string()).await
    }

    /// Changes a port, at once or not at all.
    ///
    /// # Errors
    ///
    /// Those of `change`, [`Error::PortNotFound`], and as [`Self::create_port`].
    pub async fn update_port<E: From<Error>>(
        &self,
        id: &str,
        change: impl FnOnce(OwnedPort) -> Result<Port, E>,
    ) -> Result<OwnedPort, E> {
        let owned = self.port(id).await?;
        let mut task = HeldTask::acquire(self.0.services(), &owned.node.to_string()).await?;
        let before = of(&mut task.node, &owned)?.clone();
        let after = change(OwnedPort { node: owned.node, port: before.clone() })?;
        if before.name != after.name {
            after.name.iter().try_for_each(|name| check_name(name))?;
        }
        if before.address != after.address {
            check_free(&before)?;
        }
        if before.portgroup_id != after.portgroup_id {
            check_free(&before)?;
            self.check_group_of(&after, &task.node).await?;
        }
        check_physical_network(&after, &task.node)?;
        *of(&mut task.node, &owned)? = Port {
            uuid: before.uuid,
            created_at: before.created_at,
            updated_at: Some(self.0.now()),
            ..after
        };
        task.finish().await?;
        Ok(self.port(&owned.port.uuid.to_string()).await?)
    }

    /// Takes a port away from its node.
    ///
    /// # Errors
    ///
    /// [`Error::PortNotFound`], [`Error::InUse`], [`Error::Store`] when a conductor works on the node.
    pub async fn delete_port(&self, id: &str) -> Result<(), Error> {
        let owned = self.port(id).await?;
        let mut task = HeldTask::acquire(self.0.services(), &owned.node.to_string()).await?;
        let port = of(&mut task.node, &owned)?;
        check_free(port)?;
        task.node.ports.retain(|port| port.uuid != owned.port.uuid);
        task.finish().await
    }

    /// A port is in a group of its own node, and joins none whose cards are bound.
    async fn check_group_of(&self, port: &Port, node: &Node) -> Result<(), Error> {
        let Some(group) = port.portgroup_id else { return Ok(()) };
        let found = self.0.store().resource(ResourceKind::PortGroup, &group.to_string()).await?;
        match found.is_some_and(|found| found.node_uuid == Some(node.uuid)) {
            true => {
                node.ports.iter().filter(|port| port.portgroup_id == Some(group)).try_for_each(check_free)
            }
            false => {
                let reason = format!("node {} has no port group {group}; create it first", node.label());
                Err(Error::invalid("portgroup_uuid", reason))
            }
        }
    }
}

/// The port in the record of its node, which may have lost it meanwhile.
fn of<'a>(node: &'a mut Node, owned: &OwnedPort) -> Result<&'a mut Port, Error> {
    let found = node.ports.iter_mut().find(|port| port.uuid == owned.port.uuid);
    found.ok_or_else(|| Error::PortNotFound(owned.port.uuid.to_string()))
}

/// The cards of a group are one to the network, and so in one.
fn check_physical_network(port: &Port, node: &Node) -> Result<(), Error> {
    let Some(group) = port.portgroup_id else { return Ok(()) };
    let others =
        node.ports.iter().filter(|other| other.uuid != port.uuid && other.portgroup_id == Some(group));
    match others.map(|other| &other.physical_network).find(|other| **other != port.physical_network) {
        None => Ok(()),
        Some(other) => {
            let name = |network: &Option<String>| network.clone().unwrap_or_else(|| "none".to_owned());
            let reason = format!(
                "its ports have the physical network {}, and this one has {}; give all of them the same",
                name(other),
                name(&port.physical_network)
            );
            Err(Error::InUse { what: format!("port group {group}"), reason })
        }
    }
}

/// Networks know a port by its address.
fn check_free(port: &Port) -> Result<(), Error> {
    match port.current_vif() {
        None => Ok(()),
        Some(vif) => Err(Error::InUse {
            what: format!("port {}", port.address),
            reason: format!("it is bound to the virtual interface {vif}; detach that first"),
        }),
    }
}
