//! Links, addresses and routes through rtnetlink.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::sys::socket::SockaddrStorage;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// A connection to the kernel's routing tables.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
}

/// A network interface as the kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// Hardware address, the permanent one where the driver tells it (F43).
    pub hardware_address: Vec<u8>,
}

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

impl Netlink {
    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Every interface of the machine.
    ///
    /// # Errors
    ///
    /// The kernel's refusal, or a reply that cannot be read.
    pub fn links(&self) -> io::Result<Vec<Link>> {
        self.send(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
        let mut links = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let message = parse(rest)?;
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(links),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                        links.push(describe(&link));
                    }
                    _ => {}
                }
                // Messages are padded to four bytes.
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
            }
        }
    }

    /// Sets a link up.
    ///
    /// # Errors
    ///
    /// `ENODEV` when there is no such interface, `EPERM` without the right to change it.
    pub fn set_up(&self, interface: &str) -> io::Result<()> {
        self.set_flags(interface, LinkFlags::Up)
    }

    /// Sets a link down.
    ///
    /// # Errors
    ///
    /// As [`Netlink::set_up`].
    pub fn set_down(&self, interface: &str) -> io::Result<()> {
        self.set_flags(interface, LinkFlags::empty())
    }

    /// Makes an interface for a VLAN on another one.
    ///
    /// # Errors
    ///
    /// `EEXIST` when there is an interface of that name, `EOPNOTSUPP` when the kernel knows no VLANs.
    pub fn add_vlan(&self, parent: &str, name: &str, number: u16) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Link(index(parent)?),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Vlan),
                LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(number)])),
            ]),
        ];
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    fn set_flags(&self, interface: &str, flags: LinkFlags) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index(interface)?;
        message.header.flags = flags;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives an interface an address with its broadcast address, replacing the same one.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub fn add_address(&self, interface: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        self.request(
            RouteNetlinkMessage::NewAddress(address_message(interface, address, prefix)?),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Takes an address away.
    ///
    /// # Errors
    ///
    /// `EADDRNOTAVAIL` when the interface does not have it.
    pub fn remove_address(&self, interface: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelAddress(address_message(interface, address, prefix)?), 0)
    }

    /// Adds the default route through a gateway; the lower the metric, the sooner it is taken.
    ///
    /// # Errors
    ///
    /// `ENETUNREACH` when the gateway is not on the interface's network.
    pub fn add_default_route(&self, interface: &str, gateway: Ipv4Addr, metric: u32) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Dhcp;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Gateway(RouteAddress::Inet(gateway)),
            RouteAttribute::Oif(index(interface)?),
            RouteAttribute::Priority(metric),
        ];
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        let (reply, _) = self.socket.recv_from_full()?;
        match parse(&reply)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }

    fn send(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> io::Result<NetlinkMessage<RouteNetlinkMessage>> {
    NetlinkMessage::deserialize(bytes).map_err(io::Error::other)
}

fn describe(link: &LinkMessage) -> Link {
    let mut name = String::new();
    let (mut current, mut permanent) = (Vec::new(), Vec::new());
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name.clone_from(text),
            LinkAttribute::Address(bytes) => current.clone_from(bytes),
            LinkAttribute::PermAddress(bytes) => permanent.clone_from(bytes),
            _ => {}
        }
    }
    let is_known = permanent.iter().any(|byte| *byte != 0);
    Link { name, hardware_address: if is_known { permanent } else { current } }
}

/// Addresses of every interface, loopback and link-local ones left out.
///
/// # Errors
///
/// The kernel's refusal.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let found = nix::ifaddrs::getifaddrs()?
        .filter_map(|entry| {
            let storage = entry.address?;
            let prefix = entry.netmask.as_ref().and_then(ip).map_or(0, leading_ones);
            Some(InterfaceAddress { interface: entry.interface_name, address: ip(&storage)?, prefix })
        })
        .filter(|found| !found.address.is_loopback() && !is_link_local(found.address))
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

fn index(interface: &str) -> io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(interface)?)
}

fn address_message(interface: &str, address: Ipv4Addr, prefix: u8) -> io::Result<AddressMessage> {
    let host_bits = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
    let broadcast = Ipv4Addr::from(u32::from(address) | host_bits);
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index(interface)?;
    message.attributes = vec![
        AddressAttribute::Local(address.into()),
        AddressAttribute::Address(address.into()),
        AddressAttribute::Broadcast(broadcast),
    ];
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interface_is_an_error() {
        let netlink = Netlink::open().unwrap();
        for outcome in [netlink.set_up("nosuch0"), netlink.set_down("nosuch0")] {
            assert_eq!(outcome.unwrap_err().raw_os_error(), Some(nix::libc::ENODEV));
        }
    }

    #[test]
    fn every_machine_has_a_loopback_link() {
        let links = Netlink::open().unwrap().links().unwrap();
        assert!(links.iter().any(|link| link.name == "lo" && link.hardware_address == [0; 6]), "{links:?}");
    }

    #[test]
    fn f32_link_local_addresses_are_told_apart() {
        for (address, expected) in
            [("169.254.1.1", true), ("fe80::1", true), ("192.0.2.1", false), ("2001:db8::1", false)]
        {
            assert_eq!(is_link_local(address.parse().unwrap()), expected, "{address}");
        }
    }
}
