//! Boots a machine without a boot loader: QEMU loads kernel and ramdisk itself.

use super::arguments::RamdiskBoot;
use super::description::{self, Description};
use super::{Folders, QemuError, QemuSettings, instance};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootExtension, BootInterface, Interface, InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, Node, RamdiskInstance};
use farrier_media::KernelParameters;
use reqwest::Url;
use std::path::{Path, PathBuf};

/// The conductor's host as a guest with user networking sees it.
const HOST_SEEN_BY_GUEST: &str = "10.0.2.2";

/// Boots local QEMU machines.
#[derive(Debug)]
pub(super) struct QemuBoot {
    folders: Folders,
}

impl QemuBoot {
    pub(super) fn new(folders: Folders) -> Self {
        Self { folders }
    }
}

#[async_trait]
impl Interface for QemuBoot {
    fn get_properties(&self) -> Properties {
        description::BOOT
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Description::read(node, self.folders.settings())?.ramdisk_files(self.folders.settings()).map(drop)
    }
}

#[async_trait]
impl BootInterface for QemuBoot {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot, BootCapability::RamdiskBootConfigdrive]
    }

    fn extension(&self) -> &dyn BootExtension {
        self
    }

    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let file = parameters_file(&self.folders.made_for(boot.node)?);
        Ok(std::fs::write(&file, parameters.to_string()).map_err(QemuError::file(&file))?)
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(super::remove(&parameters_file(&self.folders.of(boot.node)))?)
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.clean_up_instance(boot).await?;
        self.clean_up_ramdisk(boot).await?;
        boot.set_boot_device(BootDevice::Disk, true).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(instance::clean_up(&self.folders.of(boot.node))?)
    }

    async fn validate_rescue(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn validate_inspection(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }
}

#[async_trait]
impl BootExtension for QemuBoot {
    async fn prepare_ramdisk_instance(
        &self,
        boot: BootContext<'_>,
        instance: &RamdiskInstance,
        config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        let allowed = &self.folders.settings().allowed;
        instance::prepare(&self.folders.made_for(boot.node)?, instance, config_drive, allowed)?;
        self.clean_up_ramdisk(boot).await
    }

    fn callback_url(&self, url: &str) -> String {
        let Ok(mut url) = Url::parse(url) else { return url.to_owned() };
        match url.set_host(Some(HOST_SEEN_BY_GUEST)) {
            Ok(()) => url.as_str().trim_end_matches('/').to_owned(),
            Err(_) => url.to_string(),
        }
    }
}

fn parameters_file(folder: &Path) -> PathBuf {
    folder.join("kernel-parameters")
}

/// The kernel parameters of the ramdisk, when the machine must boot it: the serial console, the conductor's
/// parameters, the address under which the conductor reaches the agent, and the operator's own.
pub(super) fn ramdisk_boot(
    description: &Description,
    settings: &QemuSettings,
    folder: &Path,
    agent_port: u16,
) -> Result<Option<RamdiskBoot>, InterfaceError> {
    let Some(conductor) = super::read(&parameters_file(folder))? else { return Ok(None) };
    let parameters = conductor
        .parse::<KernelParameters>()
        .and_then(|conductor| {
            let console =
                KernelParameters::default().with("console", description.architecture.serial_port())?;
            console.followed_by(&conductor)
        })
        .and_then(|line| line.with("ipa-advertise-host", "127.0.0.1"))
        .and_then(|line| line.with("ipa-advertise-port", &agent_port.to_string()))
        .and_then(|line| line.followed_by(&description.kernel_append_params))
        .map_err(|error| InterfaceError::driver_info("kernel_append_params", error.to_string()))?;
    let (kernel, ramdisk) = description.ramdisk_files(settings)?;
    Ok(Some(RamdiskBoot { kernel, ramdisk, parameters: parameters.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conductor_is_reached_through_the_user_network() {
        let boot = QemuBoot::new(Folders::below("/nonexistent".into(), Default::default()));
        for (url, seen) in [
            ("http://127.0.0.1:6385", "http://10.0.2.2:6385"),
            ("http://localhost:8080", "http://10.0.2.2:8080"),
        ] {
            assert_eq!(boot.callback_url(url), seen);
        }
    }
}
