//! What the machine is made of (sections 9.3 and 9.6), and what inspection adds to it
//! (section 10.4).
//!
//! Every part is read for itself: one that cannot be read leaves its place empty and the others
//! alone (F42).

pub mod bmc;
pub mod cpu;
pub mod dmi;
pub mod extra;
#[cfg(test)]
pub mod fake_program;
#[cfg(test)]
pub mod fake_root;
pub mod lldp;
pub mod memory;
pub mod nics;
pub mod numa;
pub mod pci;
pub mod system;
pub mod usb;

use crate::smbios;
use bmc::BmcAddresses;
use farrier_protocol::inventory::{BootInfo, Disk, Inventory, NetworkInterface};
use lldp::Tlv;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What the caller of [`collect`] knows about this boot.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Kernel parameter `BOOTIF`.
    pub boot_interface: Option<&'a str>,
    /// Whether the BMC is not to be asked.
    pub skip_bmc: bool,
    /// How long to listen for LLDP frames, if at all.
    pub lldp_patience: Option<Duration>,
}

/// Reads everything again; only the BMC is asked once per process.
pub fn collect(request: Request<'_>) -> Inventory {
    let root = Path::new("/");
    let none = BmcAddresses::default();
    let bmc = if request.skip_bmc { &none } else { bmc::addresses() };
    Inventory {
        interfaces: interfaces(request.lldp_patience),
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

fn interfaces(lldp_patience: Option<Duration>) -> Vec<NetworkInterface> {
    let mut interfaces = nics::network_interfaces().unwrap_or_else(|error| {
        tracing::warn!(%error, "the network interfaces are missing from the inventory");
        Vec::new()
    });
    if let Some(patience) = lldp_patience {
        let names: Vec<_> = interfaces.iter().map(|nic| nic.name.clone()).collect();
        assign(&mut interfaces, lldp::listen(&names, patience));
    }
    interfaces
}

/// An interface without a listener keeps its null.
fn assign(interfaces: &mut [NetworkInterface], mut heard: BTreeMap<String, Vec<Tlv>>) {
    for nic in interfaces {
        let tlvs = heard.remove(&nic.name);
        nic.lldp = tlvs.map(|tlvs| tlvs.into_iter().map(|Tlv(kind, value)| (kind, value)).collect());
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
        let boot_interface = Some("01-52-54-00-12-34-56");
        let request = Request { boot_interface, skip_bmc: true, ..Request::default() };
        let found = collect(request);
        assert!(found.cpu.count > 0 && found.memory.total > 0, "{found:?}");
        assert_eq!(found.boot.pxe_interface.as_deref(), Some("01-52-54-00-12-34-56"));
        assert_eq!((found.bmc_address, found.bmc_mac), (None, None));
    }

    #[test]
    fn f42_frames_go_to_their_interfaces_and_the_others_stay_null() {
        let nic = |name: &str| NetworkInterface { name: name.into(), ..NetworkInterface::default() };
        let mut interfaces = [nic("eno1"), nic("eno2"), nic("eno3")];
        let frame = vec![Tlv(3, "0078".into()), Tlv(0, String::new())];
        assign(&mut interfaces, [("eno1".to_owned(), frame), ("eno2".to_owned(), vec![])].into());
        assert_eq!(interfaces[0].lldp, Some(vec![(3, "0078".to_owned()), (0, String::new())]));
        assert_eq!((&interfaces[1].lldp, &interfaces[2].lldp), (&Some(vec![]), &None));
    }
}
