//! What the machine is made of (sections 9.3 and 9.6), and what inspection adds to it
//! (section 10.4).
//!
//! Every part is read for itself: one that cannot be read leaves its place empty and the others
//! alone (F42).

pub mod bmc;
pub mod cpu;
pub mod dmi;
#[cfg(test)]
mod fake_root;
pub mod lldp;
pub mod memory;
pub mod nics;
pub mod numa;
pub mod pci;
pub mod system;
pub mod usb;

use crate::smbios;
use bmc::BmcAddresses;
use farrier_protocol::inventory::{BootInfo, Disk, Inventory};
use std::path::Path;

/// What the caller of [`collect`] knows about this boot.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Kernel parameter `BOOTIF`.
    pub boot_interface: Option<&'a str>,
    /// Whether the BMC is not to be asked.
    pub skip_bmc: bool,
}

/// Looks at everything anew; only the BMC is asked once per process.
pub fn collect(request: Request<'_>) -> Inventory {
    let root = Path::new("/");
    let none = BmcAddresses::default();
    let bmc = if request.skip_bmc { &none } else { bmc::addresses() };
    Inventory {
        interfaces: nics::network_interfaces().unwrap_or_else(|error| {
            tracing::warn!(%error, "the network interfaces are missing from the inventory");
            Vec::new()
        }),
        cpu: cpu::cpu(root),
        disks: disks(root),
        memory: memory::memory(root, &smbios::read(root)),
        bmc_address: bmc.ipv4.clone(),
        bmc_v6address: bmc.ipv6.clone(),
        system_vendor: system::vendor(root),
        boot: BootInfo {
            current_boot_mode: system::boot_mode(root).to_owned(),
            pxe_interface: request.boot_interface.map(str::to_owned),
        },
        hostname: system::host_name(root),
        bmc_mac: bmc.mac.clone(),
    }
}

fn disks(root: &Path) -> Vec<Disk> {
    match farrier_disk::list::list(&root.join("sys")) {
        Ok(devices) => devices.into_iter().map(|device| device.disk).collect(),
        Err(error) => {
            tracing::warn!(%error, "the disks are missing from the inventory");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_an_inventory() {
        let request = Request { boot_interface: Some("01-52-54-00-12-34-56"), skip_bmc: true };
        let found = collect(request);
        assert!(found.cpu.count > 0 && found.memory.total > 0, "{found:?}");
        assert_eq!(found.boot.pxe_interface.as_deref(), Some("01-52-54-00-12-34-56"));
        assert_eq!((found.bmc_address, found.bmc_mac), (None, None));
    }
}
