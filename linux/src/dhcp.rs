//! Questions to DHCP servers (RFC 2131, RFC 4390), beside the client that configures Ethernet links.

mod settings;

use crate::netlink::Route;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket,
    sockopt::{BindToDevice, Broadcast, ReuseAddr},
};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const CLIENT_PORT: u16 = 68;
const SERVER_PORT: u16 = 67;
/// How long to wait before the question is asked again.
const REPEAT: Duration = Duration::from_secs(2);
/// Bytes before the options, the magic number included.
const HEADER: usize = 240;
/// Least bytes of a packet; some servers drop shorter ones.
const LEAST: usize = 300;
const MAX_PACKET: usize = 1500;
const MAGIC: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
const FROM_CLIENT: u8 = 1;
const FROM_SERVER: u8 = 2;
const ETHERNET: u8 = 1;
const INFINIBAND: u8 = 32;
/// Asks the server to answer by broadcast: an interface without an address hears nothing else.
const ANSWER_BY_BROADCAST: u16 = 0x8000;

mod option {
    pub const MASK: u8 = 1;
    pub const ROUTERS: u8 = 3;
    pub const NAME_SERVERS: u8 = 6;
    pub const HOST_NAME: u8 = 12;
    pub const DOMAIN: u8 = 15;
    pub const MTU: u8 = 26;
    pub const WANTED_ADDRESS: u8 = 50;
    pub const SECONDS: u8 = 51;
    pub const MESSAGE: u8 = 53;
    pub const SERVER: u8 = 54;
    pub const WANTED_OPTIONS: u8 = 55;
    pub const CLIENT: u8 = 61;
    pub const SEARCH: u8 = 119;
    pub const CLASSLESS_ROUTES: u8 = 121;
    /// The same, as older servers of Microsoft know it.
    pub const MICROSOFT_ROUTES: u8 = 249;
    pub const PAD: u8 = 0;
    pub const END: u8 = 255;
}

mod message {
    pub const DISCOVER: u8 = 1;
    pub const OFFER: u8 = 2;
    pub const REQUEST: u8 = 3;
    pub const ACKNOWLEDGE: u8 = 5;
    pub const REFUSE: u8 = 6;
}

/// What servers are asked to tell. RFC 3442 wants classless routes before routers.
const WANTED: &[u8] = &[
    option::MASK,
    option::CLASSLESS_ROUTES,
    option::MICROSOFT_ROUTES,
    option::ROUTERS,
    option::NAME_SERVERS,
    option::HOST_NAME,
    option::DOMAIN,
    option::MTU,
    option::SEARCH,
];

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// An interface with this hardware address.
    Ethernet([u8; 6]),
    /// An interface whose hardware address has no room in a packet; this identifier stands for it.
    Infiniband(Vec<u8>),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// What would be given? Nothing is taken.
    Discover,
    /// To have what a server offered.
    Take(Lease),
    /// To hold an address longer.
    Keep(Ipv4Addr),
}

/// A question on one interface.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// Name of the interface.
    pub interface: &'a str,
    /// Who asks there.
    pub client: Client,
    /// A number that no other question has.
    pub transaction: u32,
    /// What is asked.
    pub request: Request,
    /// Host name to tell the server.
    pub host_name: Option<&'a str>,
}

/// What a server gives, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The server.
    pub server: Ipv4Addr,
    /// The address.
    pub address: Ipv4Addr,
    /// Which part of it names the network.
    pub mask: Option<Ipv4Addr>,
    /// Routers, the preferred one first.
    pub routers: Vec<Ipv4Addr>,
    /// Ways to other networks; without classless ones (RFC 3442) that through the preferred router.
    pub routes: Vec<Route>,
    /// Size of packets in bytes.
    pub mtu: Option<u32>,
    /// Who answers questions for names.
    pub name_servers: Vec<Ipv4Addr>,
    /// Domains in which names are looked for.
    pub domains: Vec<String>,
    /// Name for this machine.
    pub host_name: Option<String>,
    /// How long it may be held.
    pub seconds: Option<u32>,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It gives this.
    Given(Lease),
    /// It does not let this machine have the address.
    Refused {
        /// The server.
        server: Ipv4Addr,
    },
}

/// Asks, again and again until a server answers; nothing when none does in time.
///
/// # Errors
///
/// `EPERM` without the right to the client's port, `ENODEV` when there is no such interface,
/// `ENETDOWN` when it is down.
pub fn ask(question: &Question<'_>, patience: Duration) -> io::Result<Option<Answer>> {
    let socket = open(question.interface)?;
    let packet = question.packet();
    let deadline = Instant::now() + patience;
    let mut answer = [0; MAX_PACKET];
    while Instant::now() < deadline {
        socket.send_to(&packet, (Ipv4Addr::BROADCAST, SERVER_PORT))?;
        let repeat = (Instant::now() + REPEAT).min(deadline);
        loop {
            let left = repeat.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv(&mut answer) {
                Ok(length) => {
                    if let Some(found) = question.read(&answer[..length]) {
                        return Ok(Some(found));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

/// A socket that hears and speaks on one interface, with or without an address.
fn open(interface: &str) -> io::Result<UdpSocket> {
    let descriptor = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&descriptor, ReuseAddr, &true)?;
    setsockopt(&descriptor, Broadcast, &true)?;
    setsockopt(&descriptor, BindToDevice, &interface.into())?;
    bind(descriptor.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, CLIENT_PORT))?;
    Ok(UdpSocket::from(descriptor))
}

impl Question<'_> {
    fn packet(&self) -> Vec<u8> {
        let held = if let Request::Keep(address) = self.request { Some(address) } else { None };
        let mut packet = vec![0; HEADER];
        packet[0] = FROM_CLIENT;
        packet[4..8].copy_from_slice(&self.transaction.to_be_bytes());
        packet[12..16].copy_from_slice(&held.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        packet[236..240].copy_from_slice(&MAGIC);
        let by_broadcast = match &self.client {
            Client::Ethernet(address) => {
                packet[1..3].copy_from_slice(&[ETHERNET, 6]);
                packet[28..34].copy_from_slice(address);
                held.is_none()
            }
            Client::Infiniband(_) => {
                packet[1] = INFINIBAND;
                true
            }
        };
        if by_broadcast {
            packet[10..12].copy_from_slice(&ANSWER_BY_BROADCAST.to_be_bytes());
        }
        self.add_options(&mut packet);
        packet.push(option::END);
        packet.resize(packet.len().max(LEAST), option::PAD);
        packet
    }

    fn add_options(&self, packet: &mut Vec<u8>) {
        let mut add = |code: u8, value: &[u8]| {
            packet.extend([code, value.len() as u8]);
            packet.extend(value);
        };
        let is_discover = self.request == Request::Discover;
        add(option::MESSAGE, &[if is_discover { message::DISCOVER } else { message::REQUEST }]);
        match &self.client {
            // As the client that configures links names itself, so that the server knows the lease.
            Client::Ethernet(address) => add(option::CLIENT, &[&[ETHERNET][..], address].concat()),
            Client::Infiniband(identifier) => add(option::CLIENT, &identifier[..identifier.len().min(255)]),
        }
        if let Request::Take(lease) = &self.request {
            add(option::WANTED_ADDRESS, &lease.address.octets());
            add(option::SERVER, &lease.server.octets());
        }
        add(option::WANTED_OPTIONS, WANTED);
        if let Some(name) = self.host_name.filter(|name| !name.is_empty()) {
            add(option::HOST_NAME, &name.as_bytes()[..name.len().min(63)]);
        }
    }

    /// The answer in a packet; nothing when it answers another question, or none.
    pub fn read(&self, packet: &[u8]) -> Option<Answer> {
        let (header, options) = packet.split_at_checked(HEADER)?;
        let is_for_client = match &self.client {
            Client::Ethernet(address) => header[28..34] == *address,
            Client::Infiniband(_) => true,
        };
        let is_ours = is_for_client
            && header[0] == FROM_SERVER
            && header[4..8] == self.transaction.to_be_bytes()
            && header[236..240] == MAGIC;
        if !is_ours {
            return None;
        }
        let server = *addresses(value(options, option::SERVER)?).first()?;
        let is_discover = self.request == Request::Discover;
        match (value(options, option::MESSAGE)?, is_discover) {
            ([message::OFFER], true) | ([message::ACKNOWLEDGE], false) => {
                Some(Answer::Given(Lease::read(server, *addresses(&header[16..20]).first()?, options)))
            }
            ([message::REFUSE], false) => Some(Answer::Refused { server }),
            _ => None,
        }
    }
}

impl Lease {
    /// A lease of an address, with what stands in the options.
    fn read(server: Ipv4Addr, address: Ipv4Addr, options: &[u8]) -> Self {
        let list = |code| addresses(value(options, code).unwrap_or_default());
        let text = |code| value(options, code).and_then(|text| String::from_utf8(text.to_vec()).ok());
        let classless = |code| settings::classless_routes(&joined(options, code));
        let routers = list(option::ROUTERS);
        let by_router = || routers.first().map(|router| Route::default_through((*router).into()));
        let mut domains = settings::search_domains(&joined(options, option::SEARCH));
        if domains.is_empty() {
            domains.extend(text(option::DOMAIN));
        }
        Self {
            server,
            address,
            mask: list(option::MASK).first().copied(),
            routes: classless(option::CLASSLESS_ROUTES)
                .or_else(|| classless(option::MICROSOFT_ROUTES))
                .unwrap_or_else(|| by_router().into_iter().collect()),
            mtu: value(options, option::MTU)
                .and_then(|value| Some(u16::from_be_bytes(value.try_into().ok()?).into())),
            name_servers: list(option::NAME_SERVERS),
            domains,
            host_name: text(option::HOST_NAME),
            seconds: value(options, option::SECONDS)
                .and_then(|value| Some(u32::from_be_bytes(value.try_into().ok()?))),
            routers,
        }
    }
}

/// Addresses one after the other.
fn addresses(bytes: &[u8]) -> Vec<Ipv4Addr> {
    bytes.as_chunks::<4>().0.iter().copied().map(Ipv4Addr::from).collect()
}

/// The value of an option.
fn value(options: &[u8], wanted: u8) -> Option<&[u8]> {
    values(options).find(|(code, _)| *code == wanted).map(|(_, value)| value)
}

/// The value of an option that may be too long for one (RFC 3396).
fn joined(options: &[u8], wanted: u8) -> Vec<u8> {
    values(options).filter(|(code, _)| *code == wanted).flat_map(|(_, value)| value).copied().collect()
}

/// Codes and values, up to the end or to an option that is cut short.
fn values(mut options: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        while let [option::PAD, rest @ ..] = options {
            options = rest;
        }
        match options {
            [option::END, ..] | [] | [_] => None,
            [code, length, rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(*length))?;
                options = rest;
                Some((*code, value))
            }
        }
    })
}

#[cfg(test)]
mod tests;
