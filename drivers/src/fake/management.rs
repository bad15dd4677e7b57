//! What machines start from that are not there.

use super::machines::Machines;
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootDeviceSetting, Interface, InterfaceError, ManagementInterface};
use farrier_conductor::model::{BootDevice, Node};

/// Takes every boot device that it lists.
#[derive(Debug)]
pub(super) struct FakeManagement {
    machines: Machines,
}

impl FakeManagement {
    pub(super) fn new(machines: Machines) -> Self {
        Self { machines }
    }
}

impl Interface for FakeManagement {}

#[async_trait]
impl ManagementInterface for FakeManagement {
    fn get_supported_boot_devices(&self, _node: &Node) -> Vec<BootDevice> {
        vec![BootDevice::Pxe]
    }

    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError> {
        let boot_device = BootDeviceSetting { device: Some(device), persistent: Some(persistent) };
        self.machines.tell(node, |machine| machine.boot_device = boot_device);
        Ok(())
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(self.machines.of(node).boot_device)
    }
}
