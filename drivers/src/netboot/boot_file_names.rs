//! The boot loader for a machine's firmware: by architecture and boot mode (section 6.7).

use super::by_arch::ByArch;
use crate::cpu_arch;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{BootMode, Node};

/// Names of loaders, for each family of them.
#[derive(Debug, Clone, Default)]
pub struct BootFileNames {
    /// Of loaders that boot by themselves (`[pxe]pxe_bootfile_name_by_arch`).
    pub pxe: ByArch<String>,
    /// Of iPXE (`[pxe]ipxe_bootfile_name_by_arch`).
    pub ipxe: ByArch<String>,
}

impl BootFileNames {
    /// The loader of a node's machine: iPXE, or one that boots by itself.
    ///
    /// # Errors
    ///
    /// The capabilities of the node cannot be read.
    pub fn of(&self, node: &Node, is_ipxe: bool) -> Result<String, InterfaceError> {
        let configured = if is_ipxe { &self.ipxe } else { &self.pxe };
        let built_in = match (is_ipxe, cpu_arch::of(node), node.boot_mode()?) {
            (false, "aarch64", _) => "bootaa64.efi",
            (false, _, BootMode::Uefi) => "bootx64.efi",
            (false, _, BootMode::Bios) => "pxelinux.0",
            (true, "aarch64", _) => "ipxe-arm64.efi",
            (true, _, BootMode::Uefi) => "snponly.efi",
            (true, _, BootMode::Bios) => "undionly.kpxe",
        };
        Ok(configured.get(node)?.map_or(built_in, String::as_str).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use serde_json::json;

    #[test]
    fn f59_architecture_and_boot_mode_name_a_loader_together_before_the_architecture_alone() {
        let own = [("aarch64", "arm.efi"), ("x86_64-bios", "own.0"), ("x86_64", "own.efi")];
        let own: ByArch<String> =
            own.into_iter().map(|(key, name)| (key.to_owned(), name.to_owned())).collect();
        let own = BootFileNames { pxe: own.clone(), ipxe: own };
        for (architecture, mode, is_ipxe, built_in, named) in [
            (None, None, false, "bootx64.efi", "own.efi"),
            (None, Some("bios"), false, "pxelinux.0", "own.0"),
            (None, Some("bios"), true, "undionly.kpxe", "own.0"),
            (Some("x86_64"), Some("uefi"), true, "snponly.efi", "own.efi"),
            (Some("aarch64"), None, false, "bootaa64.efi", "arm.efi"),
            (Some("aarch64"), None, true, "ipxe-arm64.efi", "arm.efi"),
        ] {
            let mut node = fixtures::node(&json!({}));
            node.properties.insert("cpu_arch".into(), json!(architecture));
            node.properties
                .insert("capabilities".into(), json!(mode.map(|mode| format!("boot_mode:{mode}"))));
            assert_eq!(BootFileNames::default().of(&node, is_ipxe).unwrap(), built_in);
            assert_eq!(own.of(&node, is_ipxe).unwrap(), named);
        }
    }
}
