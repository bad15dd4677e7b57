//! Networks of clients.

use std::net::{IpAddr, Ipv6Addr};

/// Whom an address belongs to: a host has one IPv4 address, and a whole /64 of IPv6 addresses.
pub(crate) fn of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}
