//! The boot interfaces `pxe`, `ipxe`, `http` and `http-ipxe` (sections 6.1 and 6.6).
//!
//! They differ in what firmware loads first, and from where; what a machine boots then is the same. None of them needs
//! a file for a node: [`file()`] is what a name stands for, by the record alone. Where another server sends the files, they
//! are written for that before the machine starts. The parameters of the kernel hold no
//! token, because every host on the network could read it.

use super::boot_roots::BootRoots;
use super::boot_roots::tree::Tree;
use super::dhcp_options::{self, Servers};
use super::images::{self, Image};
use super::loaders::Loaders;
use super::method::Method;
use super::names::{Dialect, Item, Name, Whose};
use super::scripts::render::Renderer;
use super::target::{Defaults, Target};
use crate::cpu_arch;
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootExtension, BootFile, BootInterface, DhcpProvider, Interface,
    InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, DriverInternalInfo, Node, RamdiskInstance};
use farrier_media::KernelParameters;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The name of the script of a machine in the boot configuration API.
const SCRIPT: &str = "boot.ipxe";

/// What all of them have in common.
#[derive(Debug)]
pub struct Netboot {
    /// What machines boot.
    pub defaults: Defaults,
    /// The DHCP provider.
    pub renderer: Renderer,
    /// What their firmware loads first.
    pub loaders: Loaders,
    /// The DHCP provider; nothing if the site has its own.
    pub dhcp: Option<Dhcp>,
    /// Where other servers send the files of machines from.
    pub roots: BootRoots,
}

/// The DHCP provider.
pub struct Dhcp {
    /// The server.
    pub provider: Arc<dyn DhcpProvider>,
    /// Where firmware finds that.
    pub servers: Servers,
}

impl fmt::Debug for Dhcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dhcp").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// What a name stands for, by the record of a node alone; nothing when there is no such file now.
///
/// # Errors
///
/// The boot files cannot be loaded.
pub fn file(
    netboot: &Netboot,
    method: Method,
    node: &Node,
    name: &Name,
) -> Result<Option<BootFile>, InterfaceError> {
    let is_of_node = match &name.whose {
        // A card that is not enabled for PXE has no file (F58).
        Whose::Card(card) => node.ports.iter().any(|port| port.address == *card && port.pxe_enabled),
        Whose::Node(uuid) => node.uuid == *uuid,
        // A client that knows the addresses has found the node by it.
        Whose::Address(_) => true,
    };
    let Some(target) = Target::of(node, &netboot.defaults)?.filter(|_| is_of_node) else { return Ok(None) };
    let image = match (name.item, &target) {
        (Item::Config(asked), _) => {
            let dialect = method.dialect(node)?;
            let is_meant = asked.is_none_or(|asked| asked == dialect);
            return match is_meant {
                true => {
                    netboot.renderer.config(node, dialect, &target).map(|text| Some(BootFile::Text(text)))
                }
                false => Ok(None),
            };
        }
        (Item::Kernel(asked), Target::Agent { ramdisk, images, .. }) if asked == *ramdisk => &images.kernel,
        (Item::Ramdisk(asked), Target::Agent { ramdisk, images, .. }) if asked == *ramdisk => &images.ramdisk,
        (Item::InstanceKernel, Target::Kernel { images, .. }) => &images.kernel,
        (Item::InstanceRamdisk, Target::Kernel { images, .. }) => &images.ramdisk,
        (Item::BootIso, Target::Iso(iso)) => iso,
        _ => return Ok(None),
    };
    Ok(match image {
        Image::File(file) => Some(BootFile::File(file.clone())),
        Image::Url(_) => None,
    })
}

/// A boot interface for hardware types that name it.
#[derive(Debug)]
pub struct NetworkBoot {
    method: Method,
    netboot: Arc<Netboot>,
}

impl NetworkBoot {
    /// Of this method.
    pub fn new(method: Method, netboot: Arc<Netboot>) -> Self {
        Self { method, netboot }
    }

    /// Whether the boot loader of a node's machine can be configured.
    fn check(&self, node: &Node, target: &Target) -> Result<(), InterfaceError> {
        self.netboot.renderer.config(node, self.method.dialect(node)?, target).map(drop)
    }

    /// Updates the files of other servers from the record.
    async fn publish(&self, node: &Node, seen_at: Option<Instant>) -> Result<bool, InterfaceError> {
        if self.netboot.roots.is_empty() {
            return Ok(false);
        }
        let addresses = match &self.netboot.dhcp {
            Some(dhcp) => dhcp.provider.get_ip_addresses(node).await?,
            None => Vec::new(),
        };
        let tree = Tree::of(&self.netboot, self.method, node, &addresses)?;
        let is_there = tree.is_some();
        self.netboot.roots.write(self.method, node.uuid, tree, seen_at).await?;
        Ok(is_there)
    }

    async fn boot_from_network(
        &self,
        boot: BootContext<'_>,
        is_persistent: bool,
        note: impl FnOnce(&mut DriverInternalInfo) + Send,
    ) -> Result<(), InterfaceError> {
        // What will be on record once this is done.
        let mut node = boot.node.clone();
        note(&mut node.driver_internal_info);
        self.publish(&node, None).await?;
        if let Some(Dhcp { provider, servers }) = &self.netboot.dhcp {
            let options = dhcp_options::of(self.method, boot.node, servers)?;
            provider.update_dhcp_opts(boot.node, &options).await?;
        }
        let devices = boot.management.get_supported_boot_devices(boot.node);
        let device = match self.method.is_http() && devices.contains(&BootDevice::Uefihttp) {
            true => BootDevice::Uefihttp,
            false => BootDevice::Pxe,
        };
        boot.set_boot_device(device, is_persistent).await
    }
}

#[async_trait]
impl Interface for NetworkBoot {
    fn get_properties(&self) -> Properties {
        images::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        if node.ports.is_empty() {
            return Err(InterfaceError::invalid(
                "ports",
                "there is none, so no firmware can be known by its address; create one",
            ));
        }
        self.check(node, &Target::agent(node, "", &self.netboot.defaults)?)?;
        match self.method {
            Method::Http => {
                self.netboot.loaders.check_http(cpu_arch::of(node)).map_err(InterfaceError::driver)
            }
            Method::Pxe | Method::Ipxe | Method::HttpIpxe => Ok(()),
        }
    }
}

#[async_trait]
impl BootInterface for NetworkBoot {
    fn capabilities(&self) -> &[BootCapability] {
        match self.method.is_ipxe() {
            true => &[BootCapability::RamdiskBoot, BootCapability::IpxeBoot, BootCapability::PxeBoot],
            false => &[BootCapability::RamdiskBoot, BootCapability::PxeBoot],
        }
    }

    fn extension(&self) -> &dyn BootExtension {
        self
    }

    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let target = Target::agent(boot.node, &parameters.to_string(), &self.netboot.defaults)?;
        self.check(boot.node, &target)?;
        let parameters = parameters.to_string();
        self.boot_from_network(boot, false, |notes| notes.ramdisk_parameters = Some(parameters)).await
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.publish(boot.node, None).await?;
        match &self.netboot.dhcp {
            Some(dhcp) => dhcp.provider.clean_dhcp_opts(boot.node).await,
            None => Ok(()),
        }
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.clean_up_ramdisk(boot).await
    }

    async fn validate_rescue(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn validate_inspection(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    /// Any card of the node may have asked.
    async fn get_boot_config(&self, node: &Node, name: &str) -> Result<Option<String>, InterfaceError> {
        let config = Name { whose: Whose::Node(node.uuid), item: Item::Config(Some(Dialect::Ipxe)) };
        if name != SCRIPT {
            return Ok(None);
        }
        match file(&self.netboot, self.method, node, &config)? {
            Some(BootFile::Text(text)) => Ok(Some(text)),
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl BootExtension for NetworkBoot {
    async fn prepare_ramdisk_instance(
        &self,
        boot: BootContext<'_>,
        instance: &RamdiskInstance,
        config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        // One that is ordered is refused before, since this interface lacks the capability for it.
        if config_drive.is_some() {
            let reason = "has no way to a ramdisk that boots from the network; leave it out";
            return Err(InterfaceError::invalid("configdrive", reason));
        }
        self.check(boot.node, &Target::instance(instance, &self.netboot.defaults.allowed)?)?;
        self.boot_from_network(boot, true, |notes| notes.netboots_instance = true).await
    }

    async fn refresh_boot_files(&self, node: &Node, seen_at: Instant) -> Result<bool, InterfaceError> {
        self.publish(node, Some(seen_at)).await
    }

    async fn get_boot_file(&self, node: &Node, name: &str) -> Result<Option<BootFile>, InterfaceError> {
        let Some(name) = Name::parse(name) else { return Ok(None) };
        let found = file(&self.netboot, self.method, node, &name)?;
        Ok(match found {
            Some(BootFile::File(file)) => self.netboot.defaults.allowed.resolve(&file).map(BootFile::File),
            found => found,
        })
    }
}

#[cfg(test)]
mod tests;
