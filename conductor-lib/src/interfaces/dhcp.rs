//! DHCP (section 6.7). A conductor has one provider, which those of its boot interfaces have that need one.

use super::base::InterfaceError;
use crate::model::{MacAddress, Node};
use async_trait::async_trait;
use std::net::IpAddr;

/// An option of a DHCP server for a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DhcpOption {
    /// Its name, or its number as text, with the tag that selects it where there is one.
    pub name: String,
    /// Its value.
    pub value: String,
    /// 4 or 6.
    pub ip_version: u8,
}

/// Sets the boot options of a DHCP server.
#[async_trait]
pub trait DhcpProvider: Send + Sync {
    /// Has the server send these options to one network card of a node.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn update_port_dhcp_opts(
        &self,
        node: &Node,
        port: &MacAddress,
        options: &[DhcpOption],
    ) -> Result<(), InterfaceError>;

    /// Has the server send these options to every network card of a node that it may boot from.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn update_dhcp_opts(&self, node: &Node, options: &[DhcpOption]) -> Result<(), InterfaceError> {
        for port in node.ports.iter().filter(|port| port.pxe_enabled) {
            self.update_port_dhcp_opts(node, &port.address, options).await?;
        }
        Ok(())
    }

    /// Has the server send nothing of the conductor's to a node any more.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn clean_dhcp_opts(&self, node: &Node) -> Result<(), InterfaceError>;

    /// The addresses that the server gave to a node, as far as it reports them.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_ip_addresses(&self, _node: &Node) -> Result<Vec<IpAddr>, InterfaceError> {
        Ok(Vec::new())
    }
}
