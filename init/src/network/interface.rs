//! Single interfaces: what the kernel says of them, and what is done to one alone.

use crate::mac_address::MacAddress;
use farrier_linux::hardware_address::Shared;
use farrier_linux::netlink::{Netlink, addresses};
use farrier_linux::sysfs;
use ipnet::IpNet;
use std::io;
use std::path::Path;

/// Longest name of an interface in bytes.
const MAX_NAME: usize = 15;

/// Takes all addresses from a link and sets it down.
///
/// # Errors
///
/// The kernel's refusal.
pub fn clear(name: &str) -> io::Result<()> {
    let netlink = Netlink::open()?;
    for found in addresses()?.into_iter().filter(|found| found.interface == name) {
        let address = IpNet::new(found.address, found.prefix).map_err(io::Error::other)?;
        netlink.remove_address(name, address)?;
    }
    netlink.set_down(name)
}

/// Makes a link a port. A bond takes only ports that are down, and sets them up itself; a bridge does neither.
///
/// # Errors
///
/// The kernel's refusal.
pub fn attach(port: &str, controller: &str) -> io::Result<()> {
    let netlink = Netlink::open()?;
    netlink.set_down(port)?;
    netlink.attach(port, controller)?;
    netlink.set_up(port)
}

/// The permanent hardware address of a link.
pub fn mac_of(name: &str) -> Option<MacAddress> {
    let links = Netlink::open().and_then(|netlink| netlink.links()).unwrap_or_default();
    let link = links.into_iter().find(|link| link.name == name)?;
    link.hardware_address.try_into().ok().map(MacAddress)
}

/// Why the address of a link is that of many machines; nothing when it is not. Such a link is used only where the plan
/// names it.
pub fn shared(name: &str) -> Option<Shared> {
    Shared::of(Path::new("/sys"), name, &mac_of(name)?.0)
}

/// Whether something is at the other end of a link.
pub fn has_carrier(interface: &str) -> bool {
    attribute(interface, "carrier").as_deref() == Some("1")
}

fn attribute(interface: &str, name: &str) -> Option<String> {
    sysfs::attribute(&Path::new("/sys/class/net").join(interface), name)
}

/// Whether a link is a VLAN of another one.
pub fn is_vlan(interface: &str) -> bool {
    let kind = attribute(interface, "uevent").unwrap_or_default();
    kind.lines().any(|line| line == "DEVTYPE=vlan")
}

/// Makes a VLAN of a link, or finds that an earlier process made it, and returns its name.
///
/// # Errors
///
/// The kernel's refusal.
pub fn add_vlan(parent: &str, number: u16) -> io::Result<String> {
    let netlink = Netlink::open()?;
    let name = vlan_name(parent, number, nix::net::if_::if_nametoindex(parent)?);
    match netlink.add_vlan(parent, &name, number) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(name),
    }
}

/// Makes a VLAN of a link as [`add_vlan`], and sets both up.
///
/// # Errors
///
/// The kernel's refusal.
pub fn set_up_vlan(parent: &str, number: u16) -> io::Result<String> {
    let netlink = Netlink::open()?;
    netlink.set_up(parent)?;
    let name = add_vlan(parent, number)?;
    netlink.set_up(&name)?;
    Ok(name)
}

/// The name that everybody gives to VLANs, as far as it fits; else one with the number of the parent. Its end tells
/// the inventory what it is.
fn vlan_name(parent: &str, number: u16, index: u32) -> String {
    let name = format!("{parent}.{number}");
    if name.len() <= MAX_NAME { name } else { format!("vlan{index}.{number}") }
}

/// The name that the plan gives if the kernel takes it, else one of the kind and the place in the plan.
pub fn usable_name(name: &str, kind: &str, position: usize) -> String {
    let is_usable = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte))
        && !["default", "all", ".", "..", "lo"].contains(&name);
    if is_usable { name.to_owned() } else { format!("{kind}{position}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_takes() {
        for (name, expected) in [
            ("bond0", "bond0"),
            ("tap89cf0764-7b", "tap89cf0764-7b"),
            ("25622616-b9ee-4a99", "bond3"),
            ("a b", "bond3"),
            ("a/b", "bond3"),
            ("", "bond3"),
            ("all", "bond3"),
        ] {
            assert_eq!(usable_name(name, "bond", 3), expected, "{name}");
        }
        assert_eq!(vlan_name("bond0", 100, 4), "bond0.100");
        assert_eq!(vlan_name("tap89cf0764-7b", 100, 4), "vlan4.100");
    }
}
