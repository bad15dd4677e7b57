//! What routers announce on a link (RFC 4861, 4.2), as far as the kernel does not see to it: whether DHCP
//! has more to say, and who answers questions for names (RFC 8106).

use std::net::Ipv6Addr;

/// EtherType of IPv6.
pub const PROTOCOL: u16 = 0x86dd;
/// The hardware address that stands for all machines of a link.
pub const ALL_MACHINES: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// Bytes of an Ethernet header, of an IPv6 header, and of an announcement before its options.
const ETHERNET: usize = 14;
const IPV6: usize = 40;
const FIXED_PART: usize = 16;
/// Next header of ICMPv6, and type of an announcement.
const ICMPV6: u8 = 58;
const ANNOUNCEMENT: u8 = 134;
/// Hops of a packet that no router has forwarded.
const UNFORWARDED: u8 = 255;
/// Bits of the flags.
const MANAGED: u8 = 0x80;
const OTHER: u8 = 0x40;
/// Type of the option with name servers, and its bytes before the first one, the last four of which are seconds.
const NAME_SERVERS: u8 = 25;
const BEFORE_SERVERS: usize = 8;

/// What a router announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// DHCP gives addresses.
    pub is_managed: bool,
    /// DHCP has the other settings.
    pub has_more: bool,
    /// Who answers questions for names.
    pub name_servers: Vec<Ipv6Addr>,
}

/// Reads a frame; nothing when it is no announcement that comes from this very link.
pub fn read(frame: &[u8]) -> Option<Announcement> {
    let packet = frame.get(ETHERNET..)?;
    let (header, message) = packet.split_at_checked(IPV6)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let message = message.get(..length)?;
    let source: [u8; 16] = header.get(8..24)?.try_into().ok()?;
    let is_from_link = header[7] == UNFORWARDED && Ipv6Addr::from(source).is_unicast_link_local();
    if header[0] >> 4 != 6 || header[6] != ICMPV6 || !is_from_link {
        return None;
    }
    let (fixed, mut options) = message.split_at_checked(FIXED_PART)?;
    if fixed[..2] != [ANNOUNCEMENT, 0] {
        return None;
    }
    let mut announcement = Announcement {
        is_managed: fixed[5] & MANAGED != 0,
        has_more: fixed[5] & OTHER != 0,
        name_servers: Vec::new(),
    };
    // Each option begins with its type and its length in units of eight bytes.
    while let [kind, units, ..] = options {
        let length = usize::from(*units) * 8;
        let (option, rest) = options.split_at_checked(length).filter(|_| length > 0)?;
        if *kind == NAME_SERVERS {
            let (head, addresses) = option.split_at(BEFORE_SERVERS);
            // Those of no seconds are not to be asked any more.
            if head[4..] != [0; 4] {
                let (addresses, _) = addresses.as_chunks::<16>();
                announcement.name_servers.extend(addresses.iter().copied().map(Ipv6Addr::from));
            }
        }
        options = rest;
    }
    Some(announcement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(flags: u8, hops: u8, source: &str, options: &[u8]) -> Vec<u8> {
        let source: Ipv6Addr = source.parse().unwrap();
        let length = (FIXED_PART + options.len()) as u16;
        let mut frame = vec![0; ETHERNET];
        frame.extend([0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([ICMPV6, hops]);
        frame.extend(source.octets());
        frame.extend([0xff; 16]);
        frame.extend([ANNOUNCEMENT, 0, 0, 0, 64, flags, 0, 30]);
        frame.extend([0; 8]);
        frame.extend(options);
        frame
    }

    fn servers(addresses: &[&str]) -> Vec<u8> {
        let mut option = vec![NAME_SERVERS, (1 + 2 * addresses.len()) as u8, 0, 0, 0, 0, 1, 0];
        for address in addresses {
            option.extend(address.parse::<Ipv6Addr>().unwrap().octets());
        }
        option
    }

    #[test]
    fn flags_and_name_servers_are_read() {
        let prefix = [vec![3, 4], vec![0; 30]].concat();
        let options =
            [prefix, servers(&["2001:db8::53", "2001:db8::54"]), servers(&["2001:db8::55"])].concat();
        for (flags, managed, other) in
            [(0xc0, true, true), (0x80, true, false), (0x40, false, true), (0, false, false)]
        {
            let found = read(&frame(flags, 255, "fe80::1", &options)).unwrap();
            assert_eq!((found.is_managed, found.has_more), (managed, other));
            let texts: Vec<_> = found.name_servers.iter().map(ToString::to_string).collect();
            assert_eq!(texts, ["2001:db8::53", "2001:db8::54", "2001:db8::55"]);
        }
    }

    #[test]
    fn a04_name_servers_that_are_not_to_be_asked_any_more_are_left_out() {
        let mut over = servers(&["2001:db8::99"]);
        over[4..8].fill(0);
        let options = [over, servers(&["2001:db8::53"])].concat();
        let found = read(&frame(0, 255, "fe80::1", &options)).unwrap();
        assert_eq!(found.name_servers, ["2001:db8::53".parse::<Ipv6Addr>().unwrap()]);
    }

    #[test]
    fn only_routers_of_this_link_are_believed() {
        assert!(read(&frame(0, 255, "fe80::1", &[])).is_some());
        for frame in [
            frame(0, 254, "fe80::1", &[]),
            frame(0, 255, "2001:db8::1", &[]),
            frame(0, 255, "fe80::1", &[25, 0, 0, 0, 0, 0, 0, 0]),
            frame(0, 255, "fe80::1", &[25, 3, 0, 0]),
            frame(0, 255, "fe80::1", &[])[..60].to_vec(),
        ] {
            assert_eq!(read(&frame), None, "{frame:?}");
        }
    }

    proptest! {
        #[test]
        fn no_frame_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200), flags: u8) {
            read(&bytes);
            read(&frame(flags, 255, "fe80::1", &bytes));
        }
    }
}
