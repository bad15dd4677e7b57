//! Virtual interfaces of instances: attached to cards or groups of them, and bound to them while the machine is on the
//! networks of its instance.

use super::choice::{Wish, choose};
use super::operation::check_binding;
use super::settings::NetworkSettings;
use super::slot::{Slot, TENANT_VIF, tenant_vif};
use super::{binding, smart_nic};
use crate::openstack::{Neutron, OpenStackError, Vif};
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Node, ProvisionState};
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
    /// Attaches one to a card or a group of cards, whose address it gets; it is bound at once where the machine is on the
    /// networks of its instance.
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
        let id = text("id").ok_or_else(|| InterfaceError::invalid("id", "is missing"))?;
        let vif = self.neutron.port(id).await.map_err(|error| match error {
            error @ OpenStackError::NoIdentity(_) => InterfaceError::invalid("id", error.to_string()),
            error if error.is_not_found() => InterfaceError::invalid("id", error.to_string()),
            error => error.into(),
        })?;
        let physical_networks = self.physical_networks(node, &vif).await?;
        let wish = Wish {
            vif: id,
            port: text("port_uuid"),
            group: text("portgroup_uuid"),
            physical_networks: &physical_networks,
            needs_link: self.needs_link,
        };
        let slot = choose(node, &wish)?;
        if let Err(error) = self.take(node, &slot, &vif).await {
            self.give_back(&vif).await;
            return Err(error.into());
        }
        let cards = slot.identities();
        for port in node.ports.iter_mut().filter(|port| cards.contains(&port.uuid)) {
            port.internal_info.insert(TENANT_VIF.to_owned(), id.into());
        }
        Ok(())
    }

    /// Detaches one, which is bound to nothing then and has an address of its own again.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Invalid`] when the node has no such one, and any [`OpenStackError`].
    pub(super) async fn detach(&self, node: &mut Node, vif: &str) -> Result<(), InterfaceError> {
        if !node.ports.iter().any(|port| tenant_vif(port) == Some(vif)) {
            return Err(InterfaceError::invalid("vif", format!("{vif} is not attached to the node")));
        }
        self.unbind(vif).await?;
        for port in node.ports.iter_mut().filter(|port| tenant_vif(port) == Some(vif)) {
            port.internal_info.remove(TENANT_VIF);
        }
        Ok(())
    }

    /// Those that are attached.
    pub(super) fn list(&self, node: &Node) -> Vec<String> {
        let mut vifs: Vec<String> = Vec::new();
        for vif in node.ports.iter().filter_map(tenant_vif) {
            if !vifs.iter().any(|known| known == vif) {
                vifs.push(vif.to_owned());
            }
        }
        vifs
    }

    /// Binds all of them; nothing changes where they are.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`]; the port is named.
    pub(super) async fn bind_all(&self, node: &Node) -> Result<(), InterfaceError> {
        for (id, slot) in Slot::attached(node) {
            let vif = self.neutron.port(id).await?;
            self.take_address(&vif, &slot).await?;
            self.bind(node, &slot, id).await?;
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
        match Slot::all(node).iter().any(|slot| slot.physical_network().is_some()) {
            true => Ok(self.neutron.network(vif.text("network_id")).await?.physical_networks),
            false => Ok(BTreeSet::new()),
        }
    }

    /// Has one belong to cards, and binds it where the machine is on the networks of its instance.
    async fn take(&self, node: &Node, slot: &Slot<'_>, vif: &Vif) -> Result<(), OpenStackError> {
        self.take_address(vif, slot).await?;
        match is_on_tenant_networks(node) {
            true => self.bind(node, slot, &vif.id).await,
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

    /// Gives one the address of a card or a group, where that has one. Neutron changes that of no port that is bound.
    async fn take_address(&self, vif: &Vif, slot: &Slot<'_>) -> Result<(), OpenStackError> {
        let is_other = |address: &&str| !vif.text("mac_address").eq_ignore_ascii_case(address);
        let Some(address) = slot.address().filter(is_other) else { return Ok(()) };
        if !vif.text("binding:host_id").is_empty() {
            self.neutron.update_port(&vif.id, unbound()).await?;
        }
        self.neutron.update_port(&vif.id, json!({"mac_address": address})).await.map(drop)
    }

    async fn bind(&self, node: &Node, slot: &Slot<'_>, vif: &str) -> Result<(), OpenStackError> {
        smart_nic::wait_for_agent(&self.neutron, &self.settings, node, slot).await?;
        let bound = self.neutron.update_port(vif, binding::fields(node, slot)).await?;
        check_binding(&self.settings, node, slot, &bound)?;
        smart_nic::wait_until_active(&self.neutron, &self.settings, node, slot, vif).await
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
