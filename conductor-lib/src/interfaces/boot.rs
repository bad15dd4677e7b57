//! Boot (sections 6.1 and 6.12).

use super::base::{Interface, InterfaceError};
use super::management::ManagementInterface;
use super::network::NetworkInterface;
use crate::model::InterfaceKind::Boot;
use crate::model::{BootDevice, MacAddress, Node, ProvisionState, RamdiskInstance};
use async_trait::async_trait;
use farrier_media::KernelParameters;
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;
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
}

/// A file that firmware or a boot loader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootFile {
    /// Its content, rendered from the record.
    Text(String),
    /// A file of the conductor's host.
    File(PathBuf),
}

/// How whoever asks for a boot file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootClient {
    /// By the address of a network card.
    Card(MacAddress),
    /// By the identity of its node.
    Node(Uuid),
}

/// Makes a machine boot the ramdisk or its instance. Calls that prepare or clean up hold the node's lease, and each may
/// be made again after a conductor stopped in the middle of it.
#[async_trait]
pub trait BootInterface: Interface {
    /// What else than the agent and local disks it can boot.
    fn capabilities(&self) -> &[BootCapability] {
        &[]
    }

    /// Whether the kernel parameters of the ramdisk reach this machine alone, so that the token of its agent may be among
    /// them: it then proves itself by what only it was given, and not by being the first that asks.
    fn can_provide_config(&self) -> bool {
        false
    }

    /// Whether the ramdisk may read what it was booted from for as long as it runs, and [`Self::clean_up_ramdisk`] takes that
    /// away: virtual media. Then [`Self::prepare_instance`] is asked for when the agent has ended.
    fn runs_from_medium(&self) -> bool {
        false
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

    /// Has the machine start its instance from now on. That is the system on its disk, unless an implementation boots
    /// something else.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.clean_up_ramdisk(boot).await?;
        boot.set_boot_device(BootDevice::Disk, true).await
    }

    /// Has the machine start an instance from now on that is a ramdisk, with its config drive (base64 of gzip, or its
    /// URL) beside it where there is one. Asked of those alone that have [`BootCapability::RamdiskBoot`], and with a
    /// config drive of those with [`BootCapability::RamdiskBootConfigdrive`].
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn prepare_ramdisk_instance(
        &self,
        _boot: BootContext<'_>,
        _instance: &RamdiskInstance,
        _config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Boot, "prepare_ramdisk_instance")
    }

    /// Undoes [`Self::prepare_instance`] and [`Self::prepare_ramdisk_instance`]; nothing happens where nothing was
    /// prepared.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

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
    /// [`InterfaceError::Unsupported`] when somebody else boots it then.
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

    /// A file that firmware or a boot loader of the machine asks for by TFTP or HTTP (section 6.4). Nothing when there is
    /// none of this name now.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] when nobody asks.
    async fn get_boot_file(&self, _node: &Node, _name: &str) -> Result<Option<BootFile>, InterfaceError> {
        InterfaceError::unsupported(Boot, "get_boot_file")
    }

    /// Makes true again what this interface keeps for the machine on servers that are not the conductor's, by a record that
    /// was read at this time, and tells whether it keeps anything there. Nobody works on the node, or somebody begins to.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`]; what is there stays.
    async fn refresh_boot_files(&self, _node: &Node, _seen_at: Instant) -> Result<bool, InterfaceError> {
        Ok(false)
    }

    /// The conductor's URL as a machine reaches it that is booted like this, given the URL on the conductor's own host.
    fn callback_url(&self, url: &str) -> String {
        url.to_owned()
    }
}
