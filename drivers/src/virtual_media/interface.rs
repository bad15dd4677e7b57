//! The boot interface `redfish-virtual-media` (section 6.9), which is also `ilo-virtual-media` (section 6.11).

use super::shelf::{Medium, Shelf};
use crate::netboot::images::AllowedFolders;
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootInterface, Interface, InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, Family, Node, RamdiskInstance};
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

const NOT_ALLOWED: &str = "is no file below a folder that files may be taken from (--file-url-allowed-paths)";

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
        self.file(path).ok_or_else(|| InterfaceError::driver_info(key, NOT_ALLOWED))
    }

    fn file(&self, path: &str) -> Option<PathBuf> {
        self.allowed.resolve(path.trim_start_matches("file://").as_ref())
    }

    /// Where the BMC reads the ISO that is an instance: on a server of the site, or here.
    fn url_of_instance(&self, node: &Node, instance: &RamdiskInstance) -> Result<String, InterfaceError> {
        let RamdiskInstance::Iso(iso) = instance else {
            return Err(InterfaceError::invalid(
                "instance_info boot_iso",
                "is missing; virtual media boot ISOs alone",
            ));
        };
        if iso.starts_with("http://") || iso.starts_with("https://") {
            self.shelf.withdraw(node)?;
            return Ok(iso.clone());
        }
        let file = self.file(iso);
        let file = file.ok_or_else(|| InterfaceError::invalid("instance_info boot_iso", NOT_ALLOWED))?;
        Ok(self.shelf.publish(node, &file, None)?)
    }
}

/// Has the machine start from a medium, once or from now on. The drive is emptied and filled, both proven by reading it
/// again, before the machine is told to.
async fn insert(boot: BootContext<'_>, url: &str, persistent: bool) -> Result<(), InterfaceError> {
    let BootContext { node, management, .. } = boot;
    management.detach_virtual_media(node, &[DRIVE]).await?;
    management.attach_virtual_media(node, DRIVE, url).await?;
    boot.set_boot_device(DRIVE, persistent).await
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
        Ok(Medium::open(&self.iso(node)?, Some(&additions)).map(drop)?)
    }
}

#[async_trait]
impl BootInterface for VirtualMediaBoot {
    /// Whoever has the medium of a boot can be no other machine: its address is unknown.
    fn can_provide_config(&self) -> bool {
        true
    }

    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot]
    }

    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let BootContext { node, network, .. } = boot;
        let parameters = own_parameters(node)?
            .with("boot_method", "vmedia")
            .and_then(|own| own.followed_by(parameters))
            .map_err(refused)?;
        let network_data = network_text(&network.get_node_network_data(node).await?);
        let additions = Additions { parameters, network_data };
        let url = self.shelf.publish(node, &self.iso(node)?, Some(&additions))?;
        insert(boot, &url, false).await
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

    async fn prepare_ramdisk_instance(
        &self,
        boot: BootContext<'_>,
        instance: &RamdiskInstance,
        _config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        let url = self.url_of_instance(boot.node, instance)?;
        insert(boot, &url, true).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        if matches!(RamdiskInstance::read(node), Ok(RamdiskInstance::Iso(_))) {
            management.detach_virtual_media(node, &[DRIVE]).await?;
            self.shelf.withdraw(node)?;
        }
        Ok(())
    }

    async fn validate_rescue(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn validate_inspection(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }
}
