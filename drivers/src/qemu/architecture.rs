//! The architectures that machines may have, and in what QEMU's machines differ by them.

use super::disks::Bus;
use crate::cpu_arch;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use std::env::consts::ARCH;

/// The architecture of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    /// That of PCs: QEMU's `q35`, with BIOS or UEFI.
    X86_64,
    /// That of Arm with 64 bits: QEMU's `virt`, with UEFI alone.
    Aarch64,
}

impl Architecture {
    const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// That of a node's machine.
    ///
    /// # Errors
    ///
    /// One that there are no machines of here.
    pub(super) fn of(node: &Node) -> Result<Self, InterfaceError> {
        let name = cpu_arch::of(node);
        let known = Self::ALL.into_iter().find(|known| known.as_str() == name);
        known.ok_or_else(|| {
            let reason = format!("is {name:?}, and the driver qemu has machines of x86_64 and aarch64");
            InterfaceError::invalid("properties cpu_arch", reason)
        })
    }

    /// Its name, as Ironic spells it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The program whose machines have it.
    pub(super) fn binary(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// Whether the processor of this host has it too, so that KVM is of use.
    pub(super) fn is_of_host(self) -> bool {
        self.as_str() == ARCH
    }

    /// QEMU's machine, with flash for the code and the variables of UEFI or without.
    pub(super) fn machine(self, has_flash: bool) -> &'static str {
        match (self, has_flash) {
            (Self::X86_64, true) => "q35,smm=off,pflash0=code,pflash1=vars",
            (Self::X86_64, false) => "q35",
            // The interrupt controller is the host's under KVM, and one for any number of processors else.
            (Self::Aarch64, true) => "virt,gic-version=max,pflash0=code,pflash1=vars",
            (Self::Aarch64, false) => "virt,gic-version=max",
        }
    }

    /// The processor that QEMU emulates.
    pub(super) fn emulated_cpu(self) -> &'static str {
        match self {
            Self::X86_64 => "max",
            // One that authenticates pointers, as the largest does, takes several times as long.
            Self::Aarch64 => "cortex-a57",
        }
    }

    /// The first serial port, as Linux calls it.
    pub(super) fn serial_port(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 => "ttyAMA0",
        }
    }

    /// The bus of optical drives.
    pub(super) fn optical_bus(self) -> Bus {
        match self {
            Self::X86_64 => Bus::Sata,
            Self::Aarch64 => Bus::Scsi,
        }
    }

    /// Options of a network card for network boot. Firmware for aarch64 has a driver for it, and the
    /// card's own programs are for PCs.
    pub(super) fn network_start(self) -> &'static str {
        match self {
            Self::X86_64 => "bootindex=0",
            Self::Aarch64 => "bootindex=0,romfile=",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::node;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_has_its_architecture_as_ironic_spells_it() {
        let of = |name: serde_json::Value| {
            let mut node = node(&json!({}));
            node.properties.insert("cpu_arch".into(), name);
            Architecture::of(&node).map_err(|error| error.to_string())
        };
        assert_eq!(of(json!(null)), Ok(Architecture::X86_64));
        for architecture in Architecture::ALL {
            assert_eq!(of(json!(architecture.as_str())), Ok(architecture));
        }
        let refused = of(json!("arm64")).unwrap_err();
        assert!(refused.contains("cpu_arch") && refused.contains("x86_64 and aarch64"), "{refused}");
    }
}
