//! How machines are inspected; the options are those of Ironic's section `[inspector]`.

use crate::inventory::hooks::{self, Hook};
use crate::model::states::named_states;
use farrier_media::KernelParameters;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

named_states! {
    /// Which network cards that an inspection finds become ports.
    AddPorts {
        /// That from which the machine booted; where nobody tells which that is, those that are active.
        Pxe = "pxe",
        /// Those that have an address of their network.
        Active = "active",
        /// Every one.
        All = "all",
    }
}

named_states! {
    /// Which ports stay that a node has when it is inspected.
    KeepPorts {
        /// Every one.
        All = "all",
        /// Those whose network cards are still in the machine.
        Present = "present",
        /// Those that the inspection would have added.
        Added = "added",
    }
}

/// A choice is none of those that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not known; use one of: {known}")]
pub struct UnknownChoice {
    given: String,
    known: String,
}

macro_rules! chosen_by_name {
    ($($choice:ident,)*) => {
        $(
            impl FromStr for $choice {
                type Err = UnknownChoice;

                fn from_str(text: &str) -> Result<Self, Self::Err> {
                    let known = || Self::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", ");
                    Self::named(text).ok_or_else(|| UnknownChoice { given: text.to_owned(), known: known() })
                }
            }
        )*
    };
}

chosen_by_name! { AddPorts, KeepPorts, }

/// How machines are inspected.
#[derive(Debug, Clone)]
pub struct InspectionSettings {
    /// What looks at an inventory, and changes the node, in this order.
    pub hooks: Vec<Hook>,
    /// Which network cards become ports.
    pub add_ports: AddPorts,
    /// Which ports stay.
    pub keep_ports: KeepPorts,
    /// Powers machines off that are inspected.
    pub power_off: bool,
    /// Inspects only machines that the conductor can boot itself; others are only powered on, and an operator
    /// boots the ramdisk.
    pub require_managed_boot: bool,
    /// Further kernel parameters of the ramdisk, such as `ipa-inspection-collectors=default,lldp`.
    pub extra_kernel_params: KernelParameters,
    /// The hardware type of machines that belong to no node and post an inventory, which are enrolled then; with
    /// nothing, none are (`[auto_discovery]enabled` and `driver`).
    pub discovery_driver: Option<String>,
}

impl Default for InspectionSettings {
    fn default() -> Self {
        Self {
            hooks: hooks::default(),
            add_ports: AddPorts::Pxe,
            keep_ports: KeepPorts::All,
            power_off: true,
            require_managed_boot: true,
            extra_kernel_params: KernelParameters::default(),
            discovery_driver: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_ironics_names() {
        assert_eq!("active".parse(), Ok(AddPorts::Active));
        assert_eq!("present".parse(), Ok(KeepPorts::Present));
        let error = "some".parse::<KeepPorts>().unwrap_err().to_string();
        assert_eq!(error, "\"some\" is not known; use one of: all, present, added");
    }
}
