//! The interfaces of nodes that need none.

use super::base::{Interface, InterfaceError};
use super::dhcp::{DhcpOption, DhcpProvider};
use super::management::{BootDeviceSetting, ManagementInterface};
use super::network::{NetworkInterface, NetworkKind};
use super::outcome::DriverStep;
use super::raid::RaidInterface;
use super::storage::StorageInterface;
use crate::model::{BootDevice, InterfaceKind, MacAddress, Node, PlannedStep, RequestedStep, StepKind};
use crate::plan::KnownStep;
use async_trait::async_trait;
use farrier_protocol::step::ArgumentInfo;
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

/// An interface that clients name for every node of a hardware type, though few need what it does: it refuses its steps,
/// each with the reason, before the machine is touched.
#[derive(Debug, Clone, Copy)]
pub struct RefusedSteps {
    /// What the interface is for.
    pub kind: InterfaceKind,
    /// Its steps, each with the names of its arguments.
    pub steps: &'static [(&'static str, &'static [&'static str])],
    /// The operations that may have them.
    pub of: &'static [StepKind],
    /// Why they are refused, and what to do in their place.
    pub reason: &'static str,
}

impl RefusedSteps {
    fn refuse<T>(&self, step: &str) -> Result<T, InterfaceError> {
        Err(InterfaceError::invalid(&format!("step {}.{step}", self.kind), self.reason))
    }
}

#[async_trait]
impl Interface for RefusedSteps {
    fn steps(&self, kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        let arguments = |names: &[&str]| {
            let described = names.iter().map(|name| {
                ((*name).to_owned(), ArgumentInfo { description: String::new(), required: false })
            });
            described.collect()
        };
        let steps = self.steps.iter().filter(|_| self.of.contains(&kind)).map(|(step, names)| KnownStep {
            arguments: arguments(names),
            requires_ramdisk: false,
            ..KnownStep::new(kind, self.kind.as_str(), step, 0)
        });
        steps.collect()
    }

    async fn validate_step(&self, _node: &Node, step: &RequestedStep) -> Result<(), InterfaceError> {
        self.refuse(&step.id.step)
    }

    async fn execute_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        self.refuse(&step.step)
    }
}

#[async_trait]
impl RaidInterface for RefusedSteps {
    /// What is wanted is written down, and refused when it is to be made.
    async fn validate_raid_config(&self, _: &Node, _: &Map<String, Value>) -> Result<(), InterfaceError> {
        Ok(())
    }
}
