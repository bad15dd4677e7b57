//! The boot interface `redfish-virtual-media` (section 6.9), which is also `ilo-virtual-media` (section 6.11).

use super::iso_spec::IsoSpec;
use super::loaders::Firmware;
use super::published_media::PublishedMedia;
use crate::cpu_arch;
use crate::netboot::images::{self, Image, Images};
use crate::netboot::names::Ramdisk;
use crate::netboot::target::{self, Defaults};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootExtension, BootInterface, Interface, InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, BootMode, Family, Node, RamdiskInstance};
use farrier_media::boot_iso::Additions;
use farrier_media::{KernelParameterError, KernelParameters};
use reqwest::Url;
use serde_json::{Map, Value};

pub(super) const KEYS: Properties = &[
    (
        "deploy_iso",
        "the ramdisk's ISO: a file below a folder of --file-url-allowed-paths, or a URL; without it one is made of deploy_kernel and deploy_ramdisk",
    ),
    ("rescue_iso", "the same for rescues; what deployments have unless it is given"),
    ("deploy_kernel", "the ramdisk's kernel, where there is no deploy_iso: a file or a URL"),
    ("deploy_ramdisk", "the ramdisk, where there is no deploy_iso: a file or a URL"),
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
    (
        "external_http_url",
        "URL below which the BMC reaches this conductor's media; the usual one unless it is given",
    ),
];

/// Where BMCs that know virtual media read the ramdisk from.
pub(super) const DRIVE: BootDevice = BootDevice::Cdrom;
/// Where they read the config drive of an instance from that is an ISO: a stick or a floppy.
const CONFIG_DRIVE: BootDevice = BootDevice::Floppy;

/// Boots machines from the virtual media of their BMCs. Clones are the same one.
#[derive(Debug, Clone)]
pub struct VirtualMediaBoot {
    published_media: PublishedMedia,
    defaults: Defaults,
    callback_url: Option<String>,
}

impl VirtualMediaBoot {
    /// With these published media, and what the conductor has configured for all of its nodes.
    pub fn new(published_media: PublishedMedia, defaults: Defaults) -> Self {
        Self { published_media, defaults, callback_url: None }
    }

    /// The same, whose agents reach the conductor at a URL of their own (`[deploy]external_callback_url`).
    #[must_use]
    pub fn called_back_at(mut self, url: Option<String>) -> Self {
        self.callback_url = url;
        self
    }

    /// What the medium is made of that a machine boots for the operation of its node, with these parameters of the
    /// conductor's.
    pub(super) fn spec(
        &self,
        node: &Node,
        conductor: &KernelParameters,
        network_data: Option<String>,
    ) -> Result<IsoSpec, InterfaceError> {
        external_url(node)?;
        let conductor = conductor.to_string();
        if let Some(iso) = self.iso(node)? {
            // Its own kernel parameters are those that are configured by default.
            let parameters = target::append(node, &conductor, &Defaults::default())?;
            return Ok(IsoSpec::LaidOver { iso, additions: Additions { parameters, network_data } });
        }
        let ramdisk = if is_rescue(node) { Ramdisk::Rescue } else { Ramdisk::Deploy };
        let Defaults { allowed, images, .. } = &self.defaults;
        let images = Images::of_agent(node, ramdisk, allowed, images)?;
        let parameters = target::append(node, &conductor, &self.defaults)?;
        self.spec_of_kernel(node, images, Additions { parameters, network_data })
    }

    /// The ISO of the ramdisk; nothing where one is made of kernel and ramdisk. What a node names goes before what the
    /// conductor has for all, and an ISO before a kernel.
    fn iso(&self, node: &Node) -> Result<Option<Image>, InterfaceError> {
        let Defaults { allowed, images: configured, .. } = &self.defaults;
        let keys = [("rescue_iso", images::RESCUE), ("deploy_iso", images::DEPLOY)];
        for (iso, pair) in keys.into_iter().skip(usize::from(!is_rescue(node))) {
            if images::names(node, iso) {
                return self.image(node, iso).map(Some);
            }
            if pair.iter().any(|key| images::names(node, key)) {
                return Ok(None);
            }
            if let Some(text) = configured.get(node, iso)? {
                let image = Image::of_medium(text, allowed);
                return image.map(Some).map_err(|reason| images::of_conductor(iso, &reason));
            }
            if configured.pair(node, pair)?.is_some() {
                return Ok(None);
            }
        }
        let missing = "is missing; give the ramdisk's ISO, or deploy_kernel and deploy_ramdisk, or configure them for \
                       all nodes";
        Err(InterfaceError::driver_info("deploy_iso", missing))
    }

    fn spec_of_kernel(
        &self,
        node: &Node,
        images: Images,
        additions: Additions,
    ) -> Result<IsoSpec, InterfaceError> {
        let resolved = |what: &str, image: Image| {
            image.resolved(&self.defaults.allowed).map_err(|reason| InterfaceError::invalid(what, reason))
        };
        let (kernel, ramdisk) = (resolved("kernel", images.kernel)?, resolved("ramdisk", images.ramdisk)?);
        let bootloader = match images::names(node, "bootloader") {
            true => Some(self.image(node, "bootloader")?),
            false => match self.defaults.images.get(node, "bootloader")? {
                Some(text) => {
                    let image = Image::of_medium(text, &self.defaults.allowed);
                    Some(image.map_err(|reason| images::of_conductor("bootloader", &reason))?)
                }
                None => None,
            },
        };
        let is_bios = node.boot_mode()? == BootMode::Bios;
        let firmware = Firmware { architecture: cpu_arch::of(node).to_owned(), is_bios };
        Ok(IsoSpec::OfKernel { kernel, ramdisk, bootloader, firmware, additions })
    }

    /// What a key of `driver_info` names.
    fn image(&self, node: &Node, key: &str) -> Result<Image, InterfaceError> {
        let text = node.driver_info.text(key);
        let text = text.map_err(|error| InterfaceError::driver_info(key, error.reason))?.unwrap_or_default();
        Image::of_medium(text, &self.defaults.allowed)
            .map_err(|reason| InterfaceError::driver_info(key, reason))
    }

    /// Publishes an instance that is a ramdisk, and returns its URL for the BMC: an ISO of a server, by itself.
    pub(super) async fn publish_instance(
        &self,
        node: &Node,
        instance: &RamdiskInstance,
    ) -> Result<String, InterfaceError> {
        let allowed = &self.defaults.allowed;
        let read = |key: &str, text: &str| {
            Image::of_medium(text, allowed)
                .map_err(|reason| InterfaceError::invalid(&format!("instance_info {key}"), reason))
        };
        let spec = match instance {
            RamdiskInstance::Iso(iso) => match read("boot_iso", iso)? {
                Image::Url(url) => {
                    self.published_media.withdraw(node)?;
                    return Ok(url);
                }
                image => IsoSpec::AsItIs { image },
            },
            RamdiskInstance::Kernel { kernel, ramdisk, parameters } => {
                let images = Images { kernel: read("kernel", kernel)?, ramdisk: read("ramdisk", ramdisk)? };
                let additions = Additions { parameters: parameters.clone(), network_data: None };
                self.spec_of_kernel(node, images, additions)?
            }
        };
        self.publish(node, spec).await
    }

    /// Publishes a medium for the boot drive, and returns its URL.
    pub(super) async fn publish(&self, node: &Node, spec: IsoSpec) -> Result<String, InterfaceError> {
        as_reached(node, self.published_media.publish(node, DRIVE, spec).await?)
    }

    /// The media that it has published.
    pub(super) fn published_media(&self) -> &PublishedMedia {
        &self.published_media
    }

    /// The parameters of a ramdisk that finds more on its medium.
    fn by_medium(parameters: &KernelParameters) -> Result<KernelParameters, InterfaceError> {
        let own = KernelParameters::default().with("boot_method", "vmedia");
        own.and_then(|own| own.followed_by(parameters)).map_err(refused)
    }

    /// The drives of a node's machine that have something of ours.
    fn drives(&self, node: &Node) -> Vec<BootDevice> {
        let has_config_drive = self.published_media.has(node, CONFIG_DRIVE);
        [DRIVE].into_iter().chain(has_config_drive.then_some(CONFIG_DRIVE)).collect()
    }
}

fn is_rescue(node: &Node) -> bool {
    node.provision_state.family() == Some(Family::Rescue)
}

/// Where the BMC of a node reaches what this conductor serves, when it reaches it elsewhere than others do.
fn external_url(node: &Node) -> Result<Option<String>, InterfaceError> {
    let key = "external_http_url";
    let refused = |reason: &str| InterfaceError::driver_info(key, reason.to_owned());
    if !images::names(node, key) {
        return Ok(None);
    }
    let text = node.driver_info.text(key).map_err(|error| refused(&error.reason))?.unwrap_or_default();
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    match url {
        Some(_) => Ok(Some(text.trim_end_matches('/').to_owned())),
        None => Err(refused("must be a URL with http or https")),
    }
}

/// The URL of a medium as the BMC of a node reaches it.
fn as_reached(node: &Node, url: String) -> Result<String, InterfaceError> {
    let Some(external) = external_url(node)? else { return Ok(url) };
    let mut end = url.rsplitn(3, '/');
    let (name, folder) = (end.next().unwrap_or_default(), end.next().unwrap_or_default());
    Ok(format!("{external}/{folder}/{name}"))
}

/// The network of a machine, as it is put on a medium; nothing where addresses come by DHCP.
pub(super) fn network_text(network_data: &Map<String, Value>) -> Option<String> {
    (!network_data.is_empty()).then(|| Value::from(network_data.clone()).to_string())
}

fn refused(error: KernelParameterError) -> InterfaceError {
    InterfaceError::driver_info("kernel_append_params", error.to_string())
}

/// Fails where a BMC has replaced one medium by the other.
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
        let parameters = Self::by_medium(&KernelParameters::default())?;
        let spec = self.spec(node, &parameters, network_text(&node.network_data))?;
        Ok(self.published_media.check(spec).await?)
    }
}

#[async_trait]
impl BootInterface for VirtualMediaBoot {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot, BootCapability::RamdiskBootConfigdrive]
    }

    fn extension(&self) -> &dyn BootExtension {
        self
    }

    /// The drive is emptied and filled, both verified by reading it again, before the boot device is set. The
    /// config drive of an instance is taken out: a ramdisk would take it for its own.
    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        let BootContext { node, network, management } = boot;
        let network_data = network_text(&network.get_node_network_data(node).await?);
        let spec = self.spec(node, &Self::by_medium(parameters)?, network_data)?;
        let url = self.publish(node, spec).await?;
        management.detach_virtual_media(node, &self.drives(node)).await?;
        self.published_media.withdraw_from(node, CONFIG_DRIVE)?;
        management.attach_virtual_media(node, DRIVE, &url).await?;
        boot.set_boot_device(DRIVE, false).await
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        if !self.published_media.has(node, DRIVE) {
            return Ok(());
        }
        if self.published_media.reads(node, DRIVE).is_some_and(|reads| reads.requests == 0) {
            tracing::warn!(
                node = node.name.as_deref().unwrap_or_default(),
                "the BMC has never read the medium that it said was inserted; see whether it reaches the conductor"
            );
        }
        management.detach_virtual_media(node, &self.drives(node)).await?;
        Ok(self.published_media.withdraw(node)?)
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let BootContext { node, management, .. } = boot;
        if RamdiskInstance::read(node).is_ok() {
            management.detach_virtual_media(node, &self.drives(node)).await?;
            self.published_media.withdraw(node)?;
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

#[async_trait]
impl BootExtension for VirtualMediaBoot {
    /// A client with the medium of a boot must be that machine: the URL is secret.
    fn can_provide_config(&self) -> bool {
        true
    }

    fn serves_medium(&self) -> bool {
        true
    }

    /// An ISO may have its root file system on itself.
    fn runs_from_medium(&self) -> bool {
        true
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
        self.published_media.withdraw_from(node, CONFIG_DRIVE)?;
        let config_drive = match config_drive {
            Some(text) => {
                let url = self.published_media.publish_config_drive(node, CONFIG_DRIVE, text).await?;
                Some(as_reached(node, url)?)
            }
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

    fn callback_url(&self, url: &str) -> String {
        self.callback_url.clone().unwrap_or_else(|| url.to_owned())
    }
}
