//! A DHCP lease, and using it. Each part stands for itself: what cannot be used is told and left out, and the
//! machine gets the rest (F42).

mod addresses;
mod gateways;

pub use addresses::LeaseAddresses;

use super::host_name;
use super::name_servers::{self, Source};
use super::packet_size;
use farrier_linux::dhcp;
use farrier_linux::netlink::{self, Lifetime, Netlink, Route};
use ipnet::Ipv4Net;
use std::fmt::Display;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// Metric of the first interface's default route; those of later ones are higher.
const BASE_METRIC: u32 = 100;

/// A lease as a server granted it.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    /// The interface that it is for.
    pub interface: String,
    /// Its address.
    pub address: Option<Ipv4Net>,
    /// Ways to networks, each with its gateway (RFC 3442).
    pub classless: Vec<Route>,
    /// Routers, the preferred one first.
    pub routers: Vec<Ipv4Addr>,
    /// Largest packet in bytes.
    pub mtu: Option<u32>,
    /// Who answers questions for names.
    pub name_servers: Vec<IpAddr>,
    /// Domains in which names are looked for.
    pub domains: Vec<String>,
    /// Name for this machine.
    pub host_name: Option<String>,
}

impl Lease {
    /// A lease that was granted to this process itself.
    pub fn granted(interface: &str, lease: &dhcp::Lease) -> Self {
        Self {
            interface: interface.to_owned(),
            address: address(lease.address, lease.mask),
            classless: lease.routes.clone(),
            routers: lease.routers.clone(),
            mtu: lease.mtu,
            name_servers: lease.name_servers.iter().copied().map(IpAddr::from).collect(),
            domains: lease.domains.clone(),
            host_name: lease.host_name.clone().filter(|name| !name.is_empty()),
        }
    }

    /// Uses it instead of the one before, and keeps what concerns the whole system below `root`.
    pub fn apply(&self, root: &Path) {
        if let (Some(netlink), Some(metric)) =
            (self.part("the kernel", Netlink::open()), self.part("the link", metric(&self.interface)))
        {
            self.configure(&netlink, root, metric);
        }
        if let Some(name) = &self.host_name {
            host_name::set(name);
        }
        if let Some(address) = self.address {
            tracing::info!(interface = self.interface, %address, "address by DHCP");
        }
        // Whoever sees them finds the rest done.
        let source = Source::Lease(&self.interface);
        let kept = name_servers::remember(root, source, &self.name_servers, &self.domains);
        self.part("the name servers", kept);
    }

    /// What the interface gets.
    fn configure(&self, netlink: &Netlink, root: &Path, metric: u32) {
        let interface = &self.interface;
        let routes =
            self.address.map(|own| gateways::usable(own, &self.classless, &self.routers)).unwrap_or_default();
        let before = LeaseAddresses::read(root, interface);
        let is_own = |address| {
            before.address == Some(address)
                || !self.part("the addresses", has_address(interface, address)).unwrap_or_default()
        };
        let held = LeaseAddresses { address: self.address.filter(|own| is_own(*own)), routes };
        self.part("the file of the lease", held.keep(root, interface));
        self.part("the end of the lease before", before.without(&held).release(netlink, interface, metric));
        if let Some(mtu) = self.mtu {
            let what = format!("the packet size of {mtu} bytes");
            self.part(what, packet_size::by_lease(netlink, root, interface, mtu));
        }
        if let Some(address) = self.address {
            // The client itself says when the lease ends.
            let added = netlink.add_address(interface, address.into(), Lifetime::ENDLESS);
            self.part(format!("the address {address}"), added);
        }
        // Of several addresses in one network the first one would take the others with it.
        fs::write(format!("/proc/sys/net/ipv4/conf/{interface}/promote_secondaries"), "1").ok();
        for route in &held.routes {
            let what = format!("the route to {}", route.destination);
            self.part(what, netlink.add_route(interface, *route, metric));
        }
    }

    /// A part of the lease; nothing where it failed, which is told.
    fn part<T, E: Display>(&self, what: impl Display, outcome: Result<T, E>) -> Option<T> {
        let tell = |error: &E| {
            tracing::error!(
                interface = self.interface,
                "DHCP: {what} cannot be used ({error}); the rest is applied"
            );
        };
        outcome.inspect_err(tell).ok()
    }
}

/// A lease that ended takes its address and its routes with it, and nothing else; at the start there is none.
///
/// # Errors
///
/// The kernel's refusal.
pub fn deconfigure(root: &Path, interface: &str) -> io::Result<()> {
    let held = LeaseAddresses::read(root, interface);
    if let Some(address) = held.address {
        tracing::warn!(interface, %address, "the DHCP lease ended");
    }
    if held != LeaseAddresses::default() {
        held.release(&Netlink::open()?, interface, metric(interface)?)?;
    }
    LeaseAddresses::forget(root, interface);
    Ok(())
}

/// An address in its network; one without a mask, or with one that is none, has no other host. Nothing where no
/// machine can have it.
pub fn address(address: Ipv4Addr, mask: Option<Ipv4Addr>) -> Option<Ipv4Net> {
    if address.octets()[0] == 0 || address.is_loopback() || address.is_multicast() || address.is_broadcast() {
        tracing::error!("the DHCP server sends the invalid address {address}: correct it");
        return None;
    }
    let masked = mask.map(|mask| Ipv4Net::with_netmask(address, mask));
    if let (Some(mask), Some(Err(_))) = (mask, &masked) {
        tracing::error!("the DHCP server sends the invalid mask {mask} for {address}: correct it");
    }
    Some(masked.and_then(Result::ok).unwrap_or_else(|| Ipv4Net::from(address)))
}

fn metric(interface: &str) -> io::Result<u32> {
    Ok(BASE_METRIC + nix::net::if_::if_nametoindex(interface)?)
}

fn has_address(interface: &str, address: Ipv4Net) -> io::Result<bool> {
    let is_same = |found: &netlink::InterfaceAddress| {
        found.interface == interface
            && found.address == address.addr()
            && found.prefix == address.prefix_len()
    };
    Ok(netlink::addresses()?.iter().any(is_same))
}

#[cfg(test)]
mod tests;
