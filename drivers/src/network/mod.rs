//! Network interfaces over Neutron (section 9.8). That of nodes whose cables are as they should be is
//! [`Noop`](farrier_conductor::interfaces::Noop), which every conductor has.
//!
//! - [`flat`](NeutronNetwork::flat): all machines are on one network. Virtual interfaces are bound to the node, and only
//!   cleaning and inspection have ports of their own.
//! - [`neutron`](NeutronNetwork::separate): each operation has a network, to which switches connect the machine by what
//!   Neutron knows its links.
//!
//! Ports of operations are created and deleted in `operation`, virtual interfaces of instances are attached and bound in
//! `vifs`, to the card or group of cards (`slot`) that `choice` chooses. The binding of cards is in `binding`;
//! those that have an agent of Neutron themselves are waited for in `smart_nic`.

mod binding;
mod choice;
mod error;
mod interface;
mod operation;
mod settings;
mod slot;
mod smart_nic;
mod vifs;

pub use error::NetworkError;
pub use interface::NeutronNetwork;
pub use settings::{NetworkSettings, OperationNetwork};

use crate::openstack::Neutron;
use farrier_conductor::Drivers;
use farrier_conductor::model::InterfaceKind;
use std::sync::Arc;

/// The names of the network interfaces, the best one first.
pub const NAMES: [&str; 2] = ["flat", "neutron"];

/// Adds the network interfaces `flat` and `neutron`, which nodes of every hardware type may have.
pub fn with_neutron(drivers: Drivers, neutron: &Neutron, settings: NetworkSettings) -> Drivers {
    let settings = Arc::new(settings);
    drivers
        .network("flat", NeutronNetwork::flat(neutron.clone(), Arc::clone(&settings)))
        .network("neutron", NeutronNetwork::separate(neutron.clone(), settings))
        .supported_by_all(InterfaceKind::Network, NAMES)
}
