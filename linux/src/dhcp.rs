//! Questions to DHCP servers (RFC 2131), beside the client that configures links.

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
/// Asks the server to answer by broadcast: an interface without an address hears nothing else.
const ANSWER_BY_BROADCAST: u16 = 0x8000;

mod option {
    pub const HOST_NAME: u8 = 12;
    pub const MESSAGE: u8 = 53;
    pub const SERVER: u8 = 54;
    pub const CLIENT: u8 = 61;
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

/// A question on one Ethernet interface.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// Name of the interface.
    pub interface: &'a str,
    /// Its hardware address.
    pub hardware_address: [u8; 6],
    /// A number that no other question has.
    pub transaction: u32,
    /// The address that is held and to be held longer; without one the question is what would be
    /// given, and nothing is taken.
    pub held: Option<Ipv4Addr>,
    /// Host name to tell the server.
    pub host_name: Option<&'a str>,
}

/// What a server answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The server gives this address, or would.
    Given {
        /// The server.
        server: Ipv4Addr,
        /// The address.
        address: Ipv4Addr,
    },
    /// The server does not let this machine hold its address.
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
        let flags = if self.held.is_some() { 0 } else { ANSWER_BY_BROADCAST };
        let held = self.held.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let mut packet = vec![0; HEADER];
        packet[..4].copy_from_slice(&[FROM_CLIENT, ETHERNET, 6, 0]);
        packet[4..8].copy_from_slice(&self.transaction.to_be_bytes());
        packet[10..12].copy_from_slice(&flags.to_be_bytes());
        packet[12..16].copy_from_slice(&held.octets());
        packet[28..34].copy_from_slice(&self.hardware_address);
        packet[236..240].copy_from_slice(&MAGIC);
        let message = if self.held.is_some() { message::REQUEST } else { message::DISCOVER };
        packet.extend([option::MESSAGE, 1, message]);
        // As the client that configures links names itself, so that the server knows the lease.
        packet.extend([option::CLIENT, 7, ETHERNET]);
        packet.extend(self.hardware_address);
        if let Some(name) = self.host_name.filter(|name| !name.is_empty()) {
            let name = &name.as_bytes()[..name.len().min(63)];
            packet.extend([option::HOST_NAME, name.len() as u8]);
            packet.extend(name);
        }
        packet.push(option::END);
        packet.resize(packet.len().max(LEAST), option::PAD);
        packet
    }

    /// The answer in a packet; nothing when it answers another question, or none.
    fn read(&self, packet: &[u8]) -> Option<Answer> {
        let (header, options) = packet.split_at_checked(HEADER)?;
        let is_ours = header[0] == FROM_SERVER
            && header[4..8] == self.transaction.to_be_bytes()
            && header[28..34] == self.hardware_address
            && header[236..240] == MAGIC;
        if !is_ours {
            return None;
        }
        let octets = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).ok().map(Ipv4Addr::from);
        let server = value(options, option::SERVER).and_then(octets)?;
        match (value(options, option::MESSAGE)?, self.held) {
            ([message::OFFER], None) | ([message::ACKNOWLEDGE], Some(_)) => {
                Some(Answer::Given { server, address: octets(&header[16..20])? })
            }
            ([message::REFUSE], Some(_)) => Some(Answer::Refused { server }),
            _ => None,
        }
    }
}

/// The value of an option.
fn value(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        match options {
            [option::PAD, rest @ ..] => options = rest,
            [option::END, ..] | [] | [_] => return None,
            [code, length, rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(*length))?;
                if *code == wanted {
                    return Some(value);
                }
                options = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
    const HELD: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 15);
    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn question(held: Option<Ipv4Addr>) -> Question<'static> {
        let host_name = Some("farrier-dns");
        Question { interface: "eth0", hardware_address: MAC, transaction: 7, held, host_name }
    }

    /// An answer of a server to [`question`].
    fn answer(message: u8) -> Vec<u8> {
        let mut packet = vec![0; HEADER];
        packet[0] = FROM_SERVER;
        packet[7] = 7;
        packet[16..20].copy_from_slice(&HELD.octets());
        packet[28..34].copy_from_slice(&MAC);
        packet[236..].copy_from_slice(&MAGIC);
        packet.extend([
            option::PAD,
            option::MESSAGE,
            1,
            message,
            option::SERVER,
            4,
            192,
            0,
            2,
            2,
            option::END,
        ]);
        packet
    }

    #[test]
    fn questions_carry_the_host_name_and_the_client() {
        for (held, kind) in [(None, message::DISCOVER), (Some(HELD), message::REQUEST)] {
            let packet = question(held).packet();
            assert!(packet.len() >= LEAST);
            assert_eq!(value(&packet[HEADER..], option::MESSAGE), Some(&[kind][..]));
            assert_eq!(value(&packet[HEADER..], option::HOST_NAME), Some(&b"farrier-dns"[..]));
            assert_eq!(value(&packet[HEADER..], option::CLIENT), Some(&[1, 0x52, 0x54, 0, 0, 0, 1][..]));
            assert_eq!(packet[12..16], held.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        }
    }

    #[test]
    fn answers_to_other_questions_are_passed_over() {
        let given = Some(Answer::Given { server: SERVER, address: HELD });
        let changed = |at: usize| {
            let mut packet = answer(message::OFFER);
            packet[at] ^= 0x55;
            packet
        };
        for (held, packet, expected) in [
            (None, answer(message::OFFER), given),
            (Some(HELD), answer(message::ACKNOWLEDGE), given),
            (Some(HELD), answer(message::REFUSE), Some(Answer::Refused { server: SERVER })),
            (None, answer(message::ACKNOWLEDGE), None),
            (Some(HELD), answer(message::OFFER), None),
            (None, changed(0), None),
            (None, changed(7), None),
            (None, changed(33), None),
            (None, changed(239), None),
            (None, answer(message::OFFER)[..HEADER + 6].to_vec(), None),
        ] {
            assert_eq!(question(held).read(&packet), expected, "{packet:02x?}");
        }
    }

    #[test]
    fn an_unknown_interface_is_an_error() {
        let nowhere = Question { interface: "nosuch0", ..question(None) };
        assert!(ask(&nowhere, Duration::from_secs(60)).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_is_too_odd(options in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut packet = answer(message::OFFER);
            packet.truncate(HEADER);
            packet.extend(options);
            question(None).read(&packet);
        }
    }
}
