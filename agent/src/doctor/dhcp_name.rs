//! The failed check as the host name that DHCP servers hear, log and keep with the lease.

use farrier_init::mac_address::MacAddress;
use farrier_linux::dhcp::{self, Answer, Client, Question, Request};
use farrier_linux::netlink::InterfaceAddress;
use farrier_protocol::inventory::NetworkInterface;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;

/// How long servers are asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends the host name on every link that is up: where an IPv4 address is held its lease is renewed,
/// elsewhere servers are asked what they would give. Returns which servers heard it.
///
/// # Errors
///
/// No server answered.
pub fn tell(
    host_name: &str,
    nics: &[NetworkInterface],
    addresses: &[InterfaceAddress],
) -> io::Result<Vec<Ipv4Addr>> {
    let heard = thread::scope(|scope| {
        let asked: Vec<_> = questions(host_name, nics, addresses)
            .into_iter()
            .map(|question| scope.spawn(move || dhcp::ask(&question, PATIENCE)))
            .collect();
        asked.into_iter().filter_map(|one| one.join().ok()).collect::<Vec<_>>()
    });
    let servers: Vec<_> = heard
        .into_iter()
        .filter_map(|answer| match answer.ok()?? {
            Answer::Given(lease) => Some(lease.server),
            Answer::Refused { server } => Some(server),
        })
        .collect();
    if servers.is_empty() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "no DHCP server answers"));
    }
    Ok(servers)
}

fn questions<'a>(
    host_name: &'a str,
    nics: &'a [NetworkInterface],
    addresses: &[InterfaceAddress],
) -> Vec<Question<'a>> {
    let held = |name: &str| {
        let mut own = addresses.iter().filter(|one| one.interface == name);
        own.find_map(|one| match one.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        })
    };
    let up = nics.iter().filter(|nic| nic.has_carrier);
    up.filter_map(|nic| {
        Some(Question {
            interface: &nic.name,
            client: Client::Ethernet(MacAddress::parse(&nic.mac_address)?.0),
            transaction: rand::random(),
            request: held(&nic.name).map_or(Request::Discover, Request::Keep),
            host_name: Some(host_name),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_are_up_are_asked_for_what_they_hold() {
        let nic = |name: &str, mac: &str, has_carrier| NetworkInterface {
            name: name.into(),
            mac_address: mac.into(),
            has_carrier,
            ..NetworkInterface::default()
        };
        let nics = [
            nic("eth0", "52:54:00:00:00:01", true),
            nic("eth1", "52:54:00:00:00:02", true),
            nic("eth2", "52:54:00:00:00:03", false),
            nic("ib0", "", true),
        ];
        let address = |text: &str| InterfaceAddress {
            interface: "eth1".into(),
            address: text.parse().unwrap(),
            prefix: 24,
        };
        let addresses = [address("2001:db8::1"), address("192.0.2.15")];
        let found = questions("farrier-tcp", &nics, &addresses);
        let found: Vec<_> =
            found.iter().map(|one| (one.interface, one.request.clone(), one.host_name)).collect();
        let name = Some("farrier-tcp");
        assert_eq!(
            found,
            [("eth0", Request::Discover, name), ("eth1", Request::Keep([192, 0, 2, 15].into()), name),]
        );
    }

    #[test]
    fn without_a_link_nobody_hears_it() {
        assert!(tell("farrier-tcp", &[], &[]).is_err());
    }
}
