//! The boot interface `redfish-virtual-media` (section 6.9), which is also `ilo-virtual-media` (section 6.11).

use super::shelf::{Medium, Shelf};
use crate::netboot::images::AllowedFolders;
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootContext, BootInterface, Interface, InterfaceError, Properties};
use farrier_conductor::model::{BootDevice, Family, Node};
use farrier_media::boot_iso::Additions;
use farrier_media::{KernelParameterError, KernelParameters};
use serde_json::{Map, Value};
use std::path::PathBuf;

const KEYS: Properties = &[
    (
        "deploy_iso",
        "absolute path of the ramdisk's ISO on the conductor's host, below a folder of --file-url-allowed-paths; required",
    ),
    ("rescue_iso", "the same for rescues; deploy_iso unless it is given"),
    ("kernel_append_params", "kernel parameters of the ramdisk, besides those that it needs"),
];

/// Where BMCs that know virtual media read the ramdisk from.
const DRIVE: BootDevice = BootDevice::Cdrom;

/// Boots machines from the virtual media of their BMCs. Clones are the same one.
#[derive(Debug, Clone)]
pub struct VirtualMediaBoot {
    shelf: Shelf,
    allowed: AllowedFolders,
}

impl VirtualMediaBoot {
    /// With this shelf, and ISOs from these folders.
    pub fn new(shelf: Shelf, allowed: AllowedFolders) -> Self {
        Self { shelf, allowed }
    }

    /// The ISO that a machine boots for the operation of its node.
    fn iso(&self, node: &Node) -> Result<PathBuf, InterfaceError> {
        let has_own = node.driver_info.contains_key("rescue_iso");
        let key = match node.provision_state.family() {
            Some(Family::Rescue) if has_own => "rescue_iso",
            _ => "deploy_iso",
        };
        let path = node.driver_info.text(key);
        let path = path.map_err(|error| InterfaceError::driver_info(key, error.reason))?;
        let missing = || InterfaceError::driver_info(key, "is missing; give the path of the ramdisk's ISO");
        let path = path.ok_or_else(missing)?;
        self.allowed.resolve(path.trim_start_matches("file://").as_ref()).ok_or_else(|| {
            let reason = "is no file below a folder that files may be taken from (--file-url-allowed-paths)";
            InterfaceError::driver_info(key, reason)
        })
    }
}

/// What the kernel is told beside what the conductor has to say.
fn own_parameters(node: &Node) -> Result<KernelParameters, InterfaceError> {
    let key = "kernel_append_params";
    let own = node.driver_info.text(key).map_err(|error| InterfaceError::driver_info(key, error.reason))?;
    own.unwrap_or_default().parse().map_err(refused)
}

/// The network of a machine, as it is put on a medium; nothing where addresses come by DHCP.
fn network_text(network_data: &Map<String, Value>) -> Option<String> {
    (!network_data.is_empty()).then(|| Value::from(network_data.clone()).to_string())
}

fn refused(error: KernelParameterError) -> InterfaceError {
    InterfaceError::driver_info("kernel_append_params", error.to_string())
}

#[async_trait]
impl Interface for VirtualMediaBoot {
    fn get_properties(&self) -> Properties {
        KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let additions =
            Additions { parameters: own_parameters(node)?, network_data: network_text(&node.network_data) };
        Ok(Medium::open(&self.iso(node)?, &additions).map(drop)?)
    }
}

#[async_trait]
impl BootInterface for VirtualMediaBoot {
    /// Whoever has the medium of a boot can be no other machine: its address is unknown.
    fn can_provide_config(&self) -> bool {
        true
    }

    /// The drive is emptied and filled, both proven by reading it again, before the machine is told to start from it.
    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let BootContext { node, management, network } = boot;
        let parameters = own_parameters(node)?
            .with("boot_method", "vmedia")
            .and_then(|own| own.followed_by(parameters))
            .map_err(refused)?;
        let network_data = network_text(&network.get_node_network_data(node).await?);
        let additions = Additions { parameters, network_data };
        let url = self.shelf.publish(node, &self.iso(node)?, &additions)?;
        management.detach_virtual_media(node, &[DRIVE]).await?;
        management.attach_virtual_media(node, DRIVE, &url).await?;
        boot.set_boot_device(DRIVE, false).await
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        let Some(reads) = self.shelf.reads(node) else { return Ok(()) };
        if reads.requests == 0 {
            tracing::warn!(
                node = node.name.as_deref().unwrap_or_default(),
                "the BMC has never read the medium that it said was inserted; see whether it reaches the conductor"
            );
        }
        management.detach_virtual_media(node, &[DRIVE]).await?;
        self.shelf.withdraw(node)?;
        Ok(())
    }

    async fn validate_rescue(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn validate_inspection(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }
}
