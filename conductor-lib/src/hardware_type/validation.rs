//! What is missing for a node, told by each of its interfaces, and the keys of `driver_info` that they read.

use super::registry::Hardware;
use super::resolution::Unresolved;
use crate::model::{InterfaceKind, Node};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether an interface of a node can do its part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// Whether it can; nothing where the node has no such interface.
    pub result: Option<bool>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Validity {
    fn because(reason: impl ToString) -> Self {
        Self { result: Some(false), reason: Some(reason.to_string()) }
    }

    fn unsupported() -> Self {
        Self { result: None, reason: Some("not supported".to_owned()) }
    }
}

impl Hardware {
    /// What each interface of a node says about it. Methods of vendors validate their own arguments.
    pub async fn validate(&self, node: &Node) -> BTreeMap<InterfaceKind, Validity> {
        let mut validities = BTreeMap::new();
        for kind in InterfaceKind::ALL.iter().copied().filter(|kind| *kind != InterfaceKind::Vendor) {
            validities.insert(kind, self.validity(node, kind).await);
        }
        if let Err(error @ (Unresolved::Combination { .. } | Unresolved::ConfigDrive(_))) =
            self.composition.check_boot(node)
        {
            validities.insert(InterfaceKind::Deploy, Validity::because(error));
        }
        validities
    }

    async fn validity(&self, node: &Node, kind: InterfaceKind) -> Validity {
        let name = match self.composition.resolve(node, kind) {
            Ok(Some(name)) => name,
            Ok(None) => return Validity::unsupported(),
            Err(error) => return Validity::because(error),
        };
        let Some(interface) = self.interfaces.named(kind, name) else { return Validity::unsupported() };
        match interface.validate(node).await {
            Ok(()) => Validity { result: Some(true), reason: None },
            Err(error) => Validity::because(error),
        }
    }

    /// The keys of `driver_info` that the enabled interfaces of a hardware type read.
    ///
    /// # Errors
    ///
    /// [`Unresolved::HardwareType`].
    pub fn properties(
        &self,
        hardware_type: &str,
    ) -> Result<BTreeMap<&'static str, &'static str>, Unresolved> {
        let hardware_type = self.composition.hardware_type(hardware_type)?;
        let named = InterfaceKind::ALL.iter().flat_map(|kind| {
            let names = self.composition.candidates(hardware_type, *kind);
            names.filter_map(|name| self.interfaces.named(*kind, name))
        });
        Ok(named.flat_map(|interface| interface.get_properties()).copied().collect())
    }

    /// The keys of a volume that the enabled RAID interfaces of a hardware type know.
    ///
    /// # Errors
    ///
    /// [`Unresolved::HardwareType`].
    pub fn logical_disk_properties(
        &self,
        hardware_type: &str,
    ) -> Result<BTreeMap<&'static str, &'static str>, Unresolved> {
        let hardware_type = self.composition.hardware_type(hardware_type)?;
        let names = self.composition.candidates(hardware_type, InterfaceKind::Raid);
        let named = names.filter_map(|name| self.interfaces.raid.named(name));
        Ok(named.flat_map(|raid| raid.get_logical_disk_properties()).copied().collect())
    }
}
