//! The boot interface `redfish-virtual-media` (section 6.9), which is also `ilo-virtual-media` (section 6.11).

use super::loaders::Firmware;
use super::recipe::Recipe;
use super::shelf::Shelf;
use crate::cpu_arch;
use crate::netboot::boot_mode::boot_mode;
use crate::netboot::images::{Image, Images};
use crate::netboot::names::Ramdisk;
use crate::netboot::target::{self, Defaults};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootInterface, Interface, InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, BootMode, Family, Node, RamdiskInstance};
use farrier_media::boot_iso::Additions;
use farrier_media::{KernelParameterError, KernelParameters};
use serde_json::{Map, Value};

const KEYS: Properties = &[
    (
        "deploy_iso",
        "the ramdisk's ISO: a file below a folder of --file-url-allowed-paths, or a URL; without it one is made of deploy_kernel and deploy_ramdisk",
    ),
    ("rescue_iso", "the same for rescues; what deployments have unless it is given"),
    ("deploy_kernel", "the ramdisk's kernel, where there is no deploy_iso: a file or a URL"),
    ("deploy_ramdisk", "the ramdisk: likewise"),
    (
        "rescue_kernel",
        "the kernel for rescues, with rescue_ramdisk; what deployments have unless they are given",
    ),
    ("rescue_ramdisk", "the ramdisk for rescues, with rescue_kernel"),
    (
        "bootloader",
        "image of an EFI system partition whose GRUB boots them: a file or a URL; shim and GRUB of the distribution unless it is given",
    ),
    ("kernel_append_params", "kernel parameters of the ramdisk, besides those that it needs"),
];

/// Where BMCs that know virtual media read the ramdisk from.
const DRIVE: BootDevice = BootDevice::Cdrom;
/// Where they read the config drive of an instance from that is an ISO: a stick or a floppy.
const CONFIG_DRIVE: BootDevice = BootDevice::Floppy;

/// Boots machines from the virtual media of their BMCs. Clones are the same one.
#[derive(Debug, Clone)]
pub struct VirtualMediaBoot {
    shelf: Shelf,
    defaults: Defaults,
}

impl VirtualMediaBoot {
    /// With this shelf, and what the conductor has configured for all of its nodes.
    pub fn new(shelf: Shelf, defaults: Defaults) -> Self {
        Self { shelf, defaults }
    }

    /// What the medium is made of that a machine boots for the operation of its node.
    fn recipe(
        &self,
        node: &Node,
        conductor: &KernelParameters,
        network_data: Option<String>,
    ) -> Result<Recipe, InterfaceError> {
        let has = |key: &str| node.driver_info.get(key).is_some_and(|value| !value.is_null());
        let is_rescue = node.provision_state.family() == Some(Family::Rescue);
        let conductor = KernelParameters::default()
            .with("boot_method", "vmedia")
            .and_then(|own| own.followed_by(conductor));
        let conductor = conductor.map_err(refused)?.to_string();
        let iso = match is_rescue {
            true if has("rescue_iso") => Some("rescue_iso"),
            true if has("rescue_kernel") || has("rescue_ramdisk") => None,
            _ => Some("deploy_iso").filter(|key| has(key)),
        };
        if let Some(key) = iso {
            // Its own kernel parameters are those that are configured by default.
            let parameters = target::append(node, &conductor, &Defaults::default())?;
            let iso = self.image(node, key)?;
            return Ok(Recipe::LaidOver { iso, additions: Additions { parameters, network_data } });
        }
        if !is_rescue && !has("deploy_kernel") {
            let missing = "is missing; give the ramdisk's ISO, or deploy_kernel and deploy_ramdisk";
            return Err(InterfaceError::driver_info("deploy_iso", missing));
        }
        let ramdisk = if is_rescue { Ramdisk::Rescue } else { Ramdisk::Deploy };
        let images = Images::of_agent(node, ramdisk, &self.defaults.allowed)?;
        let parameters = target::append(node, &conductor, &self.defaults)?;
        self.recipe_of_kernel(node, images, Additions { parameters, network_data })
    }

    fn recipe_of_kernel(
        &self,
        node: &Node,
        images: Images,
        additions: Additions,
    ) -> Result<Recipe, InterfaceError> {
        let resolved = |what: &str, image: Image| {
            image.resolved(&self.defaults.allowed).map_err(|reason| InterfaceError::invalid(what, reason))
        };
        let (kernel, ramdisk) = (resolved("kernel", images.kernel)?, resolved("ramdisk", images.ramdisk)?);
        let bootloader = match node.driver_info.get("bootloader") {
            None | Some(Value::Null) => None,
            Some(_) => Some(self.image(node, "bootloader")?),
        };
        let is_bios = boot_mode(node)? == BootMode::Bios;
        let firmware = Firmware { architecture: cpu_arch::of(node).to_owned(), is_bios };
        Ok(Recipe::OfKernel { kernel, ramdisk, bootloader, firmware, additions })
    }

    /// What a key of `driver_info` names.
    fn image(&self, node: &Node, key: &str) -> Result<Image, InterfaceError> {
        let text = node.driver_info.text(key);
        let text = text.map_err(|error| InterfaceError::driver_info(key, error.reason))?.unwrap_or_default();
        Image::of_medium(text, &self.defaults.allowed)
            .map_err(|reason| InterfaceError::driver_info(key, reason))
    }

    /// Puts an instance on the shelf that is a ramdisk, and tells where the BMC reads it: an ISO of a server, by itself.
    async fn publish_instance(
        &self,
        node: &Node,
        instance: &RamdiskInstance,
    ) -> Result<String, InterfaceError> {
        let allowed = &self.defaults.allowed;
        let read = |key: &str, text: &str| {
            Image::of_medium(text, allowed)
                .map_err(|reason| InterfaceError::invalid(&format!("instance_info {key}"), reason))
        };
        let recipe = match instance {
            RamdiskInstance::Iso(iso) => match read("boot_iso", iso)? {
                Image::Url(url) => {
                    self.shelf.withdraw(node)?;
                    return Ok(url);
                }
                image => Recipe::AsItIs { image },
            },
            RamdiskInstance::Kernel { kernel, ramdisk, parameters } => {
                let images = Images { kernel: read("kernel", kernel)?, ramdisk: read("ramdisk", ramdisk)? };
                let additions = Additions { parameters: parameters.clone(), network_data: None };
                self.recipe_of_kernel(node, images, additions)?
            }
        };
        Ok(self.shelf.publish(node, DRIVE, recipe).await?)
    }

    /// The drives of a node's machine that have something of ours.
    fn drives(&self, node: &Node) -> Vec<BootDevice> {
        let has_config_drive = self.shelf.reads(node, CONFIG_DRIVE).is_some();
        [DRIVE].into_iter().chain(has_config_drive.then_some(CONFIG_DRIVE)).collect()
    }
}

/// The network of a machine, as it is put on a medium; nothing where addresses come by DHCP.
fn network_text(network_data: &Map<String, Value>) -> Option<String> {
    (!network_data.is_empty()).then(|| Value::from(network_data.clone()).to_string())
}

fn refused(error: KernelParameterError) -> InterfaceError {
    InterfaceError::driver_info("kernel_append_params", error.to_string())
}

/// Fails where a BMC has put one medium in the place of the other.
async fn prove_both(boot: BootContext<'_>) -> Result<(), InterfaceError> {
    let media = boot.management.get_virtual_media(boot.node).await?;
    match media.iter().filter(|medium| medium.inserted).count() {
        0 | 1 => Err(InterfaceError::invalid(
            "configdrive",
            "finds no drive beside that of the ISO, since the BMC has one for both; leave it out, or put it on the ISO",
        )),
        _ => Ok(()),
    }
}

#[async_trait]
impl Interface for VirtualMediaBoot {
    fn get_properties(&self) -> Properties {
        KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let recipe = self.recipe(node, &KernelParameters::default(), network_text(&node.network_data))?;
        Ok(self.shelf.check(recipe).await?)
    }
}

#[async_trait]
impl BootInterface for VirtualMediaBoot {
    /// Whoever has the medium of a boot can be no other machine: its address is unknown.
    fn can_provide_config(&self) -> bool {
        true
    }

    /// An ISO may have its root file system on itself.
    fn runs_from_medium(&self) -> bool {
        true
    }

    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot, BootCapability::RamdiskBootConfigdrive]
    }

    /// The drive is emptied and filled, both proven by reading it again, before the machine is told to start from it. The
    /// config drive of an instance is taken out: a ramdisk would take it for its own.
    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let BootContext { node, network, management } = boot;
        let network_data = network_text(&network.get_node_network_data(node).await?);
        let url = self.shelf.publish(node, DRIVE, self.recipe(node, parameters, network_data)?).await?;
        management.detach_virtual_media(node, &self.drives(node)).await?;
        self.shelf.withdraw_from(node, CONFIG_DRIVE)?;
        management.attach_virtual_media(node, DRIVE, &url).await?;
        boot.set_boot_device(DRIVE, false).await
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        let Some(reads) = self.shelf.reads(node, DRIVE) else { return Ok(()) };
        if reads.requests == 0 {
            tracing::warn!(
                node = node.name.as_deref().unwrap_or_default(),
                "the BMC has never read the medium that it said was inserted; see whether it reaches the conductor"
            );
        }
        management.detach_virtual_media(node, &self.drives(node)).await?;
        Ok(self.shelf.withdraw(node)?)
    }

    async fn prepare_ramdisk_instance(
        &self,
        boot: BootContext<'_>,
        instance: &RamdiskInstance,
        config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        let filled = self.drives(node);
        let url = self.publish_instance(node, instance).await?;
        self.shelf.withdraw_from(node, CONFIG_DRIVE)?;
        let config_drive = match config_drive {
            Some(text) => Some(self.shelf.publish_config_drive(node, CONFIG_DRIVE, text).await?),
            None => None,
        };
        management.detach_virtual_media(node, &filled).await?;
        management.attach_virtual_media(node, DRIVE, &url).await?;
        if let Some(config_drive) = config_drive {
            management.attach_virtual_media(node, CONFIG_DRIVE, &config_drive).await?;
            prove_both(boot).await?;
        }
        boot.set_boot_device(DRIVE, true).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        if RamdiskInstance::read(node).is_ok() {
            management.detach_virtual_media(node, &self.drives(node)).await?;
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
