//! Boot interfaces of machines whose firmware requests the boot file from the conductor (section 6).
//!
//! The conductor writes no boot files. Each file of a machine is a pure function of its node record and of the file name,
//! for the boot configuration API, HTTP and TFTP. So every conductor answers for every node, and a killed conductor leaves
//! no file that a machine could boot by mistake.
//!
//! - [`names`]: the file names that firmware and loaders request.
//! - [`target`]: the boot target of a machine, and [`images`]: its files, as the record names them.
//! - [`render`](scripts::render): the configurations of boot loaders; [`templates`](scripts::templates): their templates,
//!   which an operator can replace.
//! - [`interface`]: the boot interfaces, and the function; [`method`]: their differences.
//! - [`root_script`](scripts::root_script): the script that every machine loads first, and that finds its configuration.
//! - [`by_arch`]: settings that differ by architecture and [boot mode](farrier_conductor::model::Node::boot_mode).
//! - [`boot_file_names`]: the boot loader of each firmware; [`loaders`]: those of the distribution;
//!   [`dhcp_options`]: the DHCP options for it.
//! - [`tftp`]: the protocol by which most machines load them.
//! - [`tree`](boot_roots::tree): all files of a machine at once, for external servers;
//!   [`boot_root`](boot_roots::boot_root): a folder of such a server; [`boot_roots`]: the server of each boot interface.

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
