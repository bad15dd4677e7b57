//! Values of options that are lists in forms of their own.

use crate::netlink::Route;
use ipnet::{IpNet, Ipv4Net};
use std::net::Ipv4Addr;

/// The two high bits of a length that is a pointer to an earlier name (RFC 1035, 4.1.4).
const POINTER: u8 = 0xc0;
/// Longest name in bytes (RFC 1035, 2.3.4).
const MAX_NAME: usize = 255;

/// Classless routes (RFC 3442); nothing when they are cut short or there are none.
pub fn classless_routes(mut bytes: &[u8]) -> Option<Vec<Route>> {
    let mut routes = Vec::new();
    while let [length, rest @ ..] = bytes {
        // Only those bytes of the network are sent that the prefix reaches.
        let (network, rest) = rest.split_at_checked(usize::from(length.div_ceil(8)))?;
        let (gateway, rest) = rest.split_first_chunk::<4>()?;
        let mut octets = [0; 4];
        octets.get_mut(..network.len())?.copy_from_slice(network);
        let destination = Ipv4Net::new(octets.into(), *length).ok()?.trunc();
        let gateway = Ipv4Addr::from(*gateway);
        let gateway = (!gateway.is_unspecified()).then_some(gateway.into());
        routes.push(Route { destination: IpNet::V4(destination), gateway });
        bytes = rest;
    }
    (!routes.is_empty()).then_some(routes)
}

/// Domains in which names are looked for (RFC 3397), up to the first one that is damaged.
pub fn search_domains(bytes: &[u8]) -> Vec<String> {
    let mut domains = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let Some((domain, next)) = domain(bytes, start) else { break };
        domains.push(domain);
        start = next;
    }
    domains
}

/// The name that begins at an offset, and where the next one begins.
fn domain(bytes: &[u8], start: usize) -> Option<(String, usize)> {
    let (mut name, mut at, mut next) = (String::new(), start, None);
    loop {
        let length = *bytes.get(at)?;
        match length {
            0 => return Some((name, next.unwrap_or(at + 1))),
            _ if length & POINTER == POINTER => {
                let target = usize::from(length & !POINTER) << 8 | usize::from(*bytes.get(at + 1)?);
                next = next.or(Some(at + 2));
                // Pointers lead back only: no name goes round in circles.
                at = Some(target).filter(|target| *target < at)?;
            }
            _ => {
                let label = bytes.get(at + 1..at + 1 + usize::from(length))?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(std::str::from_utf8(label).ok()?);
                at += 1 + label.len();
            }
        }
        if name.len() > MAX_NAME {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn x16_classless_routes_are_read_whole_or_not_at_all() {
        let route = |destination: &str, gateway: Option<[u8; 4]>| Route {
            destination: destination.parse().unwrap(),
            gateway: gateway.map(Into::into),
        };
        let router = [192, 0, 2, 1];
        for (bytes, expected) in [
            (
                &[24, 198, 51, 100, 0, 0, 0, 0, 0, 192, 0, 2, 1, 20, 10, 1, 0xff, 192, 0, 2, 1][..],
                Some(vec![
                    route("198.51.100.0/24", None),
                    route("0.0.0.0/0", Some(router)),
                    route("10.1.240.0/20", Some(router)),
                ]),
            ),
            (&[], None),
            (&[24, 198, 51, 100, 0, 0, 0], None),
            (&[33, 1, 2, 3, 4, 5, 192, 0, 2, 1], None),
        ] {
            assert_eq!(classless_routes(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn x16_search_domains_may_point_to_earlier_ones() {
        // The example of RFC 3397: eng.apple.com and marketing.apple.com.
        let bytes = b"\x03eng\x05apple\x03com\x00\x09marketing\xc0\x04";
        assert_eq!(search_domains(bytes), ["eng.apple.com", "marketing.apple.com"]);
        for (bytes, expected) in
            [(&b""[..], &[][..]), (b"\x01a\x00\x02b", &["a"]), (b"\xc0\x00", &[]), (b"\x01a\xc0\x00", &[])]
        {
            assert_eq!(search_domains(bytes), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_value_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            classless_routes(&bytes);
            search_domains(&bytes);
        }
    }
}
