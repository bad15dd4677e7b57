//! What looks at an inventory, and says what of the node is to change: a table of pure functions.
//!
//! Which of them run, and in which order, is a setting ([`InspectionSettings::hooks`]). Each sees what those before it
//! have changed. The author of a conductor may have hooks of their own beside those of [`HOOKS`].

mod architecture;
mod capabilities;
mod parse_lldp;
mod ports;
mod ramdisk_error;
mod root_device;
mod validate_interfaces;

use crate::inventory::settings::InspectionSettings;
use crate::model::{InspectionData, Node, Port};
use serde_json::{Map, Value};
use std::fmt;

/// What a hook looks at.
#[derive(Debug, Clone, Copy)]
pub struct Inspected<'a> {
    /// The record.
    pub node: &'a Node,
    /// What the ramdisk posted.
    pub data: &'a InspectionData,
    /// How machines are inspected.
    pub settings: &'a InspectionSettings,
}

/// What a hook wants changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Hardware properties that get these values.
    pub properties: Map<String, Value>,
    /// The ports of the node after the inspection; nothing where they stay as they are.
    pub ports: Option<Vec<Port>>,
    /// What is kept beside the inventory.
    pub plugin_data: Map<String, Value>,
}

impl Changes {
    /// One hardware property gets a value.
    pub fn property(name: &str, value: impl Into<Value>) -> Self {
        Self { properties: Map::from_iter([(name.to_owned(), value.into())]), ..Self::default() }
    }
}

/// What looks at an inventory.
#[derive(Clone, Copy)]
pub struct Hook {
    /// Its name, as operators list it.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
    /// What it wants changed; the reason, when the inspection fails because of it.
    pub look: fn(&Inspected<'_>) -> Result<Changes, String>,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every hook that there is.
pub const HOOKS: &[Hook] = &[
    Hook {
        name: "ramdisk-error",
        help: "Fails the inspection when the ramdisk says that something went wrong",
        look: ramdisk_error::look,
    },
    Hook {
        name: "validate-interfaces",
        help: "Fails the inspection of a machine without a usable network card, and notes all_interfaces, \
            valid_interfaces and macs",
        look: validate_interfaces::look,
    },
    Hook { name: "ports", help: "Adds and removes ports, and sets their pxe_enabled", look: ports::look },
    Hook { name: "architecture", help: "Sets the property cpu_arch", look: architecture::look },
    Hook {
        name: "root-device",
        help: "Finds the disk that the root device hints mean, notes it as root_disk, and sets the property local_gb",
        look: root_device::look,
    },
    Hook {
        name: "capabilities",
        help: "Sets the capability boot_mode, and those that come with flags of the processor",
        look: capabilities::look,
    },
    Hook {
        name: "parse-lldp",
        help: "Notes what switches tell of themselves as parsed_lldp, where the ramdisk has collected lldp",
        look: parse_lldp::look,
    },
];

/// Those that run where nothing else is said.
const DEFAULT: &[&str] = &["ramdisk-error", "validate-interfaces", "ports", "architecture"];

/// There is no such hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no inspection hook; use: {known}")]
pub struct UnknownHook {
    name: String,
    known: String,
}

/// The hooks that run where nothing else is said.
pub fn default() -> Vec<Hook> {
    HOOKS.iter().filter(|hook| DEFAULT.contains(&hook.name)).copied().collect()
}

/// The hook of [`HOOKS`] with this name.
///
/// # Errors
///
/// [`UnknownHook`] with the names that there are.
pub fn named(name: &str) -> Result<Hook, UnknownHook> {
    let known = || HOOKS.iter().map(|hook| hook.name).collect::<Vec<_>>().join(", ");
    let found = HOOKS.iter().find(|hook| hook.name == name);
    found.copied().ok_or_else(|| UnknownHook { name: name.to_owned(), known: known() })
}

/// An inspection failed because of what a hook saw.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("inspection hook {hook}: {reason}")]
pub struct Refused {
    /// Its name.
    pub hook: &'static str,
    /// What it saw.
    pub reason: String,
}

/// What becomes of a node and of what its ramdisk posted when all hooks have looked.
///
/// # Errors
///
/// [`Refused`] by the first that refuses.
pub fn run(
    mut node: Node,
    mut data: InspectionData,
    settings: &InspectionSettings,
) -> Result<(Node, InspectionData), Refused> {
    for hook in &settings.hooks {
        let inspected = Inspected { node: &node, data: &data, settings };
        let changes = (hook.look)(&inspected).map_err(|reason| Refused { hook: hook.name, reason })?;
        node.properties.extend(changes.properties);
        node.ports = changes.ports.unwrap_or(node.ports);
        data.plugin_data.extend(changes.plugin_data);
    }
    Ok((node, data))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::NewNode;
    use serde_json::json;
    use time::OffsetDateTime;

    /// A node with a port for each address, and nothing else.
    pub(in super::super) fn node(addresses: &[&str]) -> Node {
        let ports = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Node::enrol(NewNode { ports, ..NewNode::default() }, OffsetDateTime::UNIX_EPOCH)
    }

    /// What a ramdisk posted.
    pub(in super::super) fn data(inventory: Value, plugin_data: Value) -> InspectionData {
        serde_json::from_value(json!({"inventory": inventory, "plugin_data": plugin_data})).unwrap()
    }

    /// What a hook wants changed of a node with these properties.
    pub(in super::super) fn look(
        hook: &str,
        properties: Value,
        inventory: Value,
        plugin_data: Value,
    ) -> Result<Changes, String> {
        let mut node = node(&[]);
        node.properties = serde_json::from_value(properties).unwrap();
        let (data, settings) = (data(inventory, plugin_data), InspectionSettings::default());
        (named(hook).unwrap().look)(&Inspected { node: &node, data: &data, settings: &settings })
    }

    #[test]
    fn hooks_are_known_by_their_names() {
        let names: Vec<_> = default().iter().map(|hook| hook.name).collect();
        assert_eq!(names, DEFAULT, "in the order in which they run");
        for hook in HOOKS {
            assert_eq!(named(hook.name).unwrap().help, hook.help);
        }
        let error = named("port").unwrap_err().to_string();
        assert!(error.starts_with("\"port\" is no inspection hook; use: ramdisk-error, "), "{error}");
    }

    #[test]
    fn each_hook_sees_what_those_before_it_have_changed_and_the_first_refusal_ends_it() {
        fn first(_: &Inspected<'_>) -> Result<Changes, String> {
            Ok(Changes::property("rack", 7))
        }
        fn second(inspected: &Inspected<'_>) -> Result<Changes, String> {
            Err(format!("rack {}", inspected.node.properties["rack"]))
        }
        let hook = |name, look| Hook { name, help: "", look };
        let hooks = vec![hook("first", first as fn(&Inspected<'_>) -> _), hook("second", second)];
        let settings = InspectionSettings { hooks, ..InspectionSettings::default() };
        let refused = run(node(&[]), InspectionData::default(), &settings).unwrap_err();
        assert_eq!(refused.to_string(), "inspection hook second: rack 7");
    }
}
