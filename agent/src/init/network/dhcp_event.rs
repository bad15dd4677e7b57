//! What the DHCP client reports: an address to use, or one to give up.
//!
//! The client starts this program with the event as its argument and the lease in environment
//! variables.

use super::name_servers::{self, Source};
use crate::logging;
use anyhow::Context;
use farrier_linux::dhcp;
use farrier_linux::netlink::{Lifetime, Netlink, Route};
use ipnet::{IpNet, Ipv4Net};
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
    routers: Vec<IpAddr>,
    name_servers: Vec<IpAddr>,
    host_name: Option<String>,
}

/// Acts on an event.
///
/// # Errors
///
/// The lease lacks something, or the kernel refuses it.
pub fn apply(event: Option<&str>) -> anyhow::Result<()> {
    logging::start(logging::Target::Consoles);
    let outcome = match event {
        Some("bound" | "renew") => {
            Lease::read(|name| std::env::var(name).ok()).and_then(|lease| lease.apply(Path::new("/")))
        }
        Some("deconfig") => std::env::var("interface").map_or(Ok(()), |interface| deconfigure(&interface)),
        // A missing answer is reported once for all links by the agent, which waits for it.
        _ => Ok(()),
    };
    outcome.inspect_err(|error| tracing::error!("DHCP {}: {error:#}", event.unwrap_or_default()))
}

impl Lease {
    fn read(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let required = |name: &str| variable(name).with_context(|| format!("the lease has no {name}"));
        let list = |name: &str| {
            let text = variable(name).unwrap_or_default();
            text.split_whitespace().filter_map(|address| address.parse().ok()).collect()
        };
        let address = required("ip")?.parse().context("the lease's address cannot be read")?;
        let length = variable("mask").and_then(|text| text.parse().ok());
        let mask = variable("subnet").and_then(|text| text.parse().ok());
        let with_length = length.and_then(|length| Ipv4Net::new(address, length).ok());
        Ok(Self {
            interface: required("interface")?,
            address: with_length.map_or_else(|| network(address, mask), Ok)?,
            routers: list("router"),
            name_servers: list("dns"),
            host_name: variable("hostname").filter(|name| !name.is_empty()),
        })
    }

    /// A lease as a server granted it.
    ///
    /// # Errors
    ///
    /// Its mask is none.
    pub fn granted(interface: &str, lease: &dhcp::Lease) -> anyhow::Result<Self> {
        let all = |addresses: &[Ipv4Addr]| addresses.iter().copied().map(IpAddr::from).collect();
        Ok(Self {
            interface: interface.to_owned(),
            address: network(lease.address, lease.mask)?,
            routers: all(&lease.routers),
            name_servers: all(&lease.name_servers),
            host_name: lease.host_name.clone().filter(|name| !name.is_empty()),
        })
    }

    /// Uses it, and keeps what concerns the whole system below `root`.
    ///
    /// # Errors
    ///
    /// The kernel refuses the address, the router or the name, or the name servers cannot be kept.
    pub fn apply(&self, root: &Path) -> anyhow::Result<()> {
        let netlink = Netlink::open()?;
        // The client itself says when the lease ends.
        netlink
            .add_address(&self.interface, self.address.into(), Lifetime::ENDLESS)
            .with_context(|| format!("{} cannot have the address {}", self.interface, self.address))?;
        if let Some(router) = self.routers.first() {
            let metric = BASE_METRIC + nix::net::if_::if_nametoindex(self.interface.as_str())?;
            netlink
                .add_route(&self.interface, Route::default_through(*router), metric)
                .with_context(|| format!("{} cannot have the router {router}", self.interface))?;
        }
        if let Some(name) = &self.host_name {
            nix::unistd::sethostname(name).with_context(|| format!("the host name cannot be {name}"))?;
        }
        tracing::info!(interface = self.interface, address = %self.address, "address by DHCP");
        name_servers::remember(root, Source::Lease(&self.interface), &self.name_servers)
            .context("the name servers cannot be kept")
    }
}

/// A lease that ended takes its address with it; at the start there is none.
///
/// # Errors
///
/// The kernel's refusal.
pub fn deconfigure(interface: &str) -> anyhow::Result<()> {
    let netlink = Netlink::open()?;
    for found in farrier_linux::netlink::addresses()? {
        if found.interface == interface && found.address.is_ipv4() {
            tracing::warn!(interface, address = %found.address, "the DHCP lease ended");
            netlink.remove_address(interface, IpNet::new(found.address, found.prefix)?)?;
        }
    }
    Ok(())
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
                _ => return None,
            };
            Some(value.to_owned())
        };
        assert_eq!(
            Lease::read(read).unwrap(),
            Lease {
                interface: "eth0".into(),
                address: "192.0.2.15/24".parse().unwrap(),
                routers: vec![[192, 0, 2, 2].into(), [192, 0, 2, 3].into()],
                name_servers: vec![[192, 0, 2, 53].into()],
                host_name: None,
            }
        );
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
