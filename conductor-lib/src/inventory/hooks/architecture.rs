//! The architecture of a machine's processors.

use crate::inventory::hooks::{Changes, Inspected};
use serde_json::Value;

/// Sets `cpu_arch`, by which kernel and ramdisk are chosen; an inventory that does not tell it changes nothing.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    let cpu = inspected.data.inventory.get("cpu");
    let architecture = cpu.and_then(|cpu| cpu.get("architecture")).and_then(Value::as_str);
    let changes =
        architecture.filter(|text| !text.is_empty()).map(|text| Changes::property("cpu_arch", text));
    Ok(changes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::tests::look;
    use serde_json::{Value, json};

    #[test]
    fn the_architecture_is_the_kernels() {
        for (cpu, expected) in [
            (json!({"architecture": "aarch64"}), json!({"cpu_arch": "aarch64"})),
            (json!({"architecture": ""}), json!({})),
            (json!({"architecture": null}), json!({})),
            (Value::Null, json!({})),
        ] {
            let changes = look("architecture", json!({}), json!({"cpu": cpu}), json!({})).unwrap();
            assert_eq!(json!(changes.properties), expected);
        }
    }
}
