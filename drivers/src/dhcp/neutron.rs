//! The DHCP provider `neutron`: a port of Neutron has the options that its DHCP service sends. It knows iPXE by a tag.

use crate::openstack::{Neutron, OpenStackError, Vif};
use async_trait::async_trait;
use farrier_conductor::interfaces::{DhcpOption, DhcpProvider, InterfaceError};
use farrier_conductor::model::{MacAddress, Node, Port};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// The options that tell firmware what to load, by version of IP and number; whatever else a port has is its user's.
const OF_FIRMWARE: [(u64, &str); 7] =
    [(4, "60"), (4, "66"), (4, "67"), (4, "150"), (4, "255"), (6, "16"), (6, "59")];

/// Options of ports of Neutron.
#[derive(Debug, Clone)]
pub struct NeutronDhcp {
    neutron: Neutron,
    /// How long Neutron's DHCP service may take to read them (`[neutron]port_setup_delay`).
    port_setup_delay: Duration,
}

impl NeutronDhcp {
    /// Over this Neutron, whose DHCP service is given some time to take up a change.
    pub fn new(neutron: Neutron, port_setup_delay: Duration) -> Self {
        Self { neutron, port_setup_delay }
    }

    /// Has a port send the options of the versions of IP that it has an address of.
    async fn set_options(&self, vif: &str, options: &[DhcpOption]) -> Result<(), OpenStackError> {
        let addresses = self.neutron.port(vif).await?.addresses();
        let is_spoken = |option: &&DhcpOption| {
            addresses.iter().any(|address| {
                if address.is_ipv4() { option.ip_version == 4 } else { option.ip_version == 6 }
            })
        };
        let extra_dhcp_opts = options.iter().filter(is_spoken).map(|option| {
            json!({"opt_name": option.name, "opt_value": option.value, "ip_version": option.ip_version})
        });
        let extra_dhcp_opts: Vec<_> = extra_dhcp_opts.collect();
        self.neutron.update_port(vif, json!({"extra_dhcp_opts": extra_dhcp_opts})).await.map(drop)
    }

    /// An option ends when its value is null.
    async fn clear_options(&self, vif: &str) -> Result<(), OpenStackError> {
        let port = match self.neutron.port(vif).await {
            Err(error) if error.is_not_found() => return Ok(()),
            port => port?,
        };
        let ended = ended(&port);
        match ended.is_empty() {
            true => Ok(()),
            false => self.neutron.update_port(vif, json!({"extra_dhcp_opts": ended})).await.map(drop),
        }
    }
}

#[async_trait]
impl DhcpProvider for NeutronDhcp {
    async fn update_port_dhcp_opts(
        &self,
        node: &Node,
        port: &MacAddress,
        options: &[DhcpOption],
    ) -> Result<(), InterfaceError> {
        let vif = node.ports.iter().find(|own| own.address == *port).and_then(Port::current_vif);
        let vif = vif.ok_or_else(|| without_vif(&format!("port {port}")))?;
        Ok(self.set_options(vif, options).await?)
    }

    /// Some ports may fail: the machine boots from another one.
    async fn update_dhcp_opts(&self, node: &Node, options: &[DhcpOption]) -> Result<(), InterfaceError> {
        let (mut is_set, mut failure) = (false, None);
        for vif in vifs(node.ports.iter().filter(|port| port.pxe_enabled)) {
            match self.set_options(vif, options).await {
                Ok(()) => is_set = true,
                Err(error) => {
                    tracing::warn!(
                        node = node.label(),
                        "a Neutron port does not have the boot options: {error}"
                    );
                    failure = failure.or(Some(error));
                }
            }
        }
        if !is_set {
            let none = || without_vif("every port that is enabled for PXE");
            return Err(failure.map_or_else(none, InterfaceError::from));
        }
        tokio::time::sleep(self.port_setup_delay).await;
        Ok(())
    }

    async fn clean_dhcp_opts(&self, node: &Node) -> Result<(), InterfaceError> {
        for vif in vifs(node.ports.iter()) {
            self.clear_options(vif).await?;
        }
        Ok(())
    }

    async fn get_ip_addresses(&self, node: &Node) -> Result<Vec<IpAddr>, InterfaceError> {
        let mut addresses = Vec::new();
        for vif in vifs(node.ports.iter()) {
            addresses.extend(self.neutron.port(vif).await?.addresses());
        }
        Ok(addresses)
    }
}

/// The ports of Neutron that cards have; those of a group have one.
fn vifs<'a>(ports: impl Iterator<Item = &'a Port>) -> BTreeSet<&'a str> {
    ports.filter_map(Port::current_vif).collect()
}

/// The boot options of a port.
fn ended(port: &Vif) -> Vec<Value> {
    let options = port.field("extra_dhcp_opts").as_array().into_iter().flatten();
    let of_firmware = options.filter(|option| {
        let name = option["opt_name"].as_str().unwrap_or_default();
        let version = option["ip_version"].as_u64().unwrap_or(4);
        OF_FIRMWARE.contains(&(version, name.rsplit(',').next().unwrap_or_default()))
    });
    let end = |option: &Value| json!({"opt_name": option["opt_name"], "opt_value": null, "ip_version": option["ip_version"]});
    of_firmware.map(end).collect()
}

fn without_vif(what: &str) -> InterfaceError {
    let reason = format!(
        "{what} has no Neutron port, which would have the boot options; attach one, choose the network_interface \
         neutron, or another DHCP provider"
    );
    InterfaceError::invalid("ports", reason)
}
