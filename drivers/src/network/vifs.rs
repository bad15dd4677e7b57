//! Virtual interfaces of instances: attached to cards, and bound to them while the machine is on the networks of its
//! instance.

use super::choice::{TENANT_VIF, Wish, choose, tenant_vif};
use super::operation::check_binding;
use super::settings::NetworkSettings;
use super::{binding, smart_nic};
use crate::openstack::{Neutron, OpenStackError, Vif};
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Node, Port, ProvisionState};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Virtual interfaces of instances.
#[derive(Debug, Clone)]
pub(super) struct Vifs {
    pub(super) neutron: Neutron,
    pub(super) settings: Arc<NetworkSettings>,
    /// Whether they are bound by where the cables of cards lead.
    pub(super) needs_link: bool,
}

impl Vifs {
    /// Attaches one to a card, whose address it gets; it is bound at once where the machine is on the networks of its
    /// instance.
    ///
    /// # Errors
    ///
    /// Those of [`choose`], and any [`OpenStackError`].
    pub(super) async fn attach(
        &self,
        node: &mut Node,
        wish: &Map<String, Value>,
    ) -> Result<(), InterfaceError> {
        let text = |key: &str| wish.get(key).and_then(Value::as_str);
        if text("portgroup_uuid").is_some() {
            let reason = "is not served: name a port of the group by port_uuid";
            return Err(InterfaceError::invalid("portgroup_uuid", reason));
        }
        let id = text("id").ok_or_else(|| InterfaceError::invalid("id", "is missing"))?;
        let vif = self.neutron.port(id).await.map_err(|error| match error {
            error @ OpenStackError::NoIdentity(_) => InterfaceError::invalid("id", error.to_string()),
            error if error.is_not_found() => InterfaceError::invalid("id", error.to_string()),
            error => error.into(),
        })?;
        let physical_networks = self.physical_networks(node, &vif).await?;
        let port = text("port_uuid");
        let wish = Wish { vif: id, port, physical_networks: &physical_networks, needs_link: self.needs_link };
        let index = choose(node, &wish)?;
        if let Err(error) = self.take(node, index, &vif).await {
            self.give_back(&vif).await;
            return Err(error.into());
        }
        node.ports[index].internal_info.insert(TENANT_VIF.to_owned(), id.into());
        Ok(())
    }

    /// Detaches one, which is bound to nothing then and has an address of its own again.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Invalid`] when the node has no such one, and any [`OpenStackError`].
    pub(super) async fn detach(&self, node: &mut Node, vif: &str) -> Result<(), InterfaceError> {
        let port = node.ports.iter_mut().find(|port| tenant_vif(port) == Some(vif));
        let not_attached = || InterfaceError::invalid("vif", format!("{vif} is not attached to the node"));
        let port = port.ok_or_else(not_attached)?;
        self.unbind(vif).await?;
        port.internal_info.remove(TENANT_VIF);
        Ok(())
    }

    /// Those that are attached.
    pub(super) fn list(&self, node: &Node) -> Vec<String> {
        node.ports.iter().filter_map(tenant_vif).map(str::to_owned).collect()
    }

    /// Binds all of them; nothing changes where they are.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`]; the port is named.
    pub(super) async fn bind_all(&self, node: &Node) -> Result<(), InterfaceError> {
        for port in &node.ports {
            let Some(id) = tenant_vif(port) else { continue };
            let vif = self.neutron.port(id).await?;
            self.take_address(&vif, port).await?;
            self.bind(node, port, id).await?;
        }
        Ok(())
    }

    /// Unbinds all of them; those that are gone are passed over.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`]; the port is named.
    pub(super) async fn unbind_all(&self, node: &Node) -> Result<(), InterfaceError> {
        let vifs = self.list(node);
        for vif in &vifs {
            self.unbind(vif).await?;
        }
        if !vifs.is_empty() {
            smart_nic::settle(&self.settings, node).await;
        }
        Ok(())
    }

    /// The physical networks of one, as far as they matter to the cards of a node.
    async fn physical_networks(&self, node: &Node, vif: &Vif) -> Result<BTreeSet<String>, OpenStackError> {
        match node.ports.iter().any(|port| port.physical_network.is_some()) {
            true => Ok(self.neutron.network(vif.text("network_id")).await?.physical_networks),
            false => Ok(BTreeSet::new()),
        }
    }

    /// Has one belong to a card, and binds it where the machine is on the networks of its instance.
    async fn take(&self, node: &Node, index: usize, vif: &Vif) -> Result<(), OpenStackError> {
        let port = &node.ports[index];
        self.take_address(vif, port).await?;
        match is_on_tenant_networks(node) {
            true => self.bind(node, port, &vif.id).await,
            false => Ok(()),
        }
    }

    /// Has one be again as it was before it was taken in vain: unbound, and with its address.
    async fn give_back(&self, vif: &Vif) {
        let address = json!({"mac_address": vif.text("mac_address")});
        for fields in [unbound(), address] {
            if let Err(error) = self.neutron.update_port(&vif.id, fields).await {
                tracing::warn!("port {} of Neutron is not as it was before: {error}", vif.id);
            }
        }
    }

    /// Gives one the address of a card. Neutron changes that of no port that is bound.
    async fn take_address(&self, vif: &Vif, port: &Port) -> Result<(), OpenStackError> {
        if vif.text("mac_address").eq_ignore_ascii_case(port.address.as_str()) {
            return Ok(());
        }
        if !vif.text("binding:host_id").is_empty() {
            self.neutron.update_port(&vif.id, unbound()).await?;
        }
        let address = json!({"mac_address": port.address.as_str()});
        self.neutron.update_port(&vif.id, address).await.map(drop)
    }

    async fn bind(&self, node: &Node, port: &Port, vif: &str) -> Result<(), OpenStackError> {
        smart_nic::wait_for_agent(&self.neutron, &self.settings, node, port).await?;
        let bound = self.neutron.update_port(vif, binding::fields(node, port)).await?;
        check_binding(&self.settings, node, port, &bound)?;
        smart_nic::wait_until_active(&self.neutron, &self.settings, node, port, vif).await
    }

    /// That its address stays is put up with: not every Neutron makes a new one.
    async fn unbind(&self, vif: &str) -> Result<(), OpenStackError> {
        match self.neutron.update_port(vif, unbound()).await {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        match self.neutron.update_port(vif, json!({"mac_address": null})).await {
            Err(error) if error.is_not_found() => Ok(()),
            Err(error @ OpenStackError::Refused { status: StatusCode::BAD_REQUEST, .. }) => {
                tracing::warn!("port {vif} keeps the address of its machine: {error}");
                Ok(())
            }
            other => other.map(drop),
        }
    }
}

/// The fields of a port that nothing has.
fn unbound() -> Value {
    json!({"binding:host_id": "", "binding:profile": {}})
}

fn is_on_tenant_networks(node: &Node) -> bool {
    matches!(node.provision_state, ProvisionState::Active | ProvisionState::Rescue)
}
