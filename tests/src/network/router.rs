//! A router that leaves addresses to DHCP, and the DHCP server beside it, as answers to single frames.

use std::net::Ipv6Addr;

/// The address that every machine gets.
pub const GIVEN: &str = "fd00::77";
/// The name server that is announced.
pub const NAME_SERVER: &str = "fd00::53";

/// Bytes of the headers of Ethernet, IPv6 and UDP.
const ETHERNET: usize = 14;
const IPV6: usize = 40;
const UDP: usize = 8;
/// Next headers.
const UDP_HEADER: u8 = 17;
const ICMP_HEADER: u8 = 58;
const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0xfe];
const SERVER_PORT: [u8; 2] = 547_u16.to_be_bytes();
const CLIENT_PORT: [u8; 2] = 546_u16.to_be_bytes();

/// The answer to a frame that asks for routers or for an address.
pub fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET)?;
    let (header, content) = packet.split_at_checked(IPV6)?;
    match (&ethernet[12..], header[6]) {
        ([0x86, 0xdd], ICMP_HEADER) if content.first() == Some(&133) => {
            Some(packet_to([0x33, 0x33, 0, 0, 0, 1], address("ff02::1"), ICMP_HEADER, announcement(), 2))
        }
        ([0x86, 0xdd], UDP_HEADER) if content.get(2..4) == Some(&SERVER_PORT) => {
            let lease = lease(content.get(UDP..)?)?;
            let length = (UDP + lease.len()) as u16;
            let udp = [&SERVER_PORT[..], &CLIENT_PORT, &length.to_be_bytes(), &[0; 2], &lease].concat();
            let client: [u8; 16] = header[8..24].try_into().ok()?;
            Some(packet_to(ethernet[6..12].try_into().ok()?, client, UDP_HEADER, udp, 6))
        }
        _ => None,
    }
}

/// Addresses come from DHCP; the network is on the link; the router leads nowhere.
fn announcement() -> Vec<u8> {
    const MANAGED: u8 = 0x80;
    const ON_LINK: u8 = 0x80;
    let hour = 3600_u32.to_be_bytes();
    [
        &[134, 0, 0, 0, 64, MANAGED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 64, ON_LINK][..],
        &hour,
        &hour,
        &[0; 4],
        &address("fd00::"),
        &[25, 3, 0, 0],
        &hour,
        &address(NAME_SERVER),
    ]
    .concat()
}

/// What is offered at the first question, and confirmed at each later one.
fn lease(message: &[u8]) -> Option<Vec<u8>> {
    let kind = if message.first()? == &1 { 2 } else { 7 };
    let client = option(message.get(4..)?, 1)?;
    let set = option(message.get(4..)?, 3)?.get(..4)?;
    let given = [&address(GIVEN)[..], &1800_u32.to_be_bytes(), &3600_u32.to_be_bytes()].concat();
    let set = [set, &900_u32.to_be_bytes(), &1440_u32.to_be_bytes(), &written(5, &given)].concat();
    let server = written(2, &[&[0, 3, 0, 1][..], &MAC].concat());
    Some([&[kind], message.get(1..4)?, &written(1, client), &server, &written(3, &set)].concat())
}

fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (header, rest) = options.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let (value, rest) = rest.split_at_checked(length)?;
        if header[..2] == wanted.to_be_bytes() {
            return Some(value);
        }
        options = rest;
    }
}

fn written(code: u16, value: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

/// A frame whose content has its checksum at an offset.
fn packet_to(mac: [u8; 6], target: [u8; 16], next: u8, mut content: Vec<u8>, checksum: usize) -> Vec<u8> {
    let length = content.len() as u16;
    let addresses = [address("fe80::fe"), target].concat();
    let covered = [&addresses[..], &u32::from(length).to_be_bytes(), &[0, 0, 0, next], &content].concat();
    content[checksum..checksum + 2].copy_from_slice(&sum(&covered).to_be_bytes());
    let header = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[next, 255], &addresses].concat();
    [&mac[..], &MAC, &[0x86, 0xdd], &header, &content].concat()
}

/// The Internet checksum (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An address that is written in this file.
fn address(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().map_or([0; 16], |address| address.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_all_with_the_checksum_is_zero() {
        let frame = packet_to([0; 6], address("ff02::1"), ICMP_HEADER, announcement(), 2);
        let content = &frame[ETHERNET + IPV6..];
        let addresses = &frame[ETHERNET + 8..ETHERNET + IPV6];
        let length = (content.len() as u32).to_be_bytes();
        assert_eq!(sum(&[addresses, &length, &[0, 0, 0, ICMP_HEADER], content].concat()), 0);
    }

    #[test]
    fn only_questions_are_answered() {
        let question = packet_to([0; 6], address("ff02::2"), ICMP_HEADER, vec![133, 0, 0, 0, 0, 0, 0, 0], 2);
        assert!(answer(&question).is_some());
        assert_eq!(answer(&answer(&question).unwrap()), None);
        assert_eq!(answer(&question[..20]), None);
    }
}
