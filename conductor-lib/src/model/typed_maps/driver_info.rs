//! How a driver reaches a machine, and what it boots there (section 1.10).

use crate::model::typed_maps::typed_map::{BadValue, typed_map};

typed_map! {
    /// How the driver reaches the machine, and what it boots there. Keys that belong to one driver are read by it.
    DriverInfo = "driver_info"
}

impl DriverInfo {
    /// Whether the agent may stay between operations; nothing where the conductor's setting holds.
    ///
    /// # Errors
    ///
    /// The value stands for no boolean.
    pub fn fast_track(&self) -> Result<Option<bool>, BadValue> {
        self.flag("fast_track")
    }

    /// Whether boot devices hold for all boots, or for one, whatever is asked for; nothing where it is as asked for.
    ///
    /// # Errors
    ///
    /// The value is none of `Always`, `Default` and `Never`, nor a boolean, which older versions have.
    pub fn force_persistent_boot_device(&self) -> Result<Option<bool>, BadValue> {
        let key = "force_persistent_boot_device";
        let word = self.get(key).and_then(serde_json::Value::as_str).map(str::to_ascii_lowercase);
        match word.as_deref() {
            Some("always") => Ok(Some(true)),
            Some("never") => Ok(Some(false)),
            Some("default") => Ok(None),
            _ => match self.flag(key) {
                Ok(flag) => Ok(flag.filter(|is_forced| *is_forced)),
                Err(_) => Err(BadValue::new(Self::FIELD, key, "must be Always, Default or Never")),
            },
        }
    }

    /// The boot interfaces that a boot of the ramdisk falls back to, in this order, where the node's own cannot
    /// prepare it or no agent calls: their names, separated by commas.
    ///
    /// # Errors
    ///
    /// The value is no text.
    pub fn boot_fallback(&self) -> Result<Vec<&str>, BadValue> {
        let names = self.text("boot_fallback")?.unwrap_or_default();
        Ok(names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect())
    }

    /// Whether the machine is reset by its BMC when a deployment ends, instead of a shutdown by the agent.
    ///
    /// # Errors
    ///
    /// The value stands for no boolean.
    pub fn deploy_forces_oob_reboot(&self) -> Result<bool, BadValue> {
        Ok(self.flag("deploy_forces_oob_reboot")?.unwrap_or(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn boot_devices_may_be_forced() {
        for (value, expected) in [
            (json!("Always"), Ok(Some(true))),
            (json!("never"), Ok(Some(false))),
            (json!("Default"), Ok(None)),
            (json!(true), Ok(Some(true))),
            (json!("False"), Ok(None)),
            (json!(null), Ok(None)),
            (json!("sometimes"), Err(())),
        ] {
            let info: DriverInfo =
                serde_json::from_value(json!({"force_persistent_boot_device": value})).unwrap();
            assert_eq!(info.force_persistent_boot_device().map_err(drop), expected, "{value}");
        }
    }
}
