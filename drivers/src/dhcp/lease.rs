//! What dnsmasq says about addresses: its lease file, and the lines that it logs.

use farrier_conductor::model::MacAddress;
use std::collections::VecDeque;
use std::net::IpAddr;

/// How many machines may be asking at a time for their cards to be known.
const TRANSACTIONS: usize = 256;

/// The entry of a lease file for a machine without a name.
const NAMELESS: &str = "*";

/// An address that a machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The machine's network card.
    pub card: MacAddress,
    /// The address.
    pub address: IpAddr,
    /// What the machine calls itself, where it does.
    pub name: Option<String>,
}

/// The leases of a lease file: when it ends, card, address, name, client. Those of IPv6 have no card, and a client that may
/// tell it.
pub fn of_file(text: &str) -> Vec<Lease> {
    let lease = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (card, address) = (words.next()?, words.next()?.parse().ok()?);
        let name = words.next().filter(|name| *name != NAMELESS).map(str::to_owned);
        let card = match address {
            IpAddr::V4(_) => card.parse().ok()?,
            IpAddr::V6(_) => of_client(words.next()?)?,
        };
        Some(Lease { card, address, name })
    };
    text.lines().filter_map(lease).collect()
}

/// The card of a client of IPv6, where its identity is made of that (DUID-LLT and DUID-LL of RFC 8415, section 11). Much
/// firmware has one made of the UUID of the machine.
fn of_client(identity: &str) -> Option<MacAddress> {
    let at = match identity.get(..12)? {
        "00:01:00:01:" => 8 * 3,
        "00:03:00:01:" => 4 * 3,
        _ => return None,
    };
    identity.get(at..)?.parse().ok()
}

/// The detailed log of a dnsmasq (`log-dhcp`), read line by line.
#[derive(Debug, Default)]
pub struct Log {
    /// The cards of the last transactions by IPv6, by their numbers. The line with an address names only a client.
    cards: VecDeque<(String, MacAddress)>,
}

impl Log {
    /// The lease in a line: `… DHCPACK(br0) 192.0.2.50 52:54:00:00:00:01 name`, and by IPv6
    /// `… 1234 client MAC address: 52:54:00:00:00:01` before `… 1234 DHCPREPLY(br0) 2001:db8::50 00:04:52:…`.
    pub fn lease(&mut self, line: &str) -> Option<Lease> {
        if let Some((before, card)) = line.split_once(" client MAC address: ") {
            self.cards.truncate(TRANSACTIONS - 1);
            self.cards.push_front((number(before).to_owned(), card.parse().ok()?));
            return None;
        }
        if let Some((before, rest)) = line.split_once(" DHCPREPLY(") {
            let mut words = rest.split(' ').skip(1);
            let address = words.next()?.parse().ok()?;
            let known = self.cards.iter().find(|(transaction, _)| transaction == number(before));
            let card = known.map(|(_, card)| card.clone());
            let client = words.next();
            let card = card.or_else(|| of_client(client?))?;
            return Some(Lease { address, card, name: words.next().map(str::to_owned) });
        }
        let (_, rest) = line.split_once("DHCPACK(")?;
        let mut words = rest.split(' ').skip(1);
        let address = words.next()?.parse().ok()?;
        Some(Lease { address, card: words.next()?.parse().ok()?, name: words.next().map(str::to_owned) })
    }
}

/// The number of a transaction, which is the last word before the text of a line.
fn number(before: &str) -> &str {
    before.rsplit(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> Lease {
        let (card, address) = ("52:54:00:00:00:01".parse().unwrap(), "192.0.2.50".parse().unwrap());
        Lease { card, address, name: None }
    }

    fn named() -> Lease {
        Lease { name: Some("horse".into()), ..lease() }
    }

    #[test]
    fn leases_are_read_and_all_else_is_passed_over() {
        let text = "1795000000 52:54:00:00:00:01 192.0.2.50 horse 01:52:54:00:00:00:01\n\
                    duid 00:01:00:01:2f\n1795000000 12345 2001:db8::50 horse 00:01\n\nnonsense\n\
                    1795000000 1 2001:db8::51 * 00:04:52:54:00:00:00:01:52:54:00:00:00:01:52:54:00:00\n\
                    1795000000 1 2001:db8::52 * 00:01:00:01:2f:00:00:01:52:54:00:00:00:01\n";
        let by_ipv6 = Lease { address: "2001:db8::52".parse().unwrap(), ..lease() };
        assert_eq!(of_file(text), [named(), by_ipv6]);
    }

    #[test]
    fn an_acknowledgement_differs_from_other_lines() {
        for (line, expected) in [
            ("dnsmasq-dhcp: DHCPACK(br0) 192.0.2.50 52:54:00:00:00:01 horse", Some(named())),
            ("dnsmasq-dhcp: 1234 DHCPACK(br0) 192.0.2.50 52:54:00:00:00:01", Some(lease())),
            (
                "dnsmasq-dhcp: 1234 DHCPREPLY(br0) 2001:db8::50 00:03:00:01:52:54:00:00:00:01",
                Some(Lease { address: "2001:db8::50".parse().unwrap(), ..lease() }),
            ),
            ("dnsmasq-dhcp: 1234 DHCPREPLY(br0) 2001:db8::50 00:04:52:54:00", None),
            ("dnsmasq-dhcp: DHCPDISCOVER(br0) 52:54:00:00:00:01", None),
            ("dnsmasq-dhcp: DHCPACK(br0) horse", None),
            ("DHCPACK(", None),
        ] {
            assert_eq!(Log::default().lease(line), expected, "{line}");
        }
    }

    #[test]
    fn a_client_of_ipv6_that_is_no_card_is_known_by_the_card_of_its_transaction() {
        let mut log = Log::default();
        let by_ipv6 = Lease { address: "2001:db8::50".parse().unwrap(), ..named() };
        for (line, expected) in [
            ("dnsmasq-dhcp: 1234 client MAC address: 52:54:00:00:00:01", None),
            ("dnsmasq-dhcp: 1235 client MAC address: 52:54:00:00:00:02", None),
            ("dnsmasq-dhcp: 1236 cannot determine client MAC address", None),
            ("dnsmasq-dhcp: 1234 DHCPREPLY(br0) 2001:db8::50 00:04:52:54:00 horse", Some(by_ipv6)),
            ("dnsmasq-dhcp: 1236 DHCPREPLY(br0) 2001:db8::50 00:04:52:54:00", None),
            ("dnsmasq-dhcp: 1235 client MAC address: ", None),
        ] {
            assert_eq!(log.lease(line), expected, "{line}");
        }
        for transaction in 0..TRANSACTIONS * 2 {
            log.lease(&format!("{transaction} client MAC address: 52:54:00:00:00:01"));
        }
        assert_eq!(log.cards.len(), TRANSACTIONS);
    }
}
