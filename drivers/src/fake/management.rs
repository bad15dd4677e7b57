//! What machines start from that are not there.

use super::machines::Machines;
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootDeviceSetting, Interface, InterfaceError, ManagementInterface, VirtualMedium,
};
use farrier_conductor::model::{BootDevice, BootMode, Node};

/// Its virtual drives.
const DRIVES: [BootDevice; 2] = [BootDevice::Cdrom, BootDevice::Floppy];

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
        self.machines.update(node, |machine| machine.boot_device = boot_device);
        Ok(())
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(self.machines.of(node).boot_device)
    }

    fn get_supported_boot_modes(&self, _node: &Node) -> Vec<BootMode> {
        vec![BootMode::Bios, BootMode::Uefi]
    }

    async fn set_boot_mode(&self, node: &Node, mode: BootMode) -> Result<(), InterfaceError> {
        self.machines.update(node, |machine| machine.boot_mode = mode);
        Ok(())
    }

    async fn get_boot_mode(&self, node: &Node) -> Result<BootMode, InterfaceError> {
        Ok(self.machines.of(node).boot_mode)
    }

    async fn set_secure_boot_state(&self, node: &Node, on: bool) -> Result<(), InterfaceError> {
        self.machines.update(node, |machine| machine.secure_boot = on);
        Ok(())
    }

    async fn get_secure_boot_state(&self, node: &Node) -> Result<bool, InterfaceError> {
        Ok(self.machines.of(node).secure_boot)
    }

    async fn inject_nmi(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_virtual_media(&self, node: &Node) -> Result<Vec<VirtualMedium>, InterfaceError> {
        let media = self.machines.of(node).media;
        let drive = |drive: BootDevice| {
            let image = media.get(&drive).cloned();
            VirtualMedium { inserted: image.is_some(), image, media_types: vec![drive] }
        };
        Ok(DRIVES.map(drive).into())
    }

    async fn attach_virtual_media(
        &self,
        node: &Node,
        drive: BootDevice,
        url: &str,
    ) -> Result<(), InterfaceError> {
        self.machines.update(node, |machine| drop(machine.media.insert(drive, url.to_owned())));
        Ok(())
    }

    async fn detach_virtual_media(&self, node: &Node, drives: &[BootDevice]) -> Result<(), InterfaceError> {
        let is_meant = |drive: &BootDevice| drives.is_empty() || drives.contains(drive);
        self.machines.update(node, |machine| machine.media.retain(|drive, _| !is_meant(drive)));
        Ok(())
    }
}
