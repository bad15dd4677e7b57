//! Which interface of a kind a node has, by name: that of its instance, its own, the default, the best of its type.

use super::composition::{Composition, listed};
use super::declaration::HardwareType;
use super::not_offered;
use crate::interfaces::boot::{BootCapability, BootNeed};
use crate::model::{BadValue, InterfaceKind, Node, NodeInterfaces};

/// A node has an interface that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// There is no such hardware type.
    #[error("driver: {name:?} is not known; use one of: {known}")]
    HardwareType {
        /// What the node says.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The interface does not work for the hardware type, or is not enabled.
    #[error("{kind}_interface: {name:?} {reason}; use one of: {candidates}")]
    Interface {
        /// The kind.
        kind: InterfaceKind,
        /// What the node says.
        name: String,
        /// Why not.
        reason: String,
        /// Those that would do.
        candidates: String,
    },
    /// The node has no interface of a kind that it needs.
    #[error("{kind}_interface: hardware type {hardware_type:?} has none")]
    None {
        /// The kind.
        kind: InterfaceKind,
        /// The hardware type of the node.
        hardware_type: String,
    },
    /// Boot and deploy interface do not go together.
    #[error("deploy_interface: {deploy:?} needs {need}, and the node has: {boot}")]
    Combination {
        /// The deploy interface.
        deploy: String,
        /// What it needs.
        need: BootNeed,
        /// The boot interface.
        boot: String,
    },
    /// The instance is a ramdisk, and its boot interface shows it no config drive.
    #[error(
        "configdrive: boot interface {0:?} shows none to an instance that is a ramdisk; leave it out, or choose one with \
         the capability ramdisk_boot_configdrive"
    )]
    ConfigDrive(
        /// The boot interface.
        String,
    ),
    /// `instance_info` names none.
    #[error(transparent)]
    InstanceInfo(#[from] BadValue),
}

impl Composition {
    /// The hardware type of a node.
    ///
    /// # Errors
    ///
    /// [`Unresolved::HardwareType`].
    pub fn hardware_type(&self, name: &str) -> Result<&HardwareType, Unresolved> {
        let unknown =
            || Unresolved::HardwareType { name: name.to_owned(), known: listed(self.types.keys(), ", ") };
        self.types.get(name).ok_or_else(unknown)
    }

    /// The names of all hardware types.
    pub fn hardware_types(&self) -> Vec<&str> {
        self.types.keys().map(String::as_str).collect()
    }

    /// The interface of a kind that nodes of a type have that choose none, and all that they may have.
    pub fn interfaces_of(&self, name: &str, kind: InterfaceKind) -> (Option<&str>, Vec<&str>) {
        let Some(hardware_type) = self.types.get(name) else { return (None, Vec::new()) };
        let enabled: Vec<_> = self.candidates(hardware_type, kind).map(String::as_str).collect();
        let default = self.defaults.get(&kind).map(String::as_str).or(enabled.first().copied());
        (default, enabled)
    }

    /// The name of the interface of a kind that a node has; nothing where its type has none.
    ///
    /// # Errors
    ///
    /// It has one that it cannot have.
    pub fn resolve<'a>(&'a self, node: &'a Node, kind: InterfaceKind) -> Result<Option<&'a str>, Unresolved> {
        let hardware_type = self.hardware_type(&node.driver)?;
        let of_instance = node.instance_info.text(&kind.field())?;
        let fallback =
            node.driver_internal_info.boot_fallback.as_ref().filter(|_| kind == InterfaceKind::Boot);
        let of_boot = fallback.map(|fallback| fallback.boot_interface.as_str());
        let Some(name) = of_boot.or(of_instance).or_else(|| node.interfaces.get(kind)) else {
            let default = self.defaults.get(&kind);
            let best = default.or_else(|| self.candidates(hardware_type, kind).next());
            return Ok(best.map(String::as_str));
        };
        self.check(hardware_type, kind, name)?;
        Ok(Some(name))
    }

    /// Checks that nodes of a type can have an interface.
    fn check(&self, hardware_type: &HardwareType, kind: InterfaceKind, name: &str) -> Result<(), Unresolved> {
        let refuse = |reason: String| Unresolved::Interface {
            kind,
            name: name.to_owned(),
            reason,
            candidates: listed(self.candidates(hardware_type, kind), ", "),
        };
        if !hardware_type.supported(kind).iter().any(|one| one == name) {
            let unsupported = || format!("does not work for hardware type {:?}", hardware_type.name());
            return Err(refuse(not_offered::reason(kind, name).map_or_else(unsupported, str::to_owned)));
        }
        if !self.enabled[&kind].contains(name) {
            return Err(refuse("is not enabled".to_owned()));
        }
        Ok(())
    }

    /// The names of all interfaces of a node.
    ///
    /// # Errors
    ///
    /// It has one that it cannot have, or two that do not go together.
    pub fn resolve_all(&self, node: &Node) -> Result<NodeInterfaces, Unresolved> {
        let mut interfaces = NodeInterfaces::default();
        for kind in InterfaceKind::ALL.iter().copied() {
            if let Some(name) = self.resolve(node, kind)? {
                interfaces.set(kind, name);
            }
        }
        self.check_boot(node)?;
        let hardware_type = self.hardware_type(&node.driver)?;
        let fallback = node.driver_info.boot_fallback()?;
        fallback.into_iter().try_for_each(|name| self.check(hardware_type, InterfaceKind::Boot, name))?;
        Ok(interfaces)
    }

    /// Checks that the boot interface of a node can boot what its deploy interface needs.
    ///
    /// # Errors
    ///
    /// [`Unresolved::Combination`], [`Unresolved::ConfigDrive`], and as [`Self::resolve`].
    pub(crate) fn check_boot(&self, node: &Node) -> Result<(), Unresolved> {
        let boot = self.resolve(node, InterfaceKind::Boot)?;
        let Some(deploy) = self.resolve(node, InterfaceKind::Deploy)? else { return Ok(()) };
        if !self.goes_with(deploy, boot) {
            let (need, boot) = (self.boot_need(deploy), boot.unwrap_or("none").to_owned());
            return Err(Unresolved::Combination { deploy: deploy.to_owned(), need, boot });
        }
        let has_drive = node.instance_info.get("configdrive").is_some_and(|drive| !drive.is_null());
        let shows_it = BootNeed::Capability(BootCapability::RamdiskBootConfigdrive);
        match boot {
            Some(name) if has_drive && self.boots_ramdisk(node)? && !self.meets(shows_it, boot) => {
                Err(Unresolved::ConfigDrive(name.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Whether the instance of a node is a ramdisk: its deploy interface needs a boot interface then that boots one.
    ///
    /// # Errors
    ///
    /// As [`Self::resolve`].
    pub fn boots_ramdisk(&self, node: &Node) -> Result<bool, Unresolved> {
        let deploy = self.resolve(node, InterfaceKind::Deploy)?;
        let of_ramdisks = BootNeed::Capability(BootCapability::RamdiskBoot);
        Ok(deploy.is_some_and(|deploy| self.boot_need(deploy) == of_ramdisks))
    }
}

#[cfg(test)]
mod tests {
    use super::super::composition::tests::declared;
    use super::*;
    use crate::model::NewNode;
    use InterfaceKind::{Boot, Deploy, Power, Raid};
    use serde_json::json;
    use std::collections::BTreeMap;
    use time::OffsetDateTime;

    fn node(driver: &str) -> Node {
        Node::enrol(NewNode { driver: driver.into(), ..NewNode::default() }, OffsetDateTime::UNIX_EPOCH)
    }

    #[test]
    fn the_instance_comes_before_the_node_the_default_and_the_best() {
        for (of_instance, of_node, default, expected) in [
            (Some("pxe"), Some("plain"), Some("plain"), "pxe"),
            (None, Some("pxe"), Some("plain"), "pxe"),
            (None, None, Some("pxe"), "pxe"),
            (None, None, None, "plain"),
        ] {
            let mut declared = declared();
            declared.types.pop();
            declared.defaults = default.map(|name| (Boot, name.to_owned())).into_iter().collect();
            let composition = declared.check().unwrap();
            let mut node = node("rack");
            node.instance_info.extend(of_instance.map(|name| ("boot_interface".to_owned(), json!(name))));
            of_node.into_iter().for_each(|name| node.interfaces.set(Boot, name));
            assert_eq!(composition.resolve(&node, Boot), Ok(Some(expected)));
        }
    }

    #[test]
    fn what_is_not_enabled_is_passed_over() {
        let enabled = BTreeMap::from([(Power, vec!["strip".to_owned()])]);
        let composition = crate::hardware_type::Declared { enabled, ..declared() }.check().unwrap();
        assert_eq!(composition.resolve(&node("rack"), Power), Ok(Some("strip")));
        let mut chosen = node("rack");
        chosen.interfaces.set(Power, "ipmi");
        let error = composition.resolve(&chosen, Power).unwrap_err().to_string();
        assert_eq!(error, "power_interface: \"ipmi\" is not enabled; use one of: strip");
    }

    #[test]
    fn what_a_node_cannot_have_is_refused_with_what_it_can() {
        let composition = declared().check().unwrap();
        let error = composition.resolve(&node("rck"), Power).unwrap_err().to_string();
        assert_eq!(error, "driver: \"rck\" is not known; use one of: bare, rack");
        let mut bare = node("bare");
        assert_eq!(composition.resolve(&bare, Boot), Ok(None));
        bare.interfaces.set(Boot, "pxe");
        let error = composition.resolve(&bare, Boot).unwrap_err().to_string();
        assert_eq!(
            error,
            "boot_interface: \"pxe\" does not work for hardware type \"bare\"; use one of: none"
        );
        let mut rack = node("rack");
        rack.instance_info.insert("boot_interface".into(), json!(7));
        let error = composition.resolve(&rack, Boot).unwrap_err().to_string();
        assert!(error.starts_with("instance_info boot_interface"), "{error}");
    }

    #[test]
    fn what_is_not_offered_says_what_to_use_in_its_place() {
        let composition = declared().check().unwrap();
        let mut rack = node("rack");
        rack.interfaces.set(Deploy, "anaconda");
        let error = composition.resolve(&rack, Deploy).unwrap_err().to_string();
        assert!(error.starts_with("deploy_interface: \"anaconda\" is not supported, because"), "{error}");
        assert!(error.ends_with("; use one of: direct, ramdisk"), "{error}");
    }

    #[test]
    fn a_ramdisk_gets_no_config_drive_that_its_boot_interface_cannot_show() {
        for (deploy, drive, shows, is_refused) in [
            ("ramdisk", true, false, true),
            ("ramdisk", true, true, false),
            ("ramdisk", false, false, false),
            ("direct", true, false, false),
        ] {
            let mut declared = declared();
            let capabilities = declared.boot_capabilities.get_mut("pxe").unwrap();
            capabilities.extend(shows.then_some(BootCapability::RamdiskBootConfigdrive));
            let composition = declared.check().unwrap();
            let mut node = node("rack");
            node.interfaces.set(Boot, "pxe");
            node.interfaces.set(Deploy, deploy);
            node.instance_info.extend(drive.then(|| ("configdrive".to_owned(), json!("******"))));
            let checked = composition.check_boot(&node);
            assert_eq!(checked.is_err(), is_refused, "{deploy} {drive} {shows}");
            assert_eq!(composition.boots_ramdisk(&node), Ok(deploy == "ramdisk"));
            if let Err(error) = checked {
                assert!(
                    error.to_string().starts_with("configdrive: boot interface \"pxe\" shows none"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn boot_and_deploy_interface_must_go_together() {
        let composition = declared().check().unwrap();
        for (boot, deploy, expected) in [
            ("plain", "direct", None),
            ("pxe", "direct", None),
            ("pxe", "ramdisk", None),
            (
                "plain",
                "ramdisk",
                Some("needs a boot interface with the capability ramdisk_boot, and the node has: plain"),
            ),
        ] {
            let mut node = node("rack");
            node.interfaces.set(Boot, boot);
            node.interfaces.set(Deploy, deploy);
            let resolved = composition.resolve_all(&node);
            match expected {
                None => assert_eq!(resolved.unwrap().get(Raid), Some("no-raid"), "{boot} {deploy}"),
                Some(text) => assert!(resolved.unwrap_err().to_string().contains(text), "{boot} {deploy}"),
            }
        }
    }
}
