//! Makers of BMCs, and in what theirs differ.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Whose BMC a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    /// Nobody's: all is as the schema has it.
    Generic,
    /// As iDRAC does.
    Dell,
    /// As iLO does.
    Hpe,
    /// As XClarity does.
    Lenovo,
    /// As Supermicro's does.
    Supermicro,
}

impl Vendor {
    /// The maker, as the machine says it.
    pub fn manufacturer(self) -> &'static str {
        match self {
            Self::Generic => "Fleet",
            Self::Dell => "Dell Inc.",
            Self::Hpe => "HPE",
            Self::Lenovo => "Lenovo",
            Self::Supermicro => "Supermicro",
        }
    }

    /// The path of the machine.
    pub fn system(self) -> &'static str {
        match self {
            Self::Dell => "/redfish/v1/Systems/System.Embedded.1",
            _ => "/redfish/v1/Systems/1",
        }
    }

    /// The path of what manages it.
    pub fn manager(self) -> &'static str {
        match self {
            Self::Dell => "/redfish/v1/Managers/iDRAC.Embedded.1",
            _ => "/redfish/v1/Managers/1",
        }
    }

    /// The boot device that the virtual CD is.
    pub fn virtual_cd(self) -> &'static str {
        if self == Self::Supermicro { "UsbCd" } else { "Cd" }
    }

    /// Whether an ejection has to have a body.
    pub fn wants_eject_body(self) -> bool {
        self == Self::Hpe
    }

    /// Whether an insertion has to name the protocol of its URL.
    pub fn wants_protocol(self) -> bool {
        self == Self::Supermicro
    }

    /// Whether the virtual drives are told by the machine, and not by what manages it.
    pub fn has_drives_at_system(self) -> bool {
        self == Self::Lenovo
    }

    /// Whose BMC the machine with a number has, where each maker has so many parts of the fleet.
    pub fn of(machine: u32, parts: &BTreeMap<Self, u32>) -> Self {
        let sum: u64 = parts.values().map(|part| u64::from(*part)).sum();
        let mut left = u64::from(machine).checked_rem(sum).unwrap_or_default();
        for (vendor, part) in parts {
            match left.checked_sub(u64::from(*part)) {
                Some(rest) => left = rest,
                None => return *vendor,
            }
        }
        Self::Generic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_have_their_parts_of_the_fleet() {
        let parts = BTreeMap::from([(Vendor::Generic, 1), (Vendor::Dell, 3), (Vendor::Hpe, 0)]);
        let vendors: Vec<_> = (0..8).map(|machine| Vendor::of(machine, &parts)).collect();
        let count = |vendor| vendors.iter().filter(|one| **one == vendor).count();
        assert_eq!([Vendor::Generic, Vendor::Dell, Vendor::Hpe].map(count), [2, 6, 0]);
        assert_eq!(Vendor::of(5, &BTreeMap::new()), Vendor::Generic);
    }
}
