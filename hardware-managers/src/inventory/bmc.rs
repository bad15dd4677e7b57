//! Addresses of the machine's own BMC, by IPMI (section 9.7).

use farrier_linux::ipmi::IpmiDevice;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Channels that may lead to a network (F44).
const CHANNELS: std::ops::RangeInclusive<u8> = 1..=11;
/// Time for all questions together: a BMC that answers slowly must not hold the machine.
const BUDGET: Duration = Duration::from_secs(20);
/// Most address slots to look at; BMCs have a handful.
const MAX_SLOTS: u8 = 16;

const TRANSPORT: u8 = 0x0c;
const GET_LAN_CONFIGURATION: u8 = 0x02;
const IP_ADDRESS: u8 = 3;
const MAC_ADDRESS: u8 = 5;
const IPV6_ENABLES: u8 = 51;
const IPV6_STATUS: u8 = 55;
const IPV6_STATIC: u8 = 56;
const IPV6_DYNAMIC: u8 = 59;

/// Addresses of a BMC, as the inventory has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BmcAddresses {
    /// IPv4 address, or `0.0.0.0`; nothing without a BMC.
    pub ipv4: Option<String>,
    /// IPv6 address, or `::/0`; nothing without a BMC.
    pub ipv6: Option<String>,
    /// Hardware address.
    pub mac: Option<String>,
}

/// The addresses of this machine's BMC, asked for once per process (F31).
pub fn addresses() -> &'static BmcAddresses {
    static ADDRESSES: OnceLock<BmcAddresses> = OnceLock::new();
    ADDRESSES.get_or_init(|| match IpmiDevice::open_first() {
        Ok(Some(mut device)) => {
            let deadline = Instant::now() + BUDGET;
            ask(&mut |netfn, command, data| {
                if Instant::now() >= deadline {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the BMC is too slow"));
                }
                device.call(netfn, command, data)
            })
        }
        Ok(None) => BmcAddresses::default(),
        Err(error) => {
            tracing::warn!(%error, "the IPMI device cannot be opened: the BMC's addresses stay unknown");
            BmcAddresses::default()
        }
    })
}

/// Sends one request to a BMC: network function, command, data; the answer begins with its
/// completion code.
type Call<'a> = &'a mut dyn FnMut(u8, u8, &[u8]) -> io::Result<Vec<u8>>;

/// The first channel with an address that reaches further than its link counts, for each family: one without any says
/// nothing, and one whose address is good on a link alone leads to this machine, such as a network card on USB.
fn ask(call: Call<'_>) -> BmcAddresses {
    // A channel that is invalid, or no network, says nothing about those after it (F44).
    let channels: Vec<_> = CHANNELS.filter_map(|channel| Some((channel, ipv4(call, channel)?))).collect();
    if channels.is_empty() {
        return BmcAddresses::default();
    }
    let mut found = BmcAddresses::default();
    for (channel, ipv4) in channels {
        let ipv6 = ipv6(call, channel);
        let ipv4 = Some(ipv4).filter(|address| is_reachable_v4(*address));
        if ipv4.is_some() || ipv6.is_some() {
            found.mac = found.mac.or_else(|| mac(call, channel));
        }
        found.ipv4 = found.ipv4.or(ipv4.map(|address| address.to_string()));
        found.ipv6 = found.ipv6.or(ipv6.map(|address| address.to_string()));
    }
    found.ipv4.get_or_insert(Ipv4Addr::UNSPECIFIED.to_string());
    found.ipv6.get_or_insert("::/0".to_owned());
    found
}

/// A LAN configuration parameter without completion code and revision.
fn parameter(call: Call<'_>, channel: u8, number: u8, set: u8) -> Option<Vec<u8>> {
    match call(TRANSPORT, GET_LAN_CONFIGURATION, &[channel, number, set, 0]).ok()?.as_slice() {
        [0, _revision, data @ ..] => Some(data.to_vec()),
        _ => None,
    }
}

fn ipv4(call: Call<'_>, channel: u8) -> Option<Ipv4Addr> {
    parameter(call, channel, IP_ADDRESS, 0)?.first_chunk::<4>().copied().map(Ipv4Addr::from)
}

fn mac(call: Call<'_>, channel: u8) -> Option<String> {
    let data = parameter(call, channel, MAC_ADDRESS, 0)?;
    let bytes = data.first_chunk::<6>().filter(|bytes| **bytes != [0; 6])?;
    Some(bytes.map(|byte| format!("{byte:02x}")).join(":"))
}

/// The first active address that reaches further than its link: dynamic ones, then static ones that are enabled.
fn ipv6(call: Call<'_>, channel: u8) -> Option<Ipv6Addr> {
    let is_enabled = matches!(parameter(call, channel, IPV6_ENABLES, 0)?.first(), Some(1 | 2));
    let status = parameter(call, channel, IPV6_STATUS, 0)?;
    let [static_slots, dynamic_slots] = *status.first_chunk::<2>().filter(|_| is_enabled)?;
    let is_learnt = |source: u8| matches!(source & 0x0f, 1 | 2);
    let is_switched_on = |source: u8| source & 0x80 != 0;
    slots(call, channel, IPV6_DYNAMIC, dynamic_slots, is_learnt)
        .or_else(|| slots(call, channel, IPV6_STATIC, static_slots, is_switched_on))
}

/// Each slot: its number, source, address, prefix length and status, of which 0 is active.
fn slots(call: Call<'_>, channel: u8, number: u8, count: u8, is_wanted: fn(u8) -> bool) -> Option<Ipv6Addr> {
    (0..count.min(MAX_SLOTS)).find_map(|slot| {
        let data = parameter(call, channel, number, slot)?;
        let [_, source, rest @ ..] = data.as_slice() else { return None };
        let address = Ipv6Addr::from(*rest.first_chunk::<16>()?);
        let is_active = rest.get(17) == Some(&0);
        (is_wanted(*source) && is_active && is_reachable(address)).then_some(address)
    })
}

fn is_reachable_v4(address: Ipv4Addr) -> bool {
    let is_no_host = address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    !is_no_host && !address.is_link_local() && !address.is_loopback()
}

fn is_reachable(address: Ipv6Addr) -> bool {
    let is_no_host = address.is_unspecified() || address.is_multicast() || address.is_loopback();
    !is_no_host && !address.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const INVALID_CHANNEL: u8 = 0xcc;

    /// Channel, parameter and set that are asked for, and the data of the answer.
    type Answer = ((u8, u8, u8), Vec<u8>);

    /// A BMC that answers from a table.
    fn bmc(answers: &[Answer]) -> BmcAddresses {
        let answers: BTreeMap<_, _> = answers.iter().cloned().collect();
        ask(&mut |netfn, command, data| {
            assert_eq!((netfn, command, data.len(), data[3]), (0x0c, 0x02, 4, 0));
            let known = answers.get(&(data[0], data[1], data[2]));
            Ok(known.map_or(vec![INVALID_CHANNEL], |data| [&[0, 0x11], data.as_slice()].concat()))
        })
    }

    fn slot(number: u8, source: u8, address: &str, status: u8) -> Vec<u8> {
        let address: Ipv6Addr = address.parse().unwrap();
        [&[number, source], &address.octets()[..], &[64, status]].concat()
    }

    #[test]
    fn f44_channels_after_an_invalid_one_are_asked() {
        let found = bmc(&[
            ((1, 3, 0), vec![0, 0, 0, 0]),
            ((8, 3, 0), vec![198, 51, 100, 10]),
            ((8, 5, 0), vec![0xd0, 0x94, 0x66, 0, 0x11, 0x22]),
        ]);
        let expected = BmcAddresses {
            ipv4: Some("198.51.100.10".into()),
            ipv6: Some("::/0".into()),
            mac: Some("d0:94:66:00:11:22".into()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn f44_dynamic_addresses_come_before_static_ones() {
        let common = [
            ((1, 3, 0), vec![0, 0, 0, 0]),
            ((1, 5, 0), vec![2, 0, 0, 0, 0, 1]),
            ((1, 51, 0), vec![2]),
            ((1, 55, 0), vec![1, 2, 3]),
            ((1, 56, 0), slot(0, 0x80, "2001:db8::5", 0)),
        ];
        let learnt = [((1, 59, 0), slot(0, 2, "2001:db8::6", 1)), ((1, 59, 1), slot(1, 1, "2001:db8::7", 0))];
        let found = bmc(&[&common[..], &learnt].concat());
        assert_eq!(found.ipv6.as_deref(), Some("2001:db8::7"));
        let found = bmc(&common);
        assert_eq!(found.ipv6.as_deref(), Some("2001:db8::5"));
        assert_eq!(found.ipv4.as_deref(), Some("0.0.0.0"));
        assert_eq!(found.mac.as_deref(), Some("02:00:00:00:00:01"));
    }

    #[test]
    fn disabled_and_empty_addresses_do_not_count() {
        let found = bmc(&[
            ((1, 3, 0), vec![0, 0, 0, 0]),
            ((1, 5, 0), vec![2, 0, 0, 0, 0, 1]),
            ((1, 51, 0), vec![0]),
            ((1, 55, 0), vec![1, 0, 3]),
            ((1, 56, 0), slot(0, 0x80, "2001:db8::5", 0)),
        ]);
        assert_eq!((found.ipv6.as_deref(), found.mac), (Some("::/0"), None));
    }

    #[test]
    fn a05_the_link_to_this_machine_is_not_the_address_of_the_bmc() {
        let usb_mac = vec![0xbe, 0x3a, 0xf2, 0xb6, 0x05, 0x9f];
        let (lan, lan_mac) = (vec![198, 51, 100, 10], vec![0xd0, 0x94, 0x66, 0, 0x11, 0x22]);
        let usb = [((3, 3, 0), vec![169, 254, 95, 118]), ((3, 5, 0), usb_mac)];
        let found = bmc(&[
            &[((1, 3, 0), vec![0; 4]), ((1, 5, 0), vec![2, 0, 0, 0, 0, 1])][..],
            &usb,
            &[((8, 3, 0), lan), ((8, 5, 0), lan_mac)],
        ]
        .concat());
        assert_eq!(found.ipv4.as_deref(), Some("198.51.100.10"));
        assert_eq!(found.mac.as_deref(), Some("d0:94:66:00:11:22"));
        let alone = bmc(&usb);
        assert_eq!((alone.ipv4.as_deref(), alone.mac), (Some("0.0.0.0"), None));
        for no_host in [[255; 4], [127, 0, 0, 1], [224, 0, 0, 1]] {
            assert_eq!(bmc(&[((1, 3, 0), no_host.to_vec())]).ipv4.as_deref(), Some("0.0.0.0"), "{no_host:?}");
        }
    }

    #[test]
    fn a05_an_ipv6_address_of_a_link_hides_no_other_one() {
        let channel = |number: u8, addresses: &[&str]| {
            let count = addresses.len() as u8;
            let mut answers = vec![
                ((number, 3, 0), vec![0; 4]),
                ((number, 5, 0), vec![2, 0, 0, 0, 0, number]),
                ((number, 51, 0), vec![2]),
                ((number, 55, 0), vec![0, count, 3]),
            ];
            let slots = (0..count).zip(addresses);
            answers.extend(slots.map(|(place, address)| ((number, 59, place), slot(place, 1, address, 0))));
            answers
        };
        for (answers, expected, mac) in [
            (vec![channel(1, &["fe80::1", "2001:db8::1"])], "2001:db8::1", Some(1)),
            (vec![channel(1, &["fe80::1"]), channel(8, &["2001:db8::8"])], "2001:db8::8", Some(8)),
            (vec![channel(1, &["fe80::1", "::1", "ff02::1"])], "::/0", None),
        ] {
            let found = bmc(&answers.concat());
            let mac = mac.map(|last| format!("02:00:00:00:00:{last:02x}"));
            assert_eq!((found.ipv6.as_deref(), found.mac), (Some(expected), mac));
        }
    }

    #[test]
    fn a_bmc_that_never_answers_has_no_addresses() {
        let silent = ask(&mut |_, _, _| Err(io::ErrorKind::TimedOut.into()));
        assert_eq!(silent, BmcAddresses::default());
        for answer in [&[][..], &[0], &[0, 0x11], &[0, 0x11, 1, 2]] {
            assert_eq!(ask(&mut |_, _, _| Ok(answer.to_vec())), BmcAddresses::default());
        }
    }
}
