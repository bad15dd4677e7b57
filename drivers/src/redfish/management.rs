//! The management interface `redfish` (sections 9.2 and 9.4).

use super::boot_override::{self, Holds};
use super::client::bmc::Changed;
use super::client::bmcs::Bmcs;
use super::client::connection::{self, Description};
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::event_log;
use super::indicators;
use super::screenshot;
use super::sensors;
use super::system::System;
use super::virtual_media;
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootDeviceSetting, FirmwareVersion, Indicator, IndicatorState, Interface, InterfaceError,
    ManagementInterface, Properties, VirtualMedium,
};
use farrier_conductor::model::{BootDevice, BootMode, InterfaceKind, LogEntry, MacAddress, Node};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;
use uuid::Uuid;

/// The boot devices of machines whose BMCs have no lasting ones: set again before each power-on (F57). They are known for
/// as long as the conductor runs. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct Lasting(Arc<Mutex<HashMap<Uuid, BootDevice>>>);

impl Lasting {
    fn devices(&self) -> MutexGuard<'_, HashMap<Uuid, BootDevice>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a persistent boot device of a node, or that its BMC keeps it.
    fn note(&self, node: &Node, device: Option<BootDevice>) {
        let mut devices = self.devices();
        match device {
            Some(device) => drop(devices.insert(node.uuid, device)),
            None => drop(devices.remove(&node.uuid)),
        }
    }

    /// Sets the boot device of a node's machine again, unless another one is set now.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(super) async fn restore(&self, system: &System, node: &Node) -> Result<(), RedfishError> {
        let Some(device) = self.devices().get(&node.uuid).copied() else { return Ok(()) };
        match Holds::read(&boot_override::read(system).await?) {
            Some(Holds::Once | Holds::Continuous) => Ok(()),
            Some(Holds::Disabled) | None => boot_override::set(system, device, false).await.map(drop),
        }
    }

    /// Forgets that of a node.
    pub(super) fn forget(&self, node: &Node) {
        self.note(node, None);
    }
}

/// Manages machines by their BMCs.
#[derive(Debug)]
pub struct RedfishManagement {
    bmcs: Bmcs,
    lasting: Lasting,
}

impl RedfishManagement {
    /// Manages the machines of these BMCs, and notes in `lasting` what has to be set again.
    pub fn new(bmcs: Bmcs, lasting: Lasting) -> Self {
        Self { bmcs, lasting }
    }

    async fn secure_boot(&self, system: &System) -> Result<Resource, RedfishError> {
        let seen = system.read().await?;
        let Some(path) = seen.link("/SecureBoot") else {
            return Err(
                system.lacks("a machine without Secure Boot", "leave secure_boot out of its capabilities")
            );
        };
        system.bmc.get(path).await
    }
}

#[async_trait]
impl Interface for RedfishManagement {
    fn get_properties(&self) -> Properties {
        connection::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Description::read(node).map(drop)
    }
}

#[async_trait]
impl ManagementInterface for RedfishManagement {
    fn get_supported_boot_devices(&self, _node: &Node) -> Vec<BootDevice> {
        boot_override::devices()
    }

    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError> {
        let holds = boot_override::set(&self.bmcs.system(node)?, device, persistent).await?;
        if persistent {
            self.lasting.note(node, (holds == Holds::Once).then_some(device));
        }
        Ok(())
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        let seen = boot_override::read(&self.bmcs.system(node)?).await?;
        let persistent = match Holds::read(&seen) {
            Some(Holds::Continuous) => Some(true),
            Some(Holds::Once) => Some(false),
            Some(Holds::Disabled) | None => return Ok(BootDeviceSetting::default()),
        };
        Ok(BootDeviceSetting { device: boot_override::device(&seen), persistent })
    }

    fn get_supported_boot_modes(&self, _node: &Node) -> Vec<BootMode> {
        vec![BootMode::Uefi, BootMode::Bios]
    }

    async fn set_boot_mode(&self, node: &Node, mode: BootMode) -> Result<(), InterfaceError> {
        Ok(boot_override::set_mode(&self.bmcs.system(node)?, mode).await?)
    }

    async fn get_boot_mode(&self, node: &Node) -> Result<BootMode, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let mode = boot_override::mode(&system.read().await?);
        let unknown =
            || system.lacks("a machine that does not tell its boot mode", "look at its firmware's setup");
        Ok(mode.ok_or_else(unknown)?)
    }

    async fn get_secure_boot_state(&self, node: &Node) -> Result<bool, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = self.secure_boot(&system).await?;
        let unknown =
            || system.lacks("a machine that does not tell of Secure Boot", "look at its firmware's setup");
        Ok(seen.at("/SecureBootEnable").as_bool().ok_or_else(unknown)?)
    }

    async fn set_secure_boot_state(&self, node: &Node, on: bool) -> Result<(), InterfaceError> {
        let system = self.bmcs.system(node)?;
        if on && boot_override::mode(&system.read().await?) == Some(BootMode::Bios) {
            let advice = "set its boot mode to uefi first";
            return Err(system
                .lacks("a machine that starts by its boot sector, which has no Secure Boot", advice)
                .into());
        }
        let before = self.secure_boot(&system).await?;
        let is_so = |now: &Resource| now.at("/SecureBootEnable").as_bool() == Some(on);
        match system.bmc.change(before.path(), &json!({"SecureBootEnable": on}), is_so).await? {
            Changed::Done => Ok(()),
            Changed::Not(_) => {
                Err(system.lacks("a machine that keeps its Secure Boot as it was", "look at its keys").into())
            }
        }
    }

    async fn get_sensors_data(&self, node: &Node) -> Result<Map<String, Value>, InterfaceError> {
        Ok(sensors::read(&self.bmcs.system(node)?).await?)
    }

    async fn get_screenshot(&self, node: &Node) -> Result<Vec<u8>, InterfaceError> {
        match screenshot::read(&self.bmcs.system(node)?).await? {
            Some(image) => Ok(image),
            None => InterfaceError::unsupported(InterfaceKind::Management, "get_screenshot"),
        }
    }

    async fn get_supported_indicators(&self, node: &Node) -> Result<Vec<Indicator>, InterfaceError> {
        Ok(indicators::list(&self.bmcs.system(node)?).await?)
    }

    async fn get_indicator_state(
        &self,
        node: &Node,
        indicator: &Indicator,
    ) -> Result<IndicatorState, InterfaceError> {
        Ok(indicators::state(&self.bmcs.system(node)?, indicator).await?)
    }

    async fn set_indicator_state(
        &self,
        node: &Node,
        indicator: &Indicator,
        state: IndicatorState,
    ) -> Result<(), InterfaceError> {
        Ok(indicators::set(&self.bmcs.system(node)?, indicator, state).await?)
    }

    async fn get_firmware_versions(&self, node: &Node) -> Result<Vec<FirmwareVersion>, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = system.read().await?;
        let mut versions = vec![("bios", seen.text("/BiosVersion").map(str::to_owned))];
        let managers = system.managers(&seen).await.inspect_err(|error| tracing::debug!("{error}"));
        if let Some(manager) = managers.unwrap_or_default().first() {
            // What it does not tell takes nothing from the rest.
            let manager = system.bmc.get(manager).await.inspect_err(|error| tracing::debug!("{error}")).ok();
            versions.push(("bmc", manager.and_then(|it| it.text("/FirmwareVersion").map(str::to_owned))));
        }
        let read = versions.into_iter().filter_map(|(component, version)| {
            Some(FirmwareVersion { component: component.to_owned(), version: version? })
        });
        Ok(read.collect())
    }

    async fn get_event_log(
        &self,
        node: &Node,
        since: OffsetDateTime,
    ) -> Result<Vec<LogEntry>, InterfaceError> {
        Ok(event_log::read(&self.bmcs.system(node)?, since).await?)
    }

    async fn inject_nmi(&self, node: &Node) -> Result<(), InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = system.read().await?;
        let target = seen.action("ComputerSystem.Reset");
        let target = target
            .ok_or_else(|| system.lacks("a machine that cannot be reset", "look at the user's rights"))?;
        Ok(system.bmc.post(target, Some(&json!({"ResetType": "Nmi"}))).await?)
    }

    async fn detect_vendor(&self, node: &Node) -> Result<String, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = system.read().await?;
        // The maker of the BMC counts: machines are sold under other names.
        let root = system.bmc.root().await.inspect_err(|error| tracing::debug!("{error}")).ok();
        let vendor = root.as_ref().and_then(|root| root.text("/Vendor")).or(seen.text("/Manufacturer"));
        let unknown = || system.lacks("a machine that does not tell who made it", "set its vendor by hand");
        Ok(vendor.ok_or_else(unknown)?.to_owned())
    }

    async fn get_mac_addresses(&self, node: &Node) -> Result<Vec<MacAddress>, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = system.read().await?;
        let Some(cards) = seen.link("/EthernetInterfaces") else { return Ok(Vec::new()) };
        let mut addresses = Vec::new();
        for card in system.bmc.members(cards).await? {
            // One card that cannot be read takes nothing from the others.
            let Ok(card) = system.bmc.get(&card).await else { continue };
            let address = card.text("/PermanentMACAddress").or(card.text("/MACAddress"));
            addresses.extend(address.and_then(|address| address.parse().ok()));
        }
        Ok(addresses)
    }

    async fn get_virtual_media(&self, node: &Node) -> Result<Vec<VirtualMedium>, InterfaceError> {
        Ok(virtual_media::media(&self.bmcs.system(node)?).await?)
    }

    async fn attach_virtual_media(
        &self,
        node: &Node,
        device: BootDevice,
        url: &str,
    ) -> Result<(), InterfaceError> {
        Ok(virtual_media::insert(&self.bmcs.system(node)?, device, url).await?)
    }

    async fn set_http_boot_url(&self, node: &Node, url: Option<&str>) -> Result<(), InterfaceError> {
        Ok(boot_override::set_http_url(&self.bmcs.system(node)?, url).await?)
    }

    async fn detach_virtual_media(&self, node: &Node, devices: &[BootDevice]) -> Result<(), InterfaceError> {
        Ok(virtual_media::eject(&self.bmcs.system(node)?, devices).await?)
    }
}
