//! What dnsmasq says about addresses: its lease file, and the lines that it logs.

use farrier_conductor::model::MacAddress;
use std::net::IpAddr;

/// An address that a machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The machine's network card.
    pub card: MacAddress,
    /// The address.
    pub address: IpAddr,
}

/// The leases of a lease file: when it ends, card, address, name, client. Those of IPv6 have no card.
pub fn of_file(text: &str) -> Vec<Lease> {
    let lease = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some(Lease { card: words.next()?.parse().ok()?, address: words.next()?.parse().ok()? })
    };
    text.lines().filter_map(lease).collect()
}

/// The lease that a line of the log tells of: `… DHCPACK(br0) 192.0.2.50 52:54:00:00:00:01 name`.
pub fn of_log(line: &str) -> Option<Lease> {
    let (_, told) = line.split_once("DHCPACK(")?;
    let mut words = told.split(' ').skip(1);
    let address = words.next()?.parse().ok()?;
    Some(Lease { address, card: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> Lease {
        Lease { card: "52:54:00:00:00:01".parse().unwrap(), address: "192.0.2.50".parse().unwrap() }
    }

    #[test]
    fn leases_are_read_and_all_else_is_passed_over() {
        let text = "1795000000 52:54:00:00:00:01 192.0.2.50 horse 01:52:54:00:00:00:01\n\
                    duid 00:01:00:01:2f\n1795000000 12345 2001:db8::50 horse 00:01\n\nnonsense\n";
        assert_eq!(of_file(text), [lease()]);
    }

    #[test]
    fn an_acknowledgement_is_told_from_other_lines() {
        for (line, expected) in [
            ("dnsmasq-dhcp: DHCPACK(br0) 192.0.2.50 52:54:00:00:00:01 horse", Some(lease())),
            ("dnsmasq-dhcp: 1234 DHCPACK(br0) 192.0.2.50 52:54:00:00:00:01", Some(lease())),
            ("dnsmasq-dhcp: DHCPDISCOVER(br0) 52:54:00:00:00:01", None),
            ("dnsmasq-dhcp: DHCPACK(br0) horse", None),
            ("DHCPACK(", None),
        ] {
            assert_eq!(of_log(line), expected, "{line}");
        }
    }
}
