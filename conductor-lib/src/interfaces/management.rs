//! Management: what firmware starts from and how, sensors, virtual media (section 9.2), and the controller's own log.

use super::base::{Interface, InterfaceError};
use super::indicator::{Indicator, IndicatorState};
use crate::model::InterfaceKind::Management;
use crate::model::{BootDevice, BootMode, LogEntry, MacAddress, Node};
use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;

/// What firmware starts from, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BootDeviceSetting {
    /// The device.
    pub device: Option<BootDevice>,
    /// Whether it holds for more than one start.
    pub persistent: Option<bool>,
}

/// What is in a virtual drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VirtualMedium {
    /// URL of the medium; nothing where there is none.
    pub image: Option<String>,
    /// Whether there is one.
    pub inserted: bool,
    /// What the drive can be.
    pub media_types: Vec<BootDevice>,
}

/// The version of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareVersion {
    /// Of what: `bios`, `bmc`.
    pub component: String,
    /// What its maker calls it.
    pub version: String,
}

/// Manages a machine by its BMC. Every method may fail with [`InterfaceError::Unsupported`].
#[async_trait]
pub trait ManagementInterface: Interface {
    /// The boot devices that the machine supports.
    fn get_supported_boot_devices(&self, node: &Node) -> Vec<BootDevice>;

    /// Has the machine start from a device, once or from now on.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError>;

    /// What the machine starts from.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError>;

    /// The boot modes that the machine supports.
    fn get_supported_boot_modes(&self, _node: &Node) -> Vec<BootMode> {
        Vec::new()
    }

    /// Has the machine start by the boot sector or by UEFI.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn set_boot_mode(&self, _node: &Node, _mode: BootMode) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "set_boot_mode")
    }

    /// How the machine starts.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_boot_mode(&self, _node: &Node) -> Result<BootMode, InterfaceError> {
        InterfaceError::unsupported(Management, "get_boot_mode")
    }

    /// Whether the machine starts only what is signed.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_secure_boot_state(&self, _node: &Node) -> Result<bool, InterfaceError> {
        InterfaceError::unsupported(Management, "get_secure_boot_state")
    }

    /// Has the machine start only what is signed, or anything.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn set_secure_boot_state(&self, _node: &Node, _on: bool) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "set_secure_boot_state")
    }

    /// What the sensors say, by their kind and name.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_sensors_data(&self, _node: &Node) -> Result<Map<String, Value>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_sensors_data")
    }

    /// The lights of the machine.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_supported_indicators(&self, _node: &Node) -> Result<Vec<Indicator>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_supported_indicators")
    }

    /// What one of these lights does.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_indicator_state(
        &self,
        _node: &Node,
        _indicator: &Indicator,
    ) -> Result<IndicatorState, InterfaceError> {
        InterfaceError::unsupported(Management, "get_indicator_state")
    }

    /// Has one of these lights do something that it can.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn set_indicator_state(
        &self,
        _node: &Node,
        _indicator: &Indicator,
        _state: IndicatorState,
    ) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "set_indicator_state")
    }

    /// The versions of the machine's firmware.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_firmware_versions(&self, _node: &Node) -> Result<Vec<FirmwareVersion>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_firmware_versions")
    }

    /// What the machine's controller wrote into its own log since a moment: the latest dozens, the oldest first.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_event_log(
        &self,
        _node: &Node,
        _since: OffsetDateTime,
    ) -> Result<Vec<LogEntry>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_event_log")
    }

    /// What is on the machine's screen, in one of the formats of [`PictureFormat`](super::PictureFormat).
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_screenshot(&self, _node: &Node) -> Result<Vec<u8>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_screenshot")
    }

    /// Interrupts what runs on the machine, so that it reports why it hangs.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn inject_nmi(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "inject_nmi")
    }

    /// Who made the machine.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn detect_vendor(&self, _node: &Node) -> Result<String, InterfaceError> {
        InterfaceError::unsupported(Management, "detect_vendor")
    }

    /// The addresses of its network cards.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_mac_addresses(&self, _node: &Node) -> Result<Vec<MacAddress>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_mac_addresses")
    }

    /// What is in the virtual drives.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn get_virtual_media(&self, _node: &Node) -> Result<Vec<VirtualMedium>, InterfaceError> {
        InterfaceError::unsupported(Management, "get_virtual_media")
    }

    /// Has a virtual drive hold the medium at this URL.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn attach_virtual_media(
        &self,
        _node: &Node,
        _device: BootDevice,
        _url: &str,
    ) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "attach_virtual_media")
    }

    /// Has the firmware boot by HTTP from this URL, or from the URL of its network; the boot device is set apart.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn set_http_boot_url(&self, _node: &Node, _url: Option<&str>) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "set_http_boot_url")
    }

    /// Empties these virtual drives, or all.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn detach_virtual_media(
        &self,
        _node: &Node,
        _devices: &[BootDevice],
    ) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Management, "detach_virtual_media")
    }
}
