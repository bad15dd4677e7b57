//! Boot interfaces of machines whose firmware asks the conductor what to boot (section 6).
//!
//! Nothing has to be written to disk for a machine. What it boots is in the record of its node, and its files are a pure
//! function of that and of their names, for the boot configuration API, HTTP and TFTP. So any conductor
//! answers for any node, and a killed one leaves no file that a machine could boot by mistake.
//!
//! - [`names`]: how firmware and loaders ask.
//! - [`target`]: the boot target of a machine, and [`images`]: its files, as the record names them.
//! - [`render`]: the configurations of boot loaders; [`templates`]: their form, and how an operator replaces it.
//! - [`interface`]: the boot interfaces, and the function; [`method`]: how they differ.
//! - [`root_script`](scripts::root_script): what every machine is sent to first, which finds its own.
//! - [`by_arch`]: settings that differ by architecture and [boot mode](farrier_conductor::model::Node::boot_mode).
//! - [`boot_file_names`]: the boot loader of each firmware; [`loaders`]: those of the distribution;
//!   [`dhcp_options`]: the DHCP options for it.
//! - [`tftp`]: how most of them are loaded.
//! - [`tree`](boot_roots::tree): all files of a machine at once, for servers that are not ours; [`boot_root`](boot_roots::boot_root): a folder of such a server, and
//!   [`boot_roots`]: which server is for which boot interface.

pub mod boot_file_names;
pub mod boot_roots;
pub mod by_arch;
pub mod dhcp_options;
pub mod images;
pub mod interface;
pub mod loaders;
pub mod method;
pub mod names;
pub mod scripts;
pub mod target;
pub mod tftp;

#[cfg(test)]
mod fixtures;

use farrier_conductor::Drivers;
use interface::{Netboot, NetworkBoot};
use method::Method;
use std::sync::Arc;

/// The names of the boot interfaces, for hardware types.
pub const NAMES: [&str; 4] = ["ipxe", "pxe", "http", "http-ipxe"];

/// Adds the boot interfaces, for hardware types that name them.
pub fn with_netboot(drivers: Drivers, netboot: &Arc<Netboot>) -> Drivers {
    Method::ALL.into_iter().fold(drivers, |drivers, method| {
        drivers.boot(method.name(), NetworkBoot::new(method, Arc::clone(netboot)))
    })
}
