//! The management interface `ilo`.

use super::driver_info_keys::{KEYS, as_redfish, of_ilo};
use crate::redfish::{Bmcs, Lasting, RedfishManagement};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootDeviceSetting, FirmwareVersion, Indicator, IndicatorState, Interface, InterfaceError,
    ManagementInterface, Properties, VirtualMedium,
};
use farrier_conductor::model::{BootDevice, BootMode, LogEntry, MacAddress, Node};
use serde_json::{Map, Value};
use time::OffsetDateTime;

/// Manages machines by their iLOs.
#[derive(Debug)]
pub struct IloManagement(RedfishManagement);

impl IloManagement {
    /// Manages the machines of these iLOs, and notes in `lasting` what has to be set again.
    pub fn new(bmcs: Bmcs, lasting: Lasting) -> Self {
        Self(RedfishManagement::new(bmcs, lasting))
    }
}

#[async_trait]
impl Interface for IloManagement {
    fn get_properties(&self) -> Properties {
        KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.validate(&as_redfish(node)?).await.map_err(of_ilo)
    }
}

#[async_trait]
impl ManagementInterface for IloManagement {
    fn get_supported_boot_devices(&self, node: &Node) -> Vec<BootDevice> {
        self.0.get_supported_boot_devices(node)
    }

    fn get_supported_boot_modes(&self, node: &Node) -> Vec<BootMode> {
        self.0.get_supported_boot_modes(node)
    }

    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError> {
        self.0.set_boot_device(&as_redfish(node)?, device, persistent).await.map_err(of_ilo)
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        self.0.get_boot_device(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn set_boot_mode(&self, node: &Node, mode: BootMode) -> Result<(), InterfaceError> {
        self.0.set_boot_mode(&as_redfish(node)?, mode).await.map_err(of_ilo)
    }

    async fn get_boot_mode(&self, node: &Node) -> Result<BootMode, InterfaceError> {
        self.0.get_boot_mode(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_secure_boot_state(&self, node: &Node) -> Result<bool, InterfaceError> {
        self.0.get_secure_boot_state(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn set_secure_boot_state(&self, node: &Node, on: bool) -> Result<(), InterfaceError> {
        self.0.set_secure_boot_state(&as_redfish(node)?, on).await.map_err(of_ilo)
    }

    async fn get_sensors_data(&self, node: &Node) -> Result<Map<String, Value>, InterfaceError> {
        self.0.get_sensors_data(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_screenshot(&self, node: &Node) -> Result<Vec<u8>, InterfaceError> {
        self.0.get_screenshot(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_supported_indicators(&self, node: &Node) -> Result<Vec<Indicator>, InterfaceError> {
        self.0.get_supported_indicators(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_indicator_state(
        &self,
        node: &Node,
        indicator: &Indicator,
    ) -> Result<IndicatorState, InterfaceError> {
        self.0.get_indicator_state(&as_redfish(node)?, indicator).await.map_err(of_ilo)
    }

    async fn set_indicator_state(
        &self,
        node: &Node,
        indicator: &Indicator,
        state: IndicatorState,
    ) -> Result<(), InterfaceError> {
        self.0.set_indicator_state(&as_redfish(node)?, indicator, state).await.map_err(of_ilo)
    }

    async fn get_firmware_versions(&self, node: &Node) -> Result<Vec<FirmwareVersion>, InterfaceError> {
        self.0.get_firmware_versions(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_event_log(
        &self,
        node: &Node,
        since: OffsetDateTime,
    ) -> Result<Vec<LogEntry>, InterfaceError> {
        self.0.get_event_log(&as_redfish(node)?, since).await.map_err(of_ilo)
    }

    async fn inject_nmi(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.inject_nmi(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn detect_vendor(&self, node: &Node) -> Result<String, InterfaceError> {
        self.0.detect_vendor(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_mac_addresses(&self, node: &Node) -> Result<Vec<MacAddress>, InterfaceError> {
        self.0.get_mac_addresses(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn get_virtual_media(&self, node: &Node) -> Result<Vec<VirtualMedium>, InterfaceError> {
        self.0.get_virtual_media(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn attach_virtual_media(
        &self,
        node: &Node,
        device: BootDevice,
        url: &str,
    ) -> Result<(), InterfaceError> {
        self.0.attach_virtual_media(&as_redfish(node)?, device, url).await.map_err(of_ilo)
    }

    async fn detach_virtual_media(&self, node: &Node, devices: &[BootDevice]) -> Result<(), InterfaceError> {
        self.0.detach_virtual_media(&as_redfish(node)?, devices).await.map_err(of_ilo)
    }
}
