//! What a machine starts from when it boots no ramdisk: its disk, or the network.

use super::{Folders, QemuError};
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootDeviceSetting, Interface, InterfaceError, ManagementInterface};
use farrier_conductor::model::{BootDevice, Node};
use std::path::{Path, PathBuf};

/// Content of the file for one start and for all.
const ONCE: &str = "pxe once";
const ALWAYS: &str = "pxe always";

/// Sets the boot device of local QEMU machines.
#[derive(Debug)]
pub(super) struct QemuManagement {
    folders: Folders,
}

impl QemuManagement {
    pub(super) fn new(folders: Folders) -> Self {
        Self { folders }
    }
}

impl Interface for QemuManagement {}

#[async_trait]
impl ManagementInterface for QemuManagement {
    fn get_supported_boot_devices(&self, _node: &Node) -> Vec<BootDevice> {
        vec![BootDevice::Disk, BootDevice::Pxe]
    }

    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError> {
        match device {
            BootDevice::Disk => Ok(super::remove(&file(&self.folders.of(node)))?),
            BootDevice::Pxe => {
                let file = file(&self.folders.made_for(node)?);
                let content = if persistent { ALWAYS } else { ONCE };
                Ok(std::fs::write(&file, content).map_err(QemuError::file(&file))?)
            }
            other => Err(InterfaceError::driver(QemuError::BootDevice(other))),
        }
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        let (device, persistent) = match super::read(&file(&self.folders.of(node)))? {
            Some(content) => (BootDevice::Pxe, content == ALWAYS),
            None => (BootDevice::Disk, true),
        };
        Ok(BootDeviceSetting { device: Some(device), persistent: Some(persistent) })
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("boot-device")
}

/// Whether the machine must network-boot now. A one-time boot device is used up then.
pub(super) fn takes_network(folder: &Path) -> Result<bool, QemuError> {
    let content = super::read(&file(folder))?;
    if content.as_deref() == Some(ONCE) {
        super::remove(&file(folder))?;
    }
    Ok(content.is_some())
}

/// Forgets what was set.
pub(super) fn forget(folder: &Path) -> Result<(), QemuError> {
    super::remove(&file(folder))
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::node;
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_machine_starts_from_the_network_once_or_always() {
        let folder = tempfile::tempdir().unwrap();
        let management = QemuManagement::new(Folders::below(folder.path().into(), Default::default()));
        let node = node(&json!({}));
        let of_node = folder.path().join(node.uuid.to_string());
        let setting =
            |device, persistent| BootDeviceSetting { device: Some(device), persistent: Some(persistent) };
        let disk = setting(BootDevice::Disk, true);
        assert_eq!(management.get_boot_device(&node).await.unwrap(), disk);
        for (persistent, starts) in [(false, [true, false, false]), (true, [true, true, true])] {
            management.set_boot_device(&node, BootDevice::Pxe, persistent).await.unwrap();
            let set = management.get_boot_device(&node).await.unwrap();
            assert_eq!(set, setting(BootDevice::Pxe, persistent));
            assert_eq!([(); 3].map(|()| takes_network(&of_node).unwrap()), starts);
        }
        management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
        assert_eq!(management.get_boot_device(&node).await.unwrap(), disk);
        let refused = management.set_boot_device(&node, BootDevice::Floppy, true).await.unwrap_err();
        assert!(refused.to_string().contains("floppy"), "{refused}");
    }
}
