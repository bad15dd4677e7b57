//! What a link finds out of IPv6 beside what the kernel makes of routers' announcements: name servers,
//! and addresses by DHCP.
//!
//! One thread for each link asks until somebody answers, and keeps what it got. A link on which nobody
//! answers stays quiet: the agent says which links have no address.

mod dhcp;
mod router;

use super::name_servers::{self, Source};
use super::plan::Ipv6;
use crate::mac_address::MacAddress;
use dhcp::{Answer, Client, Kind};
use farrier_linux::icmpv6::solicit_routers;
use farrier_linux::netlink::Netlink;
use farrier_linux::packet::{PacketSocket, wait_for_frame};
use ipnet::{IpNet, Ipv6Net};
use rand::Rng;
use router::Announcement;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddrV6, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Every DHCP server and relay of a link, and the port of each.
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const SERVER_PORT: u16 = 547;
const CLIENT_PORT: u16 = 546;
/// Largest message that is read.
const MAX_MESSAGE: usize = 4096;
/// How long a question waits for its answer: doubled each time, up to the limit.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How often a server that offered something is asked for it.
const REQUESTS: usize = 10;
/// How long to wait before looking again for an own address on the link.
const LOOK: Duration = Duration::from_millis(200);
/// How often a thread that rests looks whether its work is over.
const OVER_LOOK: Duration = Duration::from_secs(1);
/// When to ask again where there is no lease.
const RENEWAL: Duration = Duration::from_secs(1800);
/// Pause between two questions for a lease: shorter ones would be nothing but questions, and a server may forget an
/// endless lease.
const LEAST_PAUSE: Duration = Duration::from_secs(10);
const MOST_PAUSE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A link that is listened to.
pub struct Listener {
    interface: String,
    mac: MacAddress,
    mode: Ipv6,
    /// Opened before the link is up, so that no announcement is missed.
    announcements: io::Result<PacketSocket>,
    /// Whether nothing found out is to be used any more.
    over: Arc<AtomicBool>,
}

impl Listener {
    /// Begins to listen; nothing is sent yet.
    pub fn open(interface: &str, mac: MacAddress, mode: Ipv6, over: Arc<AtomicBool>) -> Self {
        let announcements = PacketSocket::open(interface, router::PROTOCOL, &[router::ALL_MACHINES]);
        Self { interface: interface.to_owned(), mac, mode, announcements, over }
    }

    /// Continues in a thread of its own.
    pub fn start(self) {
        thread::spawn(move || {
            let interface = self.interface.clone();
            if let Err(error) = self.run() {
                tracing::error!(interface, "no DHCP over IPv6: {error}");
            }
        });
    }

    fn run(self) -> io::Result<()> {
        if self.mode == Ipv6::Fixed {
            return Ok(());
        }
        let announcement = match self.mode {
            Ipv6::ByRouter => self.wait_for_router()?,
            _ => Announcement { is_managed: true, has_more: false, name_servers: Vec::new() },
        };
        if self.over.load(Ordering::Relaxed) {
            return Ok(());
        }
        tracing::debug!(interface = self.interface, ?announcement, "configuration of IPv6");
        remember(&self.interface, &announcement.name_servers);
        let Self { interface, mac, announcements, over, .. } = self;
        // Everything that arrives would be queued there.
        drop(announcements);
        if !announcement.is_managed && !announcement.has_more {
            return Ok(());
        }
        let conversation = Conversation::begin(&interface, mac)?;
        if announcement.is_managed {
            conversation.keep_address(&interface, &over)
        } else {
            let answer = conversation.ask(Kind::InformationRequest, None, usize::MAX)?;
            if !over.load(Ordering::Relaxed) {
                remember(&interface, &answer.map(|answer| answer.name_servers).unwrap_or_default());
            }
            Ok(())
        }
    }

    /// Asks until a router announces itself.
    fn wait_for_router(&self) -> io::Result<Announcement> {
        let socket = self.announcements.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        let mut wait = FIRST_WAIT;
        loop {
            let deadline = Instant::now() + wait;
            while wait_for_frame(std::iter::once(socket), deadline) {
                // A link that is down, or goes down, is an error that passes.
                if let Some(announcement) =
                    socket.receive().ok().flatten().and_then(|frame| router::read(&frame))
                {
                    return Ok(announcement);
                }
            }
            // Not before the link has a carrier and an address.
            solicit_routers(&self.interface).ok();
            wait = (wait * 2).min(MAX_WAIT);
        }
    }
}

/// Questions and answers between a client and the servers of a link.
struct Conversation {
    client: Client,
    socket: UdpSocket,
    servers: SocketAddrV6,
    started: Instant,
}

impl Conversation {
    /// Waits until the link has an address of its own to ask from.
    fn begin(interface: &str, mac: MacAddress) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        let socket = loop {
            // An address that is not yet proven to be unique cannot be bound.
            let bound = link_local(interface)
                .map(|address| UdpSocket::bind(SocketAddrV6::new(address, CLIENT_PORT, 0, index)));
            match bound {
                Some(Ok(socket)) => break socket,
                Some(Err(error)) if error.kind() != io::ErrorKind::AddrNotAvailable => return Err(error),
                _ => thread::sleep(LOOK),
            }
        };
        Ok(Self::over(socket, SocketAddrV6::new(ALL_SERVERS, SERVER_PORT, 0, index), mac))
    }

    fn over(socket: UdpSocket, servers: SocketAddrV6, mac: MacAddress) -> Self {
        Self { client: Client::new(mac.0), socket, servers, started: Instant::now() }
    }

    /// Gets an address, and keeps it as long as servers agree and it is not over.
    fn keep_address(&self, interface: &str, over: &AtomicBool) -> io::Result<()> {
        let mut is_told = false;
        loop {
            let Some(mut lease) = self.lease(&mut is_told, interface)? else { continue };
            loop {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                apply(interface, &lease);
                rest(renewal(&lease), over);
                match self.ask(Kind::Renew, Some(&lease), REQUESTS)? {
                    Some(answer) if answer.address.is_some() => lease = answer,
                    // The kernel drops the address when its time has come.
                    _ => break,
                }
            }
        }
    }

    /// Asks all servers and takes what the first one offers.
    fn lease(&self, is_told: &mut bool, interface: &str) -> io::Result<Option<Answer>> {
        let offer = self.ask(Kind::Solicit, None, usize::MAX)?;
        let Some(offer) = offer.filter(|offer| {
            if offer.address.is_none() {
                remember(interface, &offer.name_servers);
            }
            offer.address.is_some()
        }) else {
            if !std::mem::replace(is_told, true) {
                tracing::warn!(interface, "the DHCP server has no IPv6 address for this machine; retrying");
            }
            thread::sleep(MAX_WAIT);
            return Ok(None);
        };
        let answer = self.ask(Kind::Request, Some(&offer), REQUESTS)?;
        Ok(answer.filter(|answer| answer.address.is_some()))
    }

    /// Asks until there is an answer, at most so many times.
    fn ask(&self, kind: Kind, about: Option<&Answer>, times: usize) -> io::Result<Option<Answer>> {
        let expected = if kind == Kind::Solicit { Kind::Advertise } else { Kind::Reply };
        let transaction: [u8; 3] = rand::rng().random();
        let mut wait = FIRST_WAIT;
        for _ in 0..times {
            let elapsed = u16::try_from(self.started.elapsed().as_millis() / 10).unwrap_or(u16::MAX);
            let message = self.client.message(kind, transaction, elapsed, about);
            // A link that is down for a while is asked again.
            self.socket.send_to(&message, self.servers).ok();
            if let Some(answer) = self.wait_for_answer(expected, transaction, wait)? {
                return Ok(Some(answer));
            }
            wait = (wait * 2).min(MAX_WAIT);
        }
        Ok(None)
    }

    fn wait_for_answer(
        &self,
        kind: Kind,
        transaction: [u8; 3],
        patience: Duration,
    ) -> io::Result<Option<Answer>> {
        let deadline = Instant::now() + patience;
        let mut buffer = [0; MAX_MESSAGE];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            let Ok(length) = self.socket.recv(&mut buffer) else { continue };
            if let Some(answer) = self.client.answer(&buffer[..length], kind, transaction) {
                return Ok(Some(answer));
            }
        }
    }
}

/// Uses a lease: what the kernel refuses of it is told, and the rest is used. The network behind the address is
/// the routers' to announce.
fn apply(interface: &str, lease: &Answer) {
    if let Some((address, lifetime)) = lease.address {
        let prefix = IpNet::V6(Ipv6Net::from(address));
        match Netlink::open().and_then(|netlink| netlink.add_address(interface, prefix, lifetime)) {
            Ok(()) => tracing::info!(interface, %address, "address by DHCP"),
            Err(error) => tracing::error!(interface, "DHCP: the address {address} cannot be used: {error}"),
        }
    }
    remember(interface, &lease.name_servers);
}

/// Rests so long, or until it is over.
fn rest(time: Duration, over: &AtomicBool) {
    let started = Instant::now();
    while !over.load(Ordering::Relaxed) && started.elapsed() < time {
        thread::sleep(OVER_LOOK.min(time));
    }
}

/// When to ask again for an address: when the server wishes, or else, where the address has ended by then or the
/// server has no wish, after half the time for which it is good.
fn renewal(lease: &Answer) -> Duration {
    let Some((_, lifetime)) = lease.address else { return RENEWAL };
    let good = if lifetime.preferred == 0 { lifetime.valid } else { lifetime.preferred };
    let seconds = match lease.renew_after {
        0 => good / 2,
        wished if wished >= lifetime.valid => good / 2,
        wished => wished,
    };
    Duration::from_secs(seconds.into()).clamp(LEAST_PAUSE, MOST_PAUSE)
}

/// Keeps the servers, if there are any.
fn remember(interface: &str, servers: &[Ipv6Addr]) {
    if servers.is_empty() {
        return;
    }
    let servers: Vec<IpAddr> = servers.iter().copied().map(IpAddr::from).collect();
    tracing::info!(interface, ?servers, "name servers over IPv6");
    if let Err(error) = name_servers::remember(Path::new("/"), Source::Ipv6(interface), &servers, &[]) {
        tracing::error!(interface, %error, "the name servers cannot be kept");
    }
}

fn link_local(interface: &str) -> Option<Ipv6Addr> {
    let own = nix::ifaddrs::getifaddrs().ok()?.filter(|found| found.interface_name == interface);
    let mut addresses = own.filter_map(|found| Some(found.address?.as_sockaddr_in6()?.ip()));
    addresses.find(Ipv6Addr::is_unicast_link_local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::netlink::Lifetime;

    /// Answers the messages of a client one by one.
    fn server(answers: Vec<Vec<u8>>) -> SocketAddrV6 {
        let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let std::net::SocketAddr::V6(address) = socket.local_addr().unwrap() else { panic!("no IPv6") };
        thread::spawn(move || {
            let mut buffer = [0; MAX_MESSAGE];
            for answer in answers {
                let (_, client) = socket.recv_from(&mut buffer).unwrap();
                let message = [&answer[..1], &buffer[1..4], &answer[1..]].concat();
                socket.send_to(&message, client).unwrap();
            }
        });
        address
    }

    /// Kind, then the identifiers of the client and of a server, and an address.
    fn answer(kind: Kind, last: u8) -> Vec<u8> {
        let address: Ipv6Addr = format!("2001:db8::{last:x}").parse().unwrap();
        let identifier = [0, 3, 0, 1, 0x52, 0x54, 0, 0, 0, 1];
        [
            &[kind as u8, 0, 1, 0, 10][..],
            &identifier,
            &[0, 2, 0, 4, 9, 9, 9, 9],
            &[0, 3, 0, 40, 0, 0, 0, 1, 0, 0, 0, 50, 0, 0, 0, 80, 0, 5, 0, 24],
            &address.octets(),
            &[0, 0, 0, 100, 0, 0, 0, 200],
        ]
        .concat()
    }

    fn conversation(answers: Vec<Vec<u8>>) -> Conversation {
        let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        Conversation::over(socket, server(answers), MacAddress([0x52, 0x54, 0, 0, 0, 1]))
    }

    #[test]
    fn what_is_offered_is_asked_for() {
        let answers = vec![answer(Kind::Advertise, 5), answer(Kind::Reply, 5)];
        let lease = conversation(answers).lease(&mut false, "eth0").unwrap().unwrap();
        assert_eq!(lease.address.unwrap().0, "2001:db8::5".parse::<Ipv6Addr>().unwrap());
        assert_eq!(renewal(&lease), Duration::from_secs(50));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_not_the_last_word() {
        let answers = vec![answer(Kind::Reply, 5), answer(Kind::Advertise, 6)];
        let found = conversation(answers).ask(Kind::Solicit, None, 3).unwrap().unwrap();
        assert_eq!(found.address.unwrap().0, "2001:db8::6".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn a04_an_address_is_asked_for_again_before_it_ends() {
        let lease = |renew_after, preferred, valid| Answer {
            server: Vec::new(),
            address: Some((Ipv6Addr::LOCALHOST, Lifetime { preferred, valid })),
            renew_after,
            name_servers: Vec::new(),
        };
        for (renew_after, preferred, valid, expected) in [
            (50, 100, 100, 50),
            (0, 100, 200, 50),
            (0, 0, 200, 100),
            (u32::MAX, 100, 200, 50),
            (200, 100, 200, 50),
            (1, 100, 200, 10),
            (1, 2, 3, 10),
            (u32::MAX, u32::MAX, u32::MAX, 604_800),
            (0, u32::MAX, u32::MAX, 604_800),
        ] {
            let found = renewal(&lease(renew_after, preferred, valid));
            assert_eq!(found.as_secs(), expected, "{renew_after} {preferred} {valid}");
        }
        assert_eq!(renewal(&Answer { address: None, ..lease(0, 0, 0) }).as_secs(), 1800);
    }
}
