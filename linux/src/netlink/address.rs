//! Addresses of interfaces.

use super::{Netlink, index};
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, CacheInfo};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sys::socket::SockaddrStorage;
use std::io;
use std::net::IpAddr;

/// An address of a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Name of the interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Length of its network prefix in bits.
    pub prefix: u8,
}

/// How long an address may be used, in seconds from now; `u32::MAX` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// For new connections.
    pub preferred: u32,
    /// At all.
    pub valid: u32,
}

impl Lifetime {
    /// No end.
    pub const ENDLESS: Self = Self { preferred: u32::MAX, valid: u32::MAX };
}

impl Netlink {
    /// Gives an interface an address, with the broadcast address of IPv4, replacing the same one.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub fn add_address(&self, interface: &str, address: IpNet, lifetime: Lifetime) -> io::Result<()> {
        let mut message = address_message(interface, address)?;
        if lifetime != Lifetime::ENDLESS {
            let mut info = CacheInfo::default();
            info.ifa_preferred = lifetime.preferred;
            info.ifa_valid = lifetime.valid;
            message.attributes.push(AddressAttribute::CacheInfo(info));
        }
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Takes an address away.
    ///
    /// # Errors
    ///
    /// `EADDRNOTAVAIL` when the interface does not have it.
    pub fn remove_address(&self, interface: &str, address: IpNet) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelAddress(address_message(interface, address)?), 0)
    }

    /// IPv6 addresses that cannot be used, since another machine of the link has them (RFC 4862, 5.4).
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub fn refused_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let found = self.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
        let refused = found.iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewAddress(message) => refused(message),
            _ => None,
        });
        Ok(refused.collect())
    }
}

fn refused(message: &AddressMessage) -> Option<IpAddr> {
    let mut address = None;
    let mut is_refused = false;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Address(found) => address = Some(*found),
            AddressAttribute::Flags(flags) => is_refused = flags.contains(AddressFlags::Dadfailed),
            _ => {}
        }
    }
    address.filter(|_| is_refused)
}

/// Addresses of every interface, loopback and link-local ones left out.
///
/// # Errors
///
/// The kernel's refusal.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    Ok(all_addresses()?.into_iter().filter(|found| !is_link_local(found.address)).collect())
}

/// Addresses of every interface, loopback ones left out.
///
/// # Errors
///
/// The kernel's refusal.
pub fn all_addresses() -> io::Result<Vec<InterfaceAddress>> {
    let found = nix::ifaddrs::getifaddrs()?
        .filter_map(|entry| {
            let storage = entry.address?;
            let prefix = entry.netmask.as_ref().and_then(ip).map_or(0, leading_ones);
            Some(InterfaceAddress { interface: entry.interface_name, address: ip(&storage)?, prefix })
        })
        .filter(|found| !found.address.is_loopback())
        .collect();
    Ok(found)
}

fn ip(storage: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = storage.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
}

fn leading_ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones(),
        IpAddr::V6(mask) => u128::from(mask).leading_ones(),
    };
    ones as u8
}

/// Whether an address is good on its own link only (F32).
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn address_message(interface: &str, address: IpNet) -> io::Result<AddressMessage> {
    let mut message = AddressMessage::default();
    message.header.prefix_len = address.prefix_len();
    message.header.index = index(interface)?;
    message.attributes =
        vec![AddressAttribute::Local(address.addr()), AddressAttribute::Address(address.addr())];
    message.header.family = match address {
        IpNet::V4(network) => {
            message.attributes.push(AddressAttribute::Broadcast(network.broadcast()));
            AddressFamily::Inet
        }
        IpNet::V6(_) => AddressFamily::Inet6,
    };
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_link_local_addresses_are_told_apart() {
        for (address, expected) in
            [("169.254.1.1", true), ("fe80::1", true), ("192.0.2.1", false), ("2001:db8::1", false)]
        {
            assert_eq!(is_link_local(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn only_addresses_that_failed_their_test_are_refused() {
        for (flags, expected) in [
            (AddressFlags::Dadfailed | AddressFlags::Tentative, Some("2001:db8::5")),
            (AddressFlags::Tentative, None),
        ] {
            let mut message = AddressMessage::default();
            let address = AddressAttribute::Address("2001:db8::5".parse().unwrap());
            message.attributes = vec![address, AddressAttribute::Flags(flags)];
            assert_eq!(refused(&message), expected.map(|text| text.parse().unwrap()), "{flags:?}");
        }
    }
}
