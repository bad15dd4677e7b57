//! The ports of Neutron that a machine has for an operation: one for each card that it may boot from.
//!
//! Ours are known by the node, which is their device, and by their name: so what a conductor that stopped has created, and
//! not written down, is found and used, and no foreign port is ever deleted, not even one of the same node
//! on the same network.

use super::binding;
use super::error::NetworkError;
use super::settings::{NetworkSettings, OperationNetwork};
use super::slot::Slot;
use super::smart_nic;
use crate::openstack::{Network, Neutron, OpenStackError, Vif};
use farrier_conductor::interfaces::{InterfaceError, NetworkKind};
use farrier_conductor::model::{Node, Port};
use serde_json::{Value, json};
use std::sync::Arc;

/// The fields by which a port that is there already is known to be as it would be created.
const COMPARED: [&str; 5] =
    ["network_id", "mac_address", "binding:host_id", "binding:vnic_type", "binding:profile"];

/// The ports of operations.
#[derive(Debug, Clone)]
pub(super) struct OperationPorts {
    pub(super) neutron: Neutron,
    pub(super) settings: Arc<NetworkSettings>,
    /// Whether only cards are connected whose cables are known.
    pub(super) needs_link: bool,
}

impl OperationPorts {
    /// Checks that there is a network for an operation.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] where none is named, any [`OpenStackError`] where it cannot be found.
    pub(super) async fn check(&self, node: &Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        Ok(self.neutron.network(&self.network(node, kind)?).await.map(drop)?)
    }

    /// Connects the machine for an operation, and notes by which ports. Some cards may fail.
    ///
    /// # Errors
    ///
    /// As [`Self::check`]; [`NetworkError::NotConnected`] when all cards fail, and nothing is left then.
    pub(super) async fn connect(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        let name = self.network(node, kind)?;
        let network = self.neutron.network(&name).await?;
        let cards = self.cards(node)?;
        let mut left = self.own(node, kind).await?;
        let mut planned = Vec::new();
        for index in cards {
            let fields = self.fields(node, &node.ports[index], kind, &network);
            let kept = left.iter().position(|vif| self.is_as(vif, &fields)).map(|at| left.swap_remove(at));
            planned.push((index, fields, kept));
        }
        // Their addresses would be in the way of those that are created.
        for vif in left {
            self.neutron.delete_port(&vif.id).await?;
        }
        let (count, mut failures) = (planned.len(), Vec::new());
        for (index, fields, kept) in planned {
            let port = &node.ports[index];
            match self.connect_card(node, port, kind, fields, kept).await {
                Ok(vif) => note(&mut node.ports[index], kind, Some(vif)),
                Err(reason) => {
                    failures.push(format!("{} {reason}", port.address));
                    note(&mut node.ports[index], kind, None);
                }
            }
        }
        let node_label = node.label();
        if failures.len() == count {
            self.roll_back(node, kind).await;
            let failures = failures.join("; ");
            return Err(NetworkError::NotConnected { node: node_label, kind, network: name, failures }.into());
        }
        for failure in failures {
            tracing::warn!(node = node_label, %kind, "a port is not connected: {failure}");
        }
        Ok(())
    }

    /// Deletes the ports of an operation, those too that were not noted.
    ///
    /// # Errors
    ///
    /// [`NetworkError::NotDisconnected`]; deleted ports are recorded anyway.
    pub(super) async fn disconnect(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        let noted = node.ports.iter().filter_map(|port| port.internal_info.get(&key(kind))?.as_str());
        let mut ids: Vec<_> = noted.map(str::to_owned).collect();
        ids.extend(self.own(node, kind).await?.into_iter().map(|vif| vif.id));
        ids.sort_unstable();
        ids.dedup();
        let mut failures = Vec::new();
        for id in &ids {
            match self.neutron.delete_port(id).await {
                Ok(()) => forget(node, kind, id),
                Err(error) => failures.push(format!("{id} {error}")),
            }
        }
        if !ids.is_empty() {
            smart_nic::settle(&self.settings, node).await;
        }
        match failures.is_empty() {
            true => Ok(()),
            false => {
                let failures = failures.join("; ");
                Err(NetworkError::NotDisconnected { node: node.label(), kind, failures }.into())
            }
        }
    }

    /// Name or UUID of the network of an operation.
    fn network(&self, node: &Node, kind: NetworkKind) -> Result<String, InterfaceError> {
        let key = format!("{kind}_network");
        let own = node.driver_info.text(&key);
        let own = own.map_err(|error| InterfaceError::driver_info(&key, error.reason))?;
        let of_all = self.settings.networks.get(&kind).and_then(|network| network.network.as_deref());
        own.or(of_all).map(str::to_owned).ok_or_else(|| {
            InterfaceError::driver_info(
                &key,
                "is missing, and the conductor has none either; name a network of Neutron",
            )
        })
    }

    /// The cards that are connected.
    fn cards(&self, node: &Node) -> Result<Vec<usize>, InterfaceError> {
        let is_meant = |port: &Port| port.pxe_enabled || self.settings.add_all_ports;
        let cards = node.ports.iter().enumerate().filter(|(_, port)| is_meant(port)).map(|(index, _)| index);
        match cards.collect::<Vec<_>>() {
            cards if cards.is_empty() => Err(InterfaceError::invalid(
                "ports",
                "none is enabled for PXE; create one, or set pxe_enabled",
            )),
            cards => Ok(cards),
        }
    }

    /// The Neutron port for a card.
    fn fields(&self, node: &Node, port: &Port, kind: NetworkKind, network: &Network) -> Value {
        let mut fields = binding::fields(node, &Slot::card(port));
        fields["name"] = own_name(kind).into();
        fields["network_id"] = network.id.as_str().into();
        fields["device_id"] = node.uuid.to_string().into();
        fields["mac_address"] = port.address.as_str().into();
        fields["admin_state_up"] = true.into();
        if let Some(OperationNetwork { security_groups, .. }) = self.settings.networks.get(&kind)
            && !security_groups.is_empty()
        {
            fields["security_groups"] = json!(security_groups);
        }
        if !port.pxe_enabled {
            fields["fixed_ips"] = json!([]);
        }
        fields
    }

    /// Connects a card by a port that is there already, or by a new one.
    async fn connect_card(
        &self,
        node: &Node,
        port: &Port,
        kind: NetworkKind,
        fields: Value,
        kept: Option<Vif>,
    ) -> Result<String, String> {
        binding::check(port, self.needs_link)?;
        let slot = &Slot::card(port);
        let connected = async {
            smart_nic::wait_for_agent(&self.neutron, &self.settings, node, slot).await?;
            let vif = match kept {
                Some(vif) => vif,
                None => self.create(node, kind, fields).await?,
            };
            check_binding(&self.settings, node, slot, &vif)?;
            smart_nic::wait_until_active(&self.neutron, &self.settings, node, slot, &vif.id).await?;
            Ok(vif.id)
        };
        connected.await.map_err(|error: OpenStackError| error.to_string())
    }

    /// Creates a port. Where Neutron fails, or its answer cannot be read, Neutron may have created the port, which is used then.
    async fn create(&self, node: &Node, kind: NetworkKind, fields: Value) -> Result<Vif, OpenStackError> {
        let error = match self.neutron.create_port(fields.clone()).await {
            Err(error) if error.status().is_none_or(|status| status.is_server_error()) => error,
            decided => return decided,
        };
        let own = self.own(node, kind).await.unwrap_or_default();
        own.into_iter().find(|vif| self.is_as(vif, &fields)).ok_or(error)
    }

    /// Deletes everything of ours that a failure has left.
    async fn roll_back(&self, node: &mut Node, kind: NetworkKind) {
        if let Err(error) = self.disconnect(node, kind).await {
            tracing::warn!(node = node.label(), %kind, "{error}");
        }
    }

    /// Our ports for an operation of a node.
    async fn own(&self, node: &Node, kind: NetworkKind) -> Result<Vec<Vif>, OpenStackError> {
        let (device, name) = (node.uuid.to_string(), own_name(kind));
        self.neutron.ports(&[("device_id", &device), ("name", &name)]).await
    }

    /// Whether a port is as it would be created.
    fn is_as(&self, vif: &Vif, fields: &Value) -> bool {
        let is_bound = !(self.settings.fail_on_port_binding_failure && vif.binding_failed());
        is_bound && COMPARED.iter().all(|name| vif.field(name) == &fields[name])
    }
}

/// Checks that a port is bound, where that counts.
///
/// # Errors
///
/// [`OpenStackError::NotBound`].
pub(super) fn check_binding(
    settings: &NetworkSettings,
    node: &Node,
    slot: &Slot<'_>,
    vif: &Vif,
) -> Result<(), OpenStackError> {
    if !vif.binding_failed() {
        return Ok(());
    }
    if settings.fail_on_port_binding_failure || slot.smart_nic().is_some() {
        let (id, host) = (vif.id.clone(), binding::host(node, slot));
        return Err(OpenStackError::NotBound { port: id, host, what: "binding_failed".to_owned() });
    }
    tracing::warn!(node = node.label(), "port {} of Neutron is not bound", vif.id);
    Ok(())
}

/// The name by which our ports are known.
fn own_name(kind: NetworkKind) -> String {
    format!("farrier-{kind}")
}

/// The note of a port with its port of Neutron.
fn key(kind: NetworkKind) -> String {
    format!("{kind}_vif_port_id")
}

fn note(port: &mut Port, kind: NetworkKind, vif: Option<String>) {
    match vif {
        Some(vif) => drop(port.internal_info.insert(key(kind), vif.into())),
        None => drop(port.internal_info.remove(&key(kind))),
    }
}

fn forget(node: &mut Node, kind: NetworkKind, vif: &str) {
    for port in &mut node.ports {
        if port.internal_info.get(&key(kind)).and_then(Value::as_str) == Some(vif) {
            note(port, kind, None);
        }
    }
}
