//! Which implementation does what for a node (sections 1.7 and 10).

use crate::model::states::named_states;
use serde::de::{Deserializer, Error as _};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

named_states! {
    /// What a node has an interface for.
    InterfaceKind {
        /// Settings of the firmware.
        Bios = "bios",
        /// Makes the machine boot the ramdisk or the instance.
        Boot = "boot",
        /// Gives access to the machine's serial console.
        Console = "console",
        /// Puts an image onto the machine.
        Deploy = "deploy",
        /// Writes other versions of the firmware.
        Firmware = "firmware",
        /// Finds out what the machine is made of.
        Inspect = "inspect",
        /// Boot device, boot mode, sensors.
        Management = "management",
        /// Connects the machine to networks.
        Network = "network",
        /// Switches the machine on and off.
        Power = "power",
        /// Makes RAID volumes.
        Raid = "raid",
        /// Boots a system to repair the instance with.
        Rescue = "rescue",
        /// Attaches volumes of other machines.
        Storage = "storage",
        /// What only this vendor has.
        Vendor = "vendor",
    }
}

impl InterfaceKind {
    /// The field of a node that names the implementation.
    pub fn field(self) -> String {
        format!("{self}_interface")
    }

    /// Whether every node has one. What can be booted without help needs no boot interface.
    pub fn is_mandatory(self) -> bool {
        use InterfaceKind::{Deploy, Management, Network, Power, Storage};
        matches!(self, Deploy | Management | Network | Power | Storage)
    }
}

/// The names of a node's interfaces, where they are chosen: the fields `<kind>_interface` of its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeInterfaces(BTreeMap<InterfaceKind, String>);

impl NodeInterfaces {
    /// The chosen one of a kind.
    pub fn get(&self, kind: InterfaceKind) -> Option<&str> {
        self.0.get(&kind).map(String::as_str)
    }

    /// Chooses one of a kind.
    pub fn set(&mut self, kind: InterfaceKind, name: impl Into<String>) {
        self.0.insert(kind, name.into());
    }

    /// Leaves the choice of a kind to the hardware type.
    pub fn unset(&mut self, kind: InterfaceKind) {
        self.0.remove(&kind);
    }
}

impl Serialize for NodeInterfaces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(InterfaceKind::ALL.len()))?;
        for kind in InterfaceKind::ALL {
            fields.serialize_entry(&kind.field(), &self.get(*kind))?;
        }
        fields.end()
    }
}

impl<'de> Deserialize<'de> for NodeInterfaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let mut interfaces = Self::default();
        for kind in InterfaceKind::ALL {
            match fields.remove(&kind.field()) {
                None | Some(Value::Null) => {}
                Some(Value::String(name)) if !name.is_empty() => interfaces.set(*kind, name),
                Some(_) => {
                    return Err(D::Error::custom(format!("{} must be the name of one", kind.field())));
                }
            }
        }
        Ok(interfaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interfaces_are_fields_of_their_own() {
        let read = |value: Value| serde_json::from_value::<NodeInterfaces>(value);
        let interfaces =
            read(json!({"name": "n1", "boot_interface": "ipxe", "raid_interface": null})).unwrap();
        assert_eq!(interfaces.get(InterfaceKind::Boot), Some("ipxe"));
        assert_eq!(interfaces.get(InterfaceKind::Raid), None);
        let fields = json!(interfaces);
        assert_eq!((&fields["boot_interface"], &fields["raid_interface"]), (&json!("ipxe"), &Value::Null));
        assert_eq!(fields.as_object().unwrap().len(), InterfaceKind::ALL.len());
        assert_eq!(read(fields).unwrap(), interfaces);
        for bad in [json!(1), json!(""), json!(["ipxe"])] {
            let error = read(json!({"boot_interface": bad})).unwrap_err().to_string();
            assert!(error.starts_with("boot_interface must be"), "{error}");
        }
    }
}
