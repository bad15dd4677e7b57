//! Clients and their networks, and what each may have of what all of them share.
//!
//! - [`shares`]: who has the most of something.
//! - [`fair_semaphore`]: permits, which go to the client with the fewest.

pub(crate) mod fair_semaphore;
pub(crate) mod shares;

use std::net::{IpAddr, Ipv6Addr};

/// Who asks. A host has one IPv4 address, and any of a whole /64 of IPv6 addresses; but a provisioning network with
/// one /64 has many machines. So both are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Client {
    /// The address.
    pub(crate) address: IpAddr,
    /// The /64 network of an IPv6 address; the address itself of IPv4.
    pub(crate) network: IpAddr,
}

impl Client {
    /// The client with this address.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), network: of(address) }
    }
}

/// The network of an address: a host has one IPv4 address, and a whole /64 of IPv6 addresses.
pub(crate) fn of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}
