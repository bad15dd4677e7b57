//! Capabilities: what a machine can do, and what an instance wants of it (section 1.11).

use crate::model::typed_maps::typed_map::BadValue;
use farrier_protocol::json::{self, Limits};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// How a machine's firmware boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootMode {
    /// The boot sector.
    Bios,
    /// The EFI system partition.
    Uefi,
}

impl BootMode {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bios => "bios",
            Self::Uefi => "uefi",
        }
    }
}

/// Names with their values, in any of the three spellings: `k1:v1,k2:v2`, an object, or an object as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    values: BTreeMap<String, String>,
    map: &'static str,
}

impl Capabilities {
    /// The capabilities of a map of the record.
    ///
    /// # Errors
    ///
    /// They have none of the three spellings.
    pub(in crate::model) fn read(holder: &Map<String, Value>, map: &'static str) -> Result<Self, BadValue> {
        let values = match holder.get("capabilities") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(object)) => of_object(object),
            Some(Value::String(text)) => {
                match json::read::<Map<String, Value>>(text.as_bytes(), &Limits::USUAL) {
                    Ok(object) => of_object(&object),
                    Err(_) => of_pairs(text).ok_or_else(|| unreadable(map))?,
                }
            }
            Some(_) => return Err(unreadable(map)),
        };
        Ok(Self { values, map })
    }

    /// The value of a capability.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Every capability with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Gives a capability a value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// The boot mode, where one is named.
    ///
    /// # Errors
    ///
    /// It is neither `bios` nor `uefi`.
    pub fn boot_mode(&self) -> Result<Option<BootMode>, BadValue> {
        match self.get("boot_mode") {
            None => Ok(None),
            Some("bios") => Ok(Some(BootMode::Bios)),
            Some("uefi") => Ok(Some(BootMode::Uefi)),
            Some(other) => Err(BadValue::new(
                self.map,
                "capabilities",
                format!("boot_mode {other:?} must be bios or uefi"),
            )),
        }
    }
}

/// The spelling that every client reads: `k1:v1,k2:v2`.
impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<_> = self.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        f.write_str(&pairs.join(","))
    }
}

fn unreadable(map: &'static str) -> BadValue {
    BadValue::new(map, "capabilities", "must be an object, or a text such as boot_mode:uefi,secure_boot:true")
}

fn of_object(object: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    object.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn of_pairs(text: &str) -> Option<BTreeMap<String, String>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            pair.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn boot_mode(capabilities: Value) -> Result<Option<BootMode>, String> {
        let holder = Map::from_iter([("capabilities".to_owned(), capabilities)]);
        let read = Capabilities::read(&holder, "properties").and_then(|read| read.boot_mode());
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn the_three_spellings_say_the_same() {
        for value in [
            json!("cpu_vt:true, boot_mode:bios"),
            json!({"boot_mode": "bios", "cpu_vt": true}),
            json!(r#"{"boot_mode": "bios"}"#),
        ] {
            assert_eq!(boot_mode(value.clone()), Ok(Some(BootMode::Bios)), "{value}");
        }
        for value in [json!(""), json!(null), json!({}), json!("cpu_vt:true")] {
            assert_eq!(boot_mode(value.clone()), Ok(None), "{value}");
        }
    }

    #[test]
    fn they_are_written_as_they_are_read() {
        let holder =
            Map::from_iter([("capabilities".to_owned(), json!({"boot_mode": "bios", "cpu_vt": true}))]);
        let mut capabilities = Capabilities::read(&holder, "properties").unwrap();
        capabilities.set("boot_mode", "uefi");
        assert_eq!(capabilities.to_string(), "boot_mode:uefi,cpu_vt:true");
        let written = Map::from_iter([("capabilities".to_owned(), json!(capabilities.to_string()))]);
        assert_eq!(Capabilities::read(&written, "properties"), Ok(capabilities));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (value, part) in [
            (json!("boot_mode"), "such as boot_mode:uefi"),
            (json!(1), "such as boot_mode:uefi"),
            (json!("boot_mode:both"), "\"both\" must be bios or uefi"),
        ] {
            let error = boot_mode(value).unwrap_err();
            assert!(error.starts_with("properties capabilities: ") && error.contains(part), "{error}");
        }
    }
}
