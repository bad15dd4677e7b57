//! How a node's machine starts.

use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{BadValue, BootMode, Node};

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
    fn what_an_instance_wants_holds_before_the_properties() {
        let mut node = fixtures::node(&json!({}));
        node.properties.insert("capabilities".into(), json!("boot_mode:uefi"));
        node.instance_info.insert("capabilities".into(), json!({"boot_mode": "bios"}));
        assert_eq!(boot_mode(&node).unwrap(), BootMode::Bios);
        node.instance_info.insert("capabilities".into(), json!("boot_mode:both"));
        assert!(boot_mode(&node).unwrap_err().to_string().contains("must be bios or uefi"));
    }
}
