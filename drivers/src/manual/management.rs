//! The management interface `manual`: the boot device is part of the order to power the machine on.

use super::desk::Desk;
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootDeviceSetting, Interface, InterfaceError, ManagementInterface};
use farrier_conductor::model::{BootDevice, Node};

/// Has operators choose what machines start from.
#[derive(Debug)]
pub(super) struct ManualManagement {
    desk: Desk,
}

impl ManualManagement {
    /// Adds manual actions to this desk.
    pub(super) fn new(desk: Desk) -> Self {
        Self { desk }
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
        Ok(self.desk.change(node, |note| note.device = Some((device, persistent)))?)
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(match self.desk.note(node.uuid).device {
            Some((device, persistent)) => {
                BootDeviceSetting { device: Some(device), persistent: Some(persistent) }
            }
            None => BootDeviceSetting::default(),
        })
    }
}
