//! The interfaces of nodes that need none.

use super::base::{Interface, InterfaceError};
use super::console::ConsoleInterface;
use super::dhcp::{DhcpOption, DhcpProvider};
use super::inspect::InspectInterface;
use super::management::{BootDeviceSetting, ManagementInterface};
use super::network::{NetworkInterface, NetworkKind};
use super::raid::RaidInterface;
use super::rescue::RescueInterface;
use super::storage::StorageInterface;
use super::vendor::VendorInterface;
use crate::error::Error;
use crate::model::{BootDevice, InterfaceKind, MacAddress, Node};
use crate::task::Task;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// `noop`: there is nothing to do, and so it is done. A machine that starts from its network first and then from its
/// disk needs no management; one whose cables are as they should be needs no network interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noop;

impl Interface for Noop {}

#[async_trait]
impl ManagementInterface for Noop {
    fn get_supported_boot_devices(&self, _node: &Node) -> Vec<BootDevice> {
        vec![BootDevice::Pxe, BootDevice::Disk]
    }

    async fn set_boot_device(&self, _: &Node, _: BootDevice, _: bool) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_boot_device(&self, _node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(BootDeviceSetting::default())
    }
}

#[async_trait]
impl NetworkInterface for Noop {
    async fn add_network(&self, _node: &mut Node, _kind: NetworkKind) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn remove_network(&self, _node: &mut Node, _kind: NetworkKind) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn configure_tenant_networks(&self, _node: &mut Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn unconfigure_tenant_networks(&self, _node: &mut Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn vif_attach(&self, _node: &mut Node, _vif: &Map<String, Value>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn vif_detach(&self, _node: &mut Node, _vif: &str) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn vif_list(&self, _node: &Node) -> Result<Vec<String>, InterfaceError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl StorageInterface for Noop {
    async fn attach_volumes(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn detach_volumes(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// The DHCP provider `none`: somebody else sends the right options.
#[async_trait]
impl DhcpProvider for Noop {
    async fn update_port_dhcp_opts(
        &self,
        _node: &Node,
        _port: &MacAddress,
        _options: &[DhcpOption],
    ) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn clean_dhcp_opts(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// `no-console` and the like: the node has no such interface, and whoever needs it is told so.
#[derive(Debug, Clone, Copy)]
pub struct Absent(
    /// What the node has no interface for.
    pub InterfaceKind,
);

#[async_trait]
impl Interface for Absent {
    async fn validate(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(self.0, self.0.as_str())
    }
}

impl ConsoleInterface for Absent {}

impl VendorInterface for Absent {}

impl InspectInterface for Absent {}

#[async_trait]
impl RescueInterface for Absent {
    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }
}

impl RaidInterface for Absent {}
