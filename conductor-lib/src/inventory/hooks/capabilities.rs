//! What the firmware and the processors of a machine can do.

use crate::inventory::hooks::{Changes, Inspected};
use crate::model::BootMode;
use serde_json::Value;

/// Flags of processors, and the capabilities that come with them, by Ironic's names.
const OF_FLAGS: &[(&str, &str)] = &[
    ("vmx", "cpu_vt"),
    ("svm", "cpu_vt"),
    ("aes", "cpu_aes"),
    ("pse", "cpu_hugepages"),
    ("pdpe1gb", "cpu_hugepages_1g"),
    ("smx", "cpu_txt"),
];

/// Sets the capabilities that are seen, and leaves the others.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    let inventory = &inspected.data.inventory;
    let text = |section: &str, key: &str| inventory.get(section)?.get(key)?.as_str();
    let mut capabilities = inspected.node.properties.capabilities().map_err(|error| error.to_string())?;
    let seen = text("boot", "current_boot_mode");
    if let Some(mode) = [BootMode::Bios, BootMode::Uefi].into_iter().find(|mode| seen == Some(mode.as_str()))
    {
        capabilities.set("boot_mode", mode.as_str());
    }
    let flags = inventory.get("cpu").and_then(|cpu| cpu.get("flags")).and_then(Value::as_array);
    for flag in flags.into_iter().flatten() {
        for (_, capability) in OF_FLAGS.iter().filter(|(name, _)| flag == name) {
            capabilities.set(capability, "true");
        }
    }
    if capabilities.iter().next().is_none() {
        return Ok(Changes::default());
    }
    Ok(Changes::property("capabilities", capabilities.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::look;
    use serde_json::{Value, json};

    fn capabilities(before: Value, inventory: Value) -> Result<Value, String> {
        let changes = look("capabilities", json!({"capabilities": before}), inventory, json!({}))?;
        Ok(changes.properties.get("capabilities").cloned().unwrap_or_default())
    }

    #[test]
    fn what_is_seen_is_set_and_the_rest_stays() {
        let inventory =
            json!({"boot": {"current_boot_mode": "uefi"}, "cpu": {"flags": ["fpu", "svm", "aes", 7]}});
        for (before, expected) in [
            (json!(null), "boot_mode:uefi,cpu_aes:true,cpu_vt:true"),
            (json!("raid_level:1,boot_mode:bios"), "boot_mode:uefi,cpu_aes:true,cpu_vt:true,raid_level:1"),
            (json!({"raid_level": 1}), "boot_mode:uefi,cpu_aes:true,cpu_vt:true,raid_level:1"),
        ] {
            assert_eq!(capabilities(before.clone(), inventory.clone()), Ok(json!(expected)), "{before}");
        }
        assert_eq!(capabilities(json!(null), json!({"boot": {"current_boot_mode": "?"}})), Ok(Value::Null));
        let error = capabilities(json!(7), inventory).unwrap_err();
        assert!(error.starts_with("properties capabilities: "), "{error}");
    }
}
