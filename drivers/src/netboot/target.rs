//! The current network boot of a machine, from its record (sections 6.3 and 6.5).

use super::by_arch::{ByArch, ConfiguredImages};
use super::images::{AllowedFolders, Image, Images};
use super::names::Ramdisk;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Family, Node, ProvisionState, RamdiskInstance};
use farrier_media::{KernelParameterError, KernelParameters};

/// In a node's parameters, what the conductor has configured.
const DEFAULT: &str = "%default%";

/// A network boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The agent.
    Agent {
        /// What for.
        ramdisk: Ramdisk,
        /// Its files.
        images: Images,
        /// The kernel parameters.
        parameters: KernelParameters,
    },
    /// An instance that is a kernel with its ramdisk.
    Kernel {
        /// Its files.
        images: Images,
        /// The kernel parameters.
        parameters: KernelParameters,
    },
    /// An instance that is a medium.
    Iso(Image),
    /// What is on its disk.
    WholeDisk,
}

/// What a conductor has configured for all its nodes.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The folders that files may be taken from.
    pub allowed: AllowedFolders,
    /// Images of nodes that name none.
    pub images: ConfiguredImages,
    /// Kernel parameters of nodes without any of their own (`[pxe]kernel_append_params`).
    pub kernel_append_params: KernelParameters,
    /// Those that hold for some architectures in their place, which have other serial ports than others.
    pub kernel_append_params_by_arch: ByArch<KernelParameters>,
    /// Whether machines with an instance on their disk boot that, when they network-boot anyway, as the
    /// same (`[pxe]enable_netboot_fallback`).
    pub netboot_fallback: bool,
}

impl Target {
    /// The network boot of a node's machine now; nothing if it should not network-boot.
    ///
    /// # Errors
    ///
    /// Its boot files cannot be loaded.
    pub fn of(node: &Node, defaults: &Defaults) -> Result<Option<Self>, InterfaceError> {
        let notes = &node.driver_internal_info;
        if let Some(parameters) = &notes.ramdisk_parameters {
            return Self::agent(node, parameters, defaults).map(Some);
        }
        if notes.netboots_instance {
            let instance = RamdiskInstance::read(node)
                .map_err(|error| InterfaceError::invalid("instance_info", error.to_string()))?;
            return Self::instance(&instance, &defaults.allowed).map(Some);
        }
        let has_instance = node.provision_state == ProvisionState::Active;
        Ok((defaults.netboot_fallback && has_instance).then_some(Self::WholeDisk))
    }

    /// The agent, with these parameters of the conductor's.
    pub(super) fn agent(node: &Node, parameters: &str, defaults: &Defaults) -> Result<Self, InterfaceError> {
        let ramdisk = match node.provision_state.family() {
            Some(Family::Rescue) => Ramdisk::Rescue,
            _ => Ramdisk::Deploy,
        };
        let images = Images::of_agent(node, ramdisk, &defaults.allowed, &defaults.images)?;
        Ok(Self::Agent { ramdisk, images, parameters: append(node, parameters, defaults)? })
    }

    /// An instance that is a ramdisk.
    pub(super) fn instance(
        instance: &RamdiskInstance,
        allowed: &AllowedFolders,
    ) -> Result<Self, InterfaceError> {
        let read = |key: &str, text: &str| {
            Image::read(text, allowed)
                .map_err(|reason| InterfaceError::invalid(&format!("instance_info {key}"), reason))
        };
        match instance {
            RamdiskInstance::Iso(iso) => Ok(Self::Iso(read("boot_iso", iso)?)),
            RamdiskInstance::Kernel { kernel, ramdisk, parameters } => {
                let images = Images { kernel: read("kernel", kernel)?, ramdisk: read("ramdisk", ramdisk)? };
                Ok(Self::Kernel { images, parameters: parameters.clone() })
            }
        }
    }

    /// The label of it in the configurations of all loaders.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "deploy",
            Self::Kernel { .. } | Self::Iso(_) => "boot_ramdisk",
            Self::WholeDisk => "boot_whole_disk",
        }
    }
}

/// The kernel parameters of the agent: the instance's words, or else the node's, or else the configured ones, and then the
/// conductor's.
pub(crate) fn append(
    node: &Node,
    conductor: &str,
    defaults: &Defaults,
) -> Result<KernelParameters, InterfaceError> {
    let key = "kernel_append_params";
    let of_instance = node.instance_info.get(key).and_then(|value| value.as_str());
    let own = of_instance.or_else(|| node.driver_info.get(key).and_then(|value| value.as_str()));
    let configured = defaults.kernel_append_params_by_arch.get(node)?;
    let configured = configured.unwrap_or(&defaults.kernel_append_params);
    let own = own.unwrap_or(DEFAULT).replace(DEFAULT, &configured.to_string());
    let refused = |error: KernelParameterError| match of_instance {
        Some(_) => InterfaceError::invalid(&format!("instance_info {key}"), error.to_string()),
        None => InterfaceError::driver_info(key, error.to_string()),
    };
    let own: KernelParameters = own.parse().map_err(refused)?;
    own.followed_by(&conductor.parse().map_err(refused)?).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{booting, images, node};
    use super::*;
    use serde_json::json;

    fn defaults() -> Defaults {
        let kernel_append_params = "nofb vga=normal".parse().unwrap();
        Defaults { kernel_append_params, ..Defaults::default() }
    }

    #[test]
    fn what_a_record_says_is_booted_and_nothing_else() {
        let mut node = node(&images(&json!({})));
        assert_eq!(Target::of(&node, &defaults()).unwrap(), None);
        node.provision_state = ProvisionState::Active;
        let fallback = Defaults { netboot_fallback: true, ..defaults() };
        assert_eq!(Target::of(&node, &fallback).unwrap(), Some(Target::WholeDisk));
        node.driver_internal_info.netboots_instance = true;
        let refused = Target::of(&node, &fallback).unwrap_err().to_string();
        assert!(refused.contains("instance_info kernel: is missing"), "{refused}");
        node.instance_info.insert("boot_iso".into(), json!("http://h/live.iso"));
        let iso = Target::Iso(Image::Url("http://h/live.iso".into()));
        assert_eq!(Target::of(&node, &fallback).unwrap(), Some(iso));
        node.driver_internal_info.ramdisk_parameters = Some("x=1".into());
        assert_eq!(Target::of(&node, &fallback).unwrap().unwrap().label(), "deploy");
    }

    #[test]
    fn f59_kernels_of_each_architecture_get_their_serial_port() {
        let of = |architecture: Option<&str>, append: Option<&str>| {
            let mut node = booting(&images(&json!({"kernel_append_params": append})), "x=1");
            node.properties.insert("cpu_arch".into(), json!(architecture));
            let by_arch = [("aarch64".to_owned(), "console=ttyAMA0,115200".parse().unwrap())];
            let kernel_append_params_by_arch = by_arch.into_iter().collect();
            let defaults = Defaults { kernel_append_params_by_arch, ..defaults() };
            match Target::of(&node, &defaults).unwrap() {
                Some(Target::Agent { parameters, .. }) => parameters.to_string(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of(Some("aarch64"), None), "console=ttyAMA0,115200 x=1");
        assert_eq!(of(Some("aarch64"), Some("quiet %default%")), "quiet console=ttyAMA0,115200 x=1");
        assert_eq!(of(Some("x86_64"), None), "nofb vga=normal x=1");
        assert_eq!(of(None, Some("quiet")), "quiet x=1");
    }

    #[test]
    fn s43_no_record_adds_a_word_that_a_loader_takes_for_its_own() {
        let both = json!({"kernel_append_params": "console=ttyS0"});
        for (of_node, of_instance, expected) in [
            (json!({}), None, Ok("nofb vga=normal x=1")),
            (both.clone(), None, Ok("console=ttyS0 x=1")),
            (both, Some("quiet"), Ok("quiet x=1")),
            (json!({"kernel_append_params": "%default% quiet"}), None, Ok("nofb vga=normal quiet x=1")),
            (json!({"kernel_append_params": "a\nshell"}), None, Err("driver_info kernel_append_params: ")),
            (json!({"kernel_append_params": "a || shell"}), None, Err("driver_info kernel_append_params: ")),
            (
                json!({"kernel_append_params": "a=${net0/mac}"}),
                None,
                Err("driver_info kernel_append_params: "),
            ),
            (json!({}), Some("a;reboot"), Err("instance_info kernel_append_params: ")),
        ] {
            let mut node = booting(&images(&of_node), "x=1");
            if let Some(words) = of_instance {
                node.instance_info.insert("kernel_append_params".into(), json!(words));
            }
            match (expected, Target::of(&node, &defaults())) {
                (Ok(words), Ok(Some(Target::Agent { parameters, .. }))) => {
                    assert_eq!(parameters.to_string(), words);
                }
                (Err(part), Err(error)) => assert!(error.to_string().starts_with(part), "{error}"),
                (_, target) => panic!("{of_node}: {target:?}"),
            }
        }
    }
}
