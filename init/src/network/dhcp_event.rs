//! What the DHCP client reports: an address to use, or one to give up.
//!
//! The client starts this program with the event as its argument and the lease in environment
//! variables.

use super::held::Held;
use super::name_servers::{self, Source};
use super::packet_size;
use crate::logging;
use anyhow::Context;
use farrier_linux::dhcp;
use farrier_linux::netlink::{self, Lifetime, Netlink, Route};
use ipnet::{IpNet, Ipv4Net};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// Path of this role in the ramdisk.
pub const PROGRAM: &str = "/usr/libexec/farrier/dhcp-event";

/// Metric of the first interface's default route; those of later ones are higher.
const BASE_METRIC: u32 = 100;

/// A lease of an address.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    interface: String,
    address: Ipv4Net,
    routes: Vec<Route>,
    mtu: Option<u32>,
    name_servers: Vec<IpAddr>,
    domains: Vec<String>,
    host_name: Option<String>,
}

/// Acts on an event.
///
/// # Errors
///
/// The lease lacks something, or the kernel refuses it.
pub fn apply(event: Option<&str>) -> anyhow::Result<()> {
    logging::start(logging::Target::Consoles);
    let root = Path::new("/");
    let outcome = match event {
        Some("bound" | "renew") => {
            Lease::read(|name| std::env::var(name).ok()).and_then(|lease| lease.apply(root))
        }
        Some("deconfig") => {
            std::env::var("interface").map_or(Ok(()), |interface| deconfigure(root, &interface))
        }
        // A missing answer is reported once for all links by the agent, which waits for it.
        _ => Ok(()),
    };
    outcome.inspect_err(|error| tracing::error!("DHCP {}: {error:#}", event.unwrap_or_default()))
}

impl Lease {
    fn read(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let required = |name: &str| variable(name).with_context(|| format!("the lease has no {name}"));
        let addresses = |name: &str| -> Vec<IpAddr> {
            let text = variable(name).unwrap_or_default();
            text.split_whitespace().filter_map(|address| address.parse().ok()).collect()
        };
        let words = |name: &str| -> Vec<String> {
            variable(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        };
        let classless = |name: &str| variable(name).and_then(|text| classless_routes(&text));
        let by_router = || addresses("router").first().copied().map(Route::default_through);
        let search = words("search");
        let address = required("ip")?.parse().context("the lease's address cannot be read")?;
        let length = variable("mask").and_then(|text| text.parse().ok());
        let mask = variable("subnet").and_then(|text| text.parse().ok());
        let with_length = length.and_then(|length| Ipv4Net::new(address, length).ok());
        Ok(Self {
            interface: required("interface")?,
            address: with_length.map_or_else(|| network(address, mask), Ok)?,
            // They stand in for the router (RFC 3442).
            routes: classless("staticroutes")
                .or_else(|| classless("msstaticroutes"))
                .unwrap_or_else(|| by_router().into_iter().collect()),
            mtu: variable("mtu").and_then(|text| text.parse().ok()),
            name_servers: addresses("dns"),
            domains: if search.is_empty() { words("domain") } else { search },
            host_name: variable("hostname").filter(|name| !name.is_empty()),
        })
    }

    /// A lease as a server granted it.
    ///
    /// # Errors
    ///
    /// Its mask is none.
    pub fn granted(interface: &str, lease: &dhcp::Lease) -> anyhow::Result<Self> {
        Ok(Self {
            interface: interface.to_owned(),
            address: network(lease.address, lease.mask)?,
            routes: lease.routes.clone(),
            mtu: lease.mtu,
            name_servers: lease.name_servers.iter().copied().map(IpAddr::from).collect(),
            domains: lease.domains.clone(),
            host_name: lease.host_name.clone().filter(|name| !name.is_empty()),
        })
    }

    /// Uses it instead of the one before, and keeps what concerns the whole system below `root`.
    ///
    /// # Errors
    ///
    /// The kernel refuses the address, a route or the name, or the name servers cannot be kept.
    pub fn apply(&self, root: &Path) -> anyhow::Result<()> {
        let (netlink, interface) = (Netlink::open()?, &self.interface);
        let metric = metric(interface)?;
        let before = Held::read(root, interface);
        let is_own = before.address == Some(self.address) || !has_address(interface, self.address)?;
        let held = Held { address: is_own.then_some(self.address), routes: self.routes.clone() };
        held.keep(root, interface).context("the lease cannot be kept")?;
        before.without(&held).release(&netlink, interface, metric)?;
        if let Some(mtu) = self.mtu
            && let Err(error) = packet_size::by_lease(&netlink, root, interface, mtu)
        {
            tracing::warn!(interface, %error, "packets cannot have the {mtu} bytes that the DHCP server says");
        }
        // The client itself says when the lease ends.
        netlink
            .add_address(interface, self.address.into(), Lifetime::ENDLESS)
            .with_context(|| format!("{interface} cannot have the address {}", self.address))?;
        // Of several addresses in one network the first one would take the others with it.
        fs::write(format!("/proc/sys/net/ipv4/conf/{interface}/promote_secondaries"), "1").ok();
        for route in &self.routes {
            netlink.add_route(interface, *route, metric).with_context(|| {
                format!("the network {} cannot be reached over {interface}", route.destination)
            })?;
        }
        if let Some(name) = &self.host_name {
            nix::unistd::sethostname(name).with_context(|| format!("the host name cannot be {name}"))?;
        }
        tracing::info!(interface, address = %self.address, "address by DHCP");
        name_servers::remember(root, Source::Lease(interface), &self.name_servers, &self.domains)
            .context("the name servers cannot be kept")
    }
}

/// A lease that ended takes its address and its routes with it, and nothing else; at the start there is none.
///
/// # Errors
///
/// The kernel's refusal.
pub fn deconfigure(root: &Path, interface: &str) -> anyhow::Result<()> {
    let held = Held::read(root, interface);
    if let Some(address) = held.address {
        tracing::warn!(interface, %address, "the DHCP lease ended");
    }
    if held != Held::default() {
        held.release(&Netlink::open()?, interface, metric(interface)?)?;
    }
    Held::forget(root, interface);
    Ok(())
}

fn metric(interface: &str) -> anyhow::Result<u32> {
    Ok(BASE_METRIC + nix::net::if_::if_nametoindex(interface)?)
}

fn has_address(interface: &str, address: Ipv4Net) -> anyhow::Result<bool> {
    let is_same = |found: &netlink::InterfaceAddress| {
        found.interface == interface
            && found.address == address.addr()
            && found.prefix == address.prefix_len()
    };
    Ok(netlink::addresses()?.iter().any(is_same))
}

/// Networks, each with its gateway, which is `0.0.0.0` for a network on the link itself.
fn classless_routes(text: &str) -> Option<Vec<Route>> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (pairs, rest) = words.as_chunks::<2>();
    let route = |[destination, gateway]: &[&str; 2]| {
        let destination: IpNet = destination.parse().ok()?;
        let gateway: IpAddr = gateway.parse().ok()?;
        let gateway = (!gateway.is_unspecified()).then_some(gateway);
        Some(Route { destination: destination.trunc(), gateway })
    };
    let routes = pairs.iter().map(route).collect::<Option<Vec<_>>>()?;
    (rest.is_empty() && !routes.is_empty()).then_some(routes)
}

/// An address in its network, which without a mask has no other host.
fn network(address: Ipv4Addr, mask: Option<Ipv4Addr>) -> anyhow::Result<Ipv4Net> {
    let mask = mask.unwrap_or(Ipv4Addr::BROADCAST);
    Ipv4Net::with_netmask(address, mask).with_context(|| {
        format!("the DHCP server gives {address} the mask {mask}, which is none: correct it")
    })
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
            Lease::read(read).unwrap(),
            Lease {
                interface: "eth0".into(),
                address: "192.0.2.15/24".parse().unwrap(),
                routes: vec![Route::default_through([192, 0, 2, 2].into())],
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
        let by_router = vec![far("0.0.0.0/0", [192, 0, 2, 2])];
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
            (vec![("staticroutes", "198.51.100.0/24")], &by_router, None, &[]),
            (vec![("staticroutes", ""), ("mtu", "many")], &by_router, None, &[]),
            (vec![("search", "b"), ("domain", "a.example")], &by_router, None, &["b"]),
        ] {
            let given = [("interface", "eth0"), ("ip", "192.0.2.15"), ("router", "192.0.2.2")];
            let read = |name: &str| {
                let mut all = given.iter().chain(&variables);
                all.find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let lease = Lease::read(read).unwrap();
            assert_eq!((&lease.routes, lease.mtu), (routes, mtu), "{variables:?}");
            assert_eq!(lease.domains, domains, "{variables:?}");
        }
    }

    #[test]
    fn what_a_lease_lacks_is_named() {
        let text = Lease::read(|name| (name == "interface").then(|| "eth0".into())).unwrap_err().to_string();
        assert!(text.contains("ip"), "{text}");
    }

    #[test]
    fn the_network_is_given_by_length_or_mask_and_a_mask_with_holes_is_none() {
        for (mask, subnet, expected) in [
            (Some("16"), Some("255.255.255.0"), Some(16)),
            (None, Some("255.255.255.0"), Some(24)),
            (None, Some("0.0.0.0"), Some(0)),
            (Some("99"), None, Some(32)),
            (None, None, Some(32)),
            (None, Some("255.0.255.0"), None),
            (Some("99"), Some("0.0.0.255"), None),
        ] {
            let read = |name: &str| match name {
                "interface" => Some("eth0"),
                "ip" => Some("192.0.2.15"),
                "mask" => mask,
                "subnet" => subnet,
                _ => None,
            };
            let lease = Lease::read(|name| read(name).map(str::to_owned));
            assert_eq!(lease.as_ref().map(|lease| lease.address.prefix_len()).ok(), expected, "{lease:?}");
            let Err(error) = lease else { continue };
            assert!(error.to_string().contains("192.0.2.15 the mask "), "{error}");
        }
    }
}
