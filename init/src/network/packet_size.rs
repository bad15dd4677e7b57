//! The size of the packets of an interface: what the plan says goes before what a DHCP lease says.

use farrier_linux::netlink::Netlink;
use std::fs;
use std::io;
use std::path::Path;

/// A file for each interface of which the plan says it, below the root directory.
const DIRECTORY: &str = "run/farrier/packet-sizes";
/// What every host has to take (RFC 791). A lease that says less would cut the machine off.
const LEAST: u32 = 576;
/// What every link has to carry of IPv6 (RFC 8200, 5). The kernel takes the addresses of IPv6 from a link that
/// carries less.
const LEAST_IPV6: u32 = 1280;

/// Sets what the plan says, in bytes, and remembers that it did.
///
/// # Errors
///
/// The kernel's refusal, or the file cannot be written.
pub fn by_plan(netlink: &Netlink, root: &Path, interface: &str, bytes: u32) -> io::Result<()> {
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(interface), [])?;
    netlink.set_mtu(interface, bytes)
}

/// Sets what a lease says, unless the plan has said something. IPv6 is not lost by it.
///
/// # Errors
///
/// The kernel's refusal, or `EINVAL` when it is too little to work with.
pub fn by_lease(netlink: &Netlink, root: &Path, interface: &str, bytes: u32) -> io::Result<()> {
    if root.join(DIRECTORY).join(interface).exists() {
        return Ok(());
    }
    if bytes < LEAST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let has_ipv6 = Path::new("/proc/sys/net/ipv6/conf").join(interface).exists();
    netlink.set_mtu(interface, if has_ipv6 { bytes.max(LEAST_IPV6) } else { bytes })
}

/// Forgets what a plan said of an interface that is not followed any more.
pub fn forget(root: &Path, interface: &str) {
    // It may have said nothing.
    fs::remove_file(root.join(DIRECTORY).join(interface)).ok();
}
