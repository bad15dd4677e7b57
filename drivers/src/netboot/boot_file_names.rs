//! Which loader a machine's firmware is told to load: by architecture and boot mode (section 6.7).

use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{BadValue, BootMode, Node};
use std::collections::BTreeMap;

/// The architecture of nodes that name none.
const COMMON: &str = "x86_64";

/// Names of loaders, for each family of them.
#[derive(Debug, Clone, Default)]
pub struct BootFileNames {
    /// Of loaders that boot by themselves (`[pxe]pxe_bootfile_name_by_arch`): by `ARCH-MODE`, or by `ARCH`.
    pub pxe: BTreeMap<String, String>,
    /// Of iPXE (`[pxe]ipxe_bootfile_name_by_arch`), likewise.
    pub ipxe: BTreeMap<String, String>,
}

impl BootFileNames {
    /// The loader of a node's machine: iPXE, or one that boots by itself.
    ///
    /// # Errors
    ///
    /// The capabilities of the node cannot be read.
    pub fn of(&self, node: &Node, is_ipxe: bool) -> Result<String, InterfaceError> {
        let (architecture, mode) = (architecture(node), boot_mode(node)?);
        let configured = if is_ipxe { &self.ipxe } else { &self.pxe };
        let named = configured
            .get(&format!("{architecture}-{}", mode.as_str()))
            .or_else(|| configured.get(architecture));
        let built_in = match (is_ipxe, architecture, mode) {
            (false, "aarch64", _) => "bootaa64.efi",
            (false, _, BootMode::Uefi) => "bootx64.efi",
            (false, _, BootMode::Bios) => "pxelinux.0",
            (true, "aarch64", _) => "snponly-arm64.efi",
            (true, _, BootMode::Uefi) => "snponly.efi",
            (true, _, BootMode::Bios) => "undionly.kpxe",
        };
        Ok(named.map_or(built_in, String::as_str).to_owned())
    }
}

/// The architecture of a node's machine.
pub fn architecture(node: &Node) -> &str {
    node.properties.get("cpu_arch").and_then(|value| value.as_str()).unwrap_or(COMMON)
}

/// How a node's machine starts: as its instance wants, or as its properties say, or by UEFI.
///
/// # Errors
///
/// The capabilities of either cannot be read.
pub fn boot_mode(node: &Node) -> Result<BootMode, InterfaceError> {
    let invalid = |error: BadValue| InterfaceError::invalid("capabilities", error.to_string());
    let of_instance = node.instance_info.capabilities().and_then(|read| read.boot_mode()).map_err(invalid)?;
    let of_node = node.properties.capabilities().and_then(|read| read.boot_mode()).map_err(invalid)?;
    Ok(of_instance.or(of_node).unwrap_or(BootMode::Uefi))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use serde_json::json;

    #[test]
    fn f59_architecture_and_boot_mode_name_a_loader_together_before_the_architecture_alone() {
        let own: BTreeMap<_, _> = [("aarch64", "arm.efi"), ("x86_64-bios", "own.0"), ("x86_64", "own.efi")]
            .map(|(key, name)| (key.to_owned(), name.to_owned()))
            .into();
        let own = BootFileNames { pxe: own.clone(), ipxe: own };
        for (architecture, mode, is_ipxe, built_in, named) in [
            (None, None, false, "bootx64.efi", "own.efi"),
            (None, Some("bios"), false, "pxelinux.0", "own.0"),
            (None, Some("bios"), true, "undionly.kpxe", "own.0"),
            (Some("x86_64"), Some("uefi"), true, "snponly.efi", "own.efi"),
            (Some("aarch64"), None, false, "bootaa64.efi", "arm.efi"),
            (Some("aarch64"), None, true, "snponly-arm64.efi", "arm.efi"),
        ] {
            let mut node = fixtures::node(&json!({}));
            node.properties.insert("cpu_arch".into(), json!(architecture));
            node.properties
                .insert("capabilities".into(), json!(mode.map(|mode| format!("boot_mode:{mode}"))));
            assert_eq!(BootFileNames::default().of(&node, is_ipxe).unwrap(), built_in);
            assert_eq!(own.of(&node, is_ipxe).unwrap(), named);
        }
    }

    #[test]
    fn what_an_instance_wants_holds_before_the_properties() {
        let mut node = fixtures::node(&json!({}));
        node.properties.insert("capabilities".into(), json!("boot_mode:uefi"));
        node.instance_info.insert("capabilities".into(), json!({"boot_mode": "bios"}));
        assert_eq!(boot_mode(&node).unwrap(), BootMode::Bios);
        node.instance_info.insert("capabilities".into(), json!("boot_mode:both"));
        assert!(boot_mode(&node).unwrap_err().to_string().contains("must be bios or uefi"));
    }
}
