//! Boot (sections 6.1 and 6.12).

mod extension;

pub use extension::{BootExtension, BootFile};

use super::base::{Interface, InterfaceError};
use super::management::ManagementInterface;
use super::network::NetworkInterface;
use crate::model::InterfaceKind::Boot;
use crate::model::{BootDevice, MacAddress, Node, ProvisionState};
use async_trait::async_trait;
use extension::NoExtension;
use farrier_media::KernelParameters;
use std::fmt;
use uuid::Uuid;

/// What else than the agent and local disks a boot interface can boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BootCapability {
    /// A ramdisk that is the instance.
    RamdiskBoot,
    /// Such a ramdisk, and a config drive with it.
    RamdiskBootConfigdrive,
    /// A volume by iSCSI.
    IscsiVolumeBoot,
    /// Anything by iPXE.
    IpxeBoot,
    /// Anything by PXE.
    PxeBoot,
}

impl BootCapability {
    /// The word in lists of capabilities.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RamdiskBoot => "ramdisk_boot",
            Self::RamdiskBootConfigdrive => "ramdisk_boot_configdrive",
            Self::IscsiVolumeBoot => "iscsi_volume_boot",
            Self::IpxeBoot => "ipxe_boot",
            Self::PxeBoot => "pxe_boot",
        }
    }
}

impl fmt::Display for BootCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a deploy interface needs of the boot interface beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootNeed {
    /// Nothing: it boots no machine.
    Nothing,
    /// That there is one.
    Any,
    /// That it can do this.
    Capability(BootCapability),
}

impl BootNeed {
    /// Whether a boot interface with these capabilities does, or none where there is none.
    pub fn is_met_by(self, boot: Option<&[BootCapability]>) -> bool {
        match (self, boot) {
            (Self::Nothing, _) | (Self::Any, Some(_)) => true,
            (Self::Capability(capability), Some(capabilities)) => capabilities.contains(&capability),
            (Self::Any | Self::Capability(_), None) => false,
        }
    }
}

impl fmt::Display for BootNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no boot interface"),
            Self::Any => f.write_str("a boot interface"),
            Self::Capability(capability) => write!(f, "a boot interface with the capability {capability}"),
        }
    }
}

/// A node, and those of its interfaces that booting it may need.
#[derive(Clone, Copy)]
pub struct BootContext<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its management, for the boot device and virtual media.
    pub management: &'a dyn ManagementInterface,
    /// Its network.
    pub network: &'a dyn NetworkInterface,
}

impl BootContext<'_> {
    /// Sets the boot device, unless the machine is adopted, which starts as it does already. Whether that holds for one
    /// boot or for all, `driver_info` may force (section 9.2).
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    pub async fn set_boot_device(&self, device: BootDevice, persistent: bool) -> Result<(), InterfaceError> {
        if self.node.provision_state == ProvisionState::Adopting {
            return Ok(());
        }
        let forced = self
            .node
            .driver_info
            .force_persistent_boot_device()
            .map_err(|error| InterfaceError::driver_info(&error.key, error.reason))?;
        self.management.set_boot_device(self.node, device, forced.unwrap_or(persistent)).await
    }

    /// Undoes the boot of the ramdisk, and sets the disk as the boot device from now on: by this most boot interfaces
    /// [prepare an instance](BootInterface::prepare_instance).
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    pub async fn boot_from_disk(self, interface: &dyn BootInterface) -> Result<(), InterfaceError> {
        interface.clean_up_ramdisk(self).await?;
        self.set_boot_device(BootDevice::Disk, true).await
    }
}

/// How a client that asks for a boot file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootClient {
    /// By the address of a network card.
    Card(MacAddress),
    /// By the identity of its node.
    Node(Uuid),
}

/// Makes a machine boot the ramdisk or its instance: the methods of contract 6.1. Calls that prepare or clean up hold the
/// node's lease, and each may be made again after a conductor stopped in the middle of it.
#[async_trait]
pub trait BootInterface: Interface {
    /// What else than the agent and local disks it can boot.
    fn capabilities(&self) -> &[BootCapability] {
        &[]
    }

    /// What it can do beyond this contract; nothing by default.
    fn extension(&self) -> &dyn BootExtension {
        &NoExtension
    }

    /// Has the next power-on start the ramdisk with these kernel parameters.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError>;

    /// Undoes [`Self::prepare_ramdisk`]; nothing happens where nothing was prepared.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError>;

    /// Has the machine start the system on its disk from now on, as [`BootContext::boot_from_disk`] does.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError>;

    /// Undoes [`Self::prepare_instance`] and [`BootExtension::prepare_ramdisk_instance`]; nothing happens where nothing was
    /// prepared.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError>;

    /// Checks whether the machine can boot the ramdisk for a rescue.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] when it never can.
    async fn validate_rescue(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Boot, "validate_rescue")
    }

    /// Checks whether the conductor can boot the ramdisk for an inspection.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] when an operator boots it.
    async fn validate_inspection(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Boot, "validate_inspection")
    }

    /// The text of a boot configuration, for firmware that asks the conductor for it by its name (section 7). Nothing
    /// when there is none of this name.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] when no firmware asks.
    async fn get_boot_config(&self, _node: &Node, _name: &str) -> Result<Option<String>, InterfaceError> {
        InterfaceError::unsupported(Boot, "get_boot_config")
    }
}
