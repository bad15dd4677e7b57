//! The boot interface `redfish-https`: the BMC tells the firmware a URL, and the firmware loads the medium from there by
//! itself (UEFI HTTP boot). What is on the medium is the same as with virtual media, and so is who serves it.

use super::interface::{DRIVE, KEYS, VirtualMediaBoot, network_text};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootExtension, BootInterface, Interface, InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, BootMode, Node, RamdiskInstance};
use farrier_media::KernelParameters;

/// Boots machines from a medium that their firmware loads by HTTP.
#[derive(Debug, Clone)]
pub struct HttpsBoot(VirtualMediaBoot);

impl HttpsBoot {
    /// With the media of another boot interface.
    pub fn new(media: VirtualMediaBoot) -> Self {
        Self(media)
    }

    async fn start_from(&self, boot: BootContext<'_>, url: &str, lasts: bool) -> Result<(), InterfaceError> {
        boot.management.set_http_boot_url(boot.node, Some(url)).await?;
        boot.set_boot_device(BootDevice::Uefihttp, lasts).await
    }

    /// A URL that stays with the BMC leads to nothing, since its medium is withdrawn.
    async fn forget(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        if let Err(error) = boot.management.set_http_boot_url(boot.node, None).await {
            tracing::warn!(node = %boot.node.label(), "the BMC keeps the URL of a medium that is gone: {error}");
        }
        Ok(self.0.published_media().withdraw(boot.node)?)
    }
}

#[async_trait]
impl Interface for HttpsBoot {
    fn get_properties(&self) -> Properties {
        KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        if node.boot_mode()? == BootMode::Bios {
            let reason = "boot_mode is bios, and only UEFI boots by HTTP; choose another boot_interface";
            return Err(InterfaceError::invalid("capabilities", reason));
        }
        self.0.validate(node).await
    }
}

#[async_trait]
impl BootInterface for HttpsBoot {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot]
    }

    fn extension(&self) -> &dyn BootExtension {
        self
    }

    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let BootContext { node, network, .. } = boot;
        let network_data = network_text(&network.get_node_network_data(node).await?);
        let url = self.0.publish(node, self.0.spec(node, parameters, network_data)?).await?;
        self.start_from(boot, &url, false).await
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        match self.0.published_media().has(boot.node, DRIVE) {
            true => self.forget(boot).await,
            false => Ok(()),
        }
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        match RamdiskInstance::read(boot.node) {
            Ok(_) => self.forget(boot).await,
            Err(_) => Ok(()),
        }
    }

    async fn validate_rescue(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn validate_inspection(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }
}

#[async_trait]
impl BootExtension for HttpsBoot {
    /// As with virtual media, nobody else knows the URL.
    fn can_provide_config(&self) -> bool {
        true
    }

    fn serves_medium(&self) -> bool {
        true
    }

    async fn prepare_ramdisk_instance(
        &self,
        boot: BootContext<'_>,
        instance: &RamdiskInstance,
        config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        // One that is ordered is refused before, since this interface lacks the capability for it.
        if config_drive.is_some() {
            let reason = "has no way to a medium that is loaded by HTTP; leave it out, or put it on the ISO";
            return Err(InterfaceError::invalid("configdrive", reason));
        }
        let url = self.0.publish_instance(boot.node, instance).await?;
        self.start_from(boot, &url, true).await
    }

    fn callback_url(&self, url: &str) -> String {
        self.0.callback_url(url)
    }
}
