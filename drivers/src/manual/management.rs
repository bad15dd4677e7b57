//! The management interface `manual`: the boot device is part of the order to power the machine on.

use super::pending_actions::PendingActions;
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootDeviceSetting, Interface, InterfaceError, ManagementInterface};
use farrier_conductor::model::{BootDevice, Node};

/// Has operators choose what machines start from.
#[derive(Debug)]
pub(super) struct ManualManagement {
    pending_actions: PendingActions,
}

impl ManualManagement {
    /// Adds to these pending actions.
    pub(super) fn new(pending_actions: PendingActions) -> Self {
        Self { pending_actions }
    }
}

impl Interface for ManualManagement {}

#[async_trait]
impl ManagementInterface for ManualManagement {
    fn get_supported_boot_devices(&self, _node: &Node) -> Vec<BootDevice> {
        BootDevice::ALL.to_vec()
    }

    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError> {
        Ok(self.pending_actions.change(node, |action| action.device = Some((device, persistent)))?)
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(match self.pending_actions.of(node.uuid).device {
            Some((device, persistent)) => {
                BootDeviceSetting { device: Some(device), persistent: Some(persistent) }
            }
            None => BootDeviceSetting::default(),
        })
    }
}
