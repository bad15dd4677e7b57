//! Configurations of boot loaders (section 6.5).
//!
//! There is one template for each loader, and it is rendered again for each target. Values are what [`Target`] has
//! checked, so each stays within its word.

use super::templates::{LOCAL_DISK, Template, TemplateError, Templates};
use crate::netboot::images::Image;
use crate::netboot::names::{Dialect, Item, Name};
use crate::netboot::target::Target;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use minijinja::context;
use std::time::Duration;

/// How often a machine tries to load kernel and ramdisk of the agent.
const TRIES: u8 = 10;

/// How configurations are rendered.
#[derive(Debug)]
pub struct Renderer {
    /// What they look like.
    pub templates: Templates,
    /// How long iPXE lets kernel and ramdisk each take to load before it tries again (`[pxe]ipxe_timeout`); for as long
    /// as it takes, where nothing is said.
    pub timeout: Option<Duration>,
    /// URL below which iPXE finds the files of this conductor (`[deploy]http_url`); where it found its script, when
    /// nothing is said.
    pub http_url: Option<String>,
}

/// What a loader loads, as it names it.
#[derive(Debug, Default)]
struct Files {
    kernel: Option<String>,
    ramdisk: Option<String>,
    iso: Option<String>,
    parameters: String,
}

impl Renderer {
    /// The configuration of a node's machine.
    ///
    /// # Errors
    ///
    /// The loader cannot load what the record names, or an operator's own template fails.
    pub fn config(&self, node: &Node, dialect: Dialect, target: &Target) -> Result<String, InterfaceError> {
        let place = |image: &Image, item: Item| self.place(node, dialect, image, item);
        let mut files = Files::default();
        match target {
            Target::Agent { ramdisk: which, images, parameters } => {
                files.kernel = Some(place(&images.kernel, Item::Kernel(*which))?);
                files.ramdisk = Some(place(&images.ramdisk, Item::Ramdisk(*which))?);
                files.parameters = parameters.to_string();
            }
            Target::Kernel { images, parameters } => {
                files.kernel = Some(place(&images.kernel, Item::InstanceKernel)?);
                files.ramdisk = Some(place(&images.ramdisk, Item::InstanceRamdisk)?);
                files.parameters = parameters.to_string();
            }
            Target::Iso(_) if dialect != Dialect::Ipxe => {
                let reason = "can only be booted by iPXE; choose the boot interface ipxe or http-ipxe";
                return Err(InterfaceError::invalid("instance_info boot_iso", reason));
            }
            Target::Iso(image) => files.iso = Some(place(image, Item::BootIso)?),
            Target::WholeDisk => {}
        }
        self.render(dialect, target, files).map_err(InterfaceError::driver)
    }

    /// What PXELINUX reads of a machine that has no configuration of its own. It starts over without one, for ever.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] of an operator's own template.
    pub fn pxelinux_default(&self) -> Result<String, TemplateError> {
        self.render(Dialect::Pxelinux, &Target::WholeDisk, Files::default())
    }

    fn render(&self, dialect: Dialect, target: &Target, files: Files) -> Result<String, TemplateError> {
        let timeout =
            self.timeout.map(|timeout| format!(" --timeout {}", timeout.as_millis())).unwrap_or_default();
        let Files { kernel, ramdisk, iso, parameters } = files;
        let values = context! {
            target => target.label(), kernel, ramdisk, iso, parameters, timeout, tries => TRIES,
            local_disk => LOCAL_DISK,
        };
        let template = match dialect {
            Dialect::Ipxe => Template::IpxeConfig,
            Dialect::Pxelinux => Template::PxeConfig,
            Dialect::Grub => Template::PxeGrubConfig,
        };
        self.templates.render(template, values)
    }

    /// An image as a loader names it. Only iPXE loads from any URL.
    fn place(
        &self,
        node: &Node,
        dialect: Dialect,
        image: &Image,
        item: Item,
    ) -> Result<String, InterfaceError> {
        let name = Name::of_node(node.uuid, item);
        let http_url = self.http_url.as_deref().unwrap_or_default().trim_end_matches('/');
        match (image, dialect) {
            (Image::Url(url), Dialect::Ipxe) => Ok(url.clone()),
            (Image::File(_), Dialect::Ipxe) => Ok(format!("{http_url}/{name}")),
            (Image::File(_), Dialect::Grub) => Ok(format!("/{name}")),
            (Image::File(_), Dialect::Pxelinux) => Ok(name),
            (Image::Url(url), _) => {
                let reason = format!(
                    "{url} must be a file of the conductor's host, such as file:///srv/vmlinuz, which it serves itself; \
                     or choose the boot interface ipxe, which loads from any URL"
                );
                let (field, key) = Name::key(item);
                Err(match field {
                    "driver_info" => InterfaceError::driver_info(key, reason),
                    field => InterfaceError::invalid(&format!("{field} {key}"), reason),
                })
            }
        }
    }
}
