//! The size of the packets of an interface: what the plan says goes before what a DHCP lease says.

use farrier_linux::netlink::Netlink;
use std::fs;
use std::io;
use std::path::Path;

/// A file for each interface of which the plan says it, below the root directory.
const DIRECTORY: &str = "run/farrier/packet-sizes";
/// What every host has to take (RFC 791). A lease that says less would cut the machine off.
const LEAST: u32 = 576;

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

/// Sets what a lease says, unless the plan has said something.
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
    netlink.set_mtu(interface, bytes)
}

/// Forgets what a plan said of an interface that is not followed any more.
pub fn forget(root: &Path, interface: &str) {
    // It may have said nothing.
    fs::remove_file(root.join(DIRECTORY).join(interface)).ok();
}
