//! What the DHCP client reports: an address to use, or one to give up.
//!
//! The client starts this program with the event as its argument and the lease in environment
//! variables.

use super::lease::{self, Lease};
use crate::logging;
use anyhow::Context;
use farrier_linux::netlink::Route;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::str::FromStr;

/// Path of this role in the ramdisk.
pub const PROGRAM: &str = "/usr/libexec/farrier/dhcp-event";

/// Acts on an event.
///
/// # Errors
///
/// The lease is of no interface, or the kernel does not let go of one that ended.
pub fn apply(event: Option<&str>) -> anyhow::Result<()> {
    logging::start(logging::Target::Consoles);
    let root = Path::new("/");
    let outcome = match event {
        Some("bound" | "renew") => read(variable).map(|lease| lease.apply(root)),
        Some("deconfig") => std::env::var("interface")
            .map_or(Ok(()), |interface| lease::deconfigure(root, &interface).map_err(Into::into)),
        // A missing answer is reported once for all links by the agent, which waits for it.
        _ => Ok(()),
    };
    outcome.inspect_err(|error| tracing::error!("DHCP {}: {error:#}", event.unwrap_or_default()))
}

/// What is no text in a variable spoils no more than the word in which it stands.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// The lease that the variables hold.
///
/// # Errors
///
/// It is of no interface.
pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Lease> {
    let interface = variable("interface").context("the lease has no interface")?;
    let text = |name: &str| variable(name).unwrap_or_default();
    let words = |name: &str| text(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let classless = classless_routes(&text("staticroutes"));
    let search = words("search");
    Ok(Lease {
        interface,
        address: address(&text("ip"), variable("mask"), variable("subnet")),
        classless: if classless.is_empty() { classless_routes(&text("msstaticroutes")) } else { classless },
        routers: parsed(&words("router")),
        mtu: variable("mtu").and_then(|text| text.parse().ok()),
        name_servers: parsed::<IpAddr>(&words("dns")),
        domains: if search.is_empty() { words("domain") } else { search },
        host_name: variable("hostname").filter(|name| !name.is_empty()),
    })
}

/// The words that can be read; the others are told.
fn parsed<T: FromStr>(words: &[String]) -> Vec<T> {
    let parse = |word: &String| {
        let value = word.parse().ok();
        if value.is_none() {
            tracing::warn!("{word:?} in the DHCP lease is not an address and is ignored");
        }
        value
    };
    words.iter().filter_map(parse).collect()
}

/// The address in its network, whose size is given as a length or as a mask.
fn address(ip: &str, length: Option<String>, mask: Option<String>) -> Option<Ipv4Net> {
    let Ok(ip) = ip.parse::<Ipv4Addr>() else {
        tracing::error!("the DHCP lease has no address that can be read ({ip:?})");
        return None;
    };
    let by_mask = lease::address(ip, mask.and_then(|mask| mask.parse().ok()))?;
    let length = length.and_then(|length| length.parse().ok());
    Some(length.and_then(|length| Ipv4Net::new(ip, length).ok()).unwrap_or(by_mask))
}

/// Networks, each with its gateway, which is `0.0.0.0` for a network on the link itself. What cannot be read is
/// left out.
fn classless_routes(text: &str) -> Vec<Route> {
    let words: Vec<_> = text.split_whitespace().collect();
    let route = |[destination, gateway]: &[&str; 2]| {
        let route = destination.parse::<IpNet>().ok().zip(gateway.parse::<IpAddr>().ok());
        if route.is_none() {
            tracing::warn!("the route to {destination} via {gateway} in the DHCP lease is ignored");
        }
        let (destination, gateway) = route?;
        let gateway = (!gateway.is_unspecified()).then_some(gateway);
        Some(Route { destination: destination.trunc(), gateway })
    };
    words.as_chunks::<2>().0.iter().filter_map(route).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_from_the_environment() {
        let read = |name: &str| {
            let value = match name {
                "interface" => "eth0",
                "ip" => "192.0.2.15",
                "subnet" => "255.255.255.0",
                "router" => "192.0.2.2 192.0.2.3",
                "dns" => "192.0.2.53 junk",
                "domain" => "example.org",
                _ => return None,
            };
            Some(value.to_owned())
        };
        assert_eq!(
            super::read(read).unwrap(),
            Lease {
                interface: "eth0".into(),
                address: Some("192.0.2.15/24".parse().unwrap()),
                classless: Vec::new(),
                routers: vec![[192, 0, 2, 2].into(), [192, 0, 2, 3].into()],
                mtu: None,
                name_servers: vec![[192, 0, 2, 53].into()],
                domains: vec!["example.org".into()],
                host_name: None,
            }
        );
    }

    #[test]
    fn x16_search_domains_packet_size_and_classless_routes_are_read() {
        let near = Route { destination: "198.51.100.0/24".parse().unwrap(), gateway: None };
        let far = |destination: &str, gateway: [u8; 4]| Route {
            destination: destination.parse().unwrap(),
            gateway: Some(gateway.into()),
        };
        let classless = vec![near, far("203.0.113.0/24", [192, 0, 2, 9]), far("0.0.0.0/0", [192, 0, 2, 1])];
        let none = Vec::new();
        let text = "198.51.100.0/24 0.0.0.0 203.0.113.7/24 192.0.2.9 0.0.0.0/0 192.0.2.1";
        for (variables, routes, mtu, domains) in [
            (vec![("staticroutes", text), ("mtu", "1400")], &classless, Some(1400), &[][..]),
            (
                vec![("msstaticroutes", text), ("search", "a.example b")],
                &classless,
                None,
                &["a.example", "b"],
            ),
            (vec![("staticroutes", text), ("msstaticroutes", "0.0.0.0/0 192.0.2.7")], &classless, None, &[]),
            (vec![("staticroutes", "198.51.100.0/24")], &none, None, &[]),
            (vec![("staticroutes", ""), ("mtu", "many")], &none, None, &[]),
            (vec![("search", "b"), ("domain", "a.example")], &none, None, &["b"]),
        ] {
            let given = [("interface", "eth0"), ("ip", "192.0.2.15"), ("router", "192.0.2.2")];
            let read = |name: &str| {
                let mut all = given.iter().chain(&variables);
                all.find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let lease = super::read(read).unwrap();
            assert_eq!((&lease.classless, lease.mtu), (routes, mtu), "{variables:?}");
            assert_eq!(lease.domains, domains, "{variables:?}");
        }
    }

    #[test]
    fn a04_what_cannot_be_read_of_a_lease_is_left_out_alone() {
        let read = |variables: &[(&str, &str)]| {
            let found = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            super::read(found)
        };
        assert!(read(&[("ip", "192.0.2.15")]).unwrap_err().to_string().contains("interface"));
        for ip in ["", "here", "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"] {
            let lease = read(&[("interface", "eth0"), ("ip", ip), ("dns", "192.0.2.53")]).unwrap();
            assert_eq!((lease.address, lease.name_servers.len()), (None, 1), "{ip}");
        }
        let way = Route::default_through([192, 0, 2, 1].into());
        for text in ["0.0.0.0/99 192.0.2.9 0.0.0.0/0 192.0.2.1", "0.0.0.0/0 192.0.2.1 198.51.100.0/24 there"]
        {
            let lease = read(&[("interface", "eth0"), ("staticroutes", text)]).unwrap();
            assert_eq!(lease.classless, [way], "{text}");
        }
        let lease = read(&[("interface", "eth0"), ("router", "there 192.0.2.2"), ("mtu", "-1")]).unwrap();
        assert_eq!((lease.routers, lease.mtu), (vec![[192, 0, 2, 2].into()], None));
    }

    #[test]
    fn the_network_is_given_by_length_or_mask_and_a_mask_with_holes_is_none() {
        for (mask, subnet, expected) in [
            (Some("16"), Some("255.255.255.0"), 16),
            (None, Some("255.255.255.0"), 24),
            (None, Some("0.0.0.0"), 0),
            (Some("99"), Some("255.255.255.0"), 24),
            (Some("99"), None, 32),
            (None, None, 32),
            (None, Some("255.0.255.0"), 32),
            (None, Some("0.0.0.255"), 32),
        ] {
            let read = |name: &str| match name {
                "interface" => Some("eth0"),
                "ip" => Some("192.0.2.15"),
                "mask" => mask,
                "subnet" => subnet,
                _ => None,
            };
            let lease = super::read(|name| read(name).map(str::to_owned)).unwrap();
            assert_eq!(lease.address.unwrap().prefix_len(), expected, "{mask:?} {subnet:?}");
        }
    }
}
