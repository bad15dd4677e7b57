//! What the kernel has of the DHCP lease of an interface: its end takes away just that, whatever else the
//! interface was given.

use farrier_linux::netlink::{Netlink, Route};
use ipnet::Ipv4Net;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One file for each interface, below the root directory: the events of a client are processes of their own.
const DIRECTORY: &str = "run/farrier/leases";
/// First words of its lines.
const ADDRESS: &str = "address";
const ROUTE: &str = "route";

/// An address and routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseAddresses {
    /// The address, unless the interface had it before the lease came.
    pub address: Option<Ipv4Net>,
    /// Routes, the default one among them.
    pub routes: Vec<Route>,
}

impl LeaseAddresses {
    /// What an interface holds; nothing when nothing was kept.
    pub fn read(root: &Path, interface: &str) -> Self {
        let text = fs::read_to_string(file(root, interface)).unwrap_or_default();
        let mut held = Self::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next().unwrap_or_default(), words.next()) {
                (Some(ADDRESS), address, None) => held.address = address.parse().ok(),
                (Some(ROUTE), destination, gateway) => {
                    let gateway = gateway.and_then(|gateway| gateway.parse().ok());
                    held.routes
                        .extend(destination.parse().map(|destination| Route { destination, gateway }).ok());
                }
                _ => {}
            }
        }
        held
    }

    /// Keeps it for later events.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn keep(&self, root: &Path, interface: &str) -> io::Result<()> {
        let address = self.address.map(|address| format!("{ADDRESS} {address}\n"));
        let routes = self.routes.iter().map(|route| match route.gateway {
            Some(gateway) => format!("{ROUTE} {} {gateway}\n", route.destination),
            None => format!("{ROUTE} {}\n", route.destination),
        });
        fs::create_dir_all(root.join(DIRECTORY))?;
        fs::write(file(root, interface), address.into_iter().chain(routes).collect::<String>())
    }

    /// Forgets what an interface holds, which others have taken from it.
    pub fn forget(root: &Path, interface: &str) {
        // There may have been no lease.
        fs::remove_file(file(root, interface)).ok();
    }

    /// What this has and a newer lease has not.
    pub fn without(self, newer: &Self) -> Self {
        Self {
            address: self.address.filter(|address| newer.address != Some(*address)),
            routes: self.routes.into_iter().filter(|route| !newer.routes.contains(route)).collect(),
        }
    }

    /// Takes it from an interface. Routes have gone already with a link that is down.
    ///
    /// # Errors
    ///
    /// The kernel's refusal to remove the address.
    pub fn release(&self, netlink: &Netlink, interface: &str, metric: u32) -> io::Result<()> {
        for route in &self.routes {
            if let Err(error) = netlink.remove_route(interface, *route, metric) {
                tracing::debug!(interface, %error, "no route to {} to be removed", route.destination);
            }
        }
        match self.address.map(|address| netlink.remove_address(interface, address.into())) {
            // Whoever cleared the interface was faster.
            Some(Err(error)) if error.kind() == io::ErrorKind::AddrNotAvailable => Ok(()),
            outcome => outcome.unwrap_or(Ok(())),
        }
    }
}

fn file(root: &Path, interface: &str) -> PathBuf {
    root.join(DIRECTORY).join(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x17_what_was_kept_is_read_again_and_what_changed_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(LeaseAddresses::read(root.path(), "eth0"), LeaseAddresses::default());
        let near = Route { destination: "198.51.100.0/24".parse().unwrap(), gateway: None };
        let default = Route::default_through([192, 0, 2, 1].into());
        let held =
            LeaseAddresses { address: Some("192.0.2.15/24".parse().unwrap()), routes: vec![near, default] };
        for held in [&held, &LeaseAddresses { address: None, ..held.clone() }, &LeaseAddresses::default()] {
            held.keep(root.path(), "eth0").unwrap();
            assert_eq!(LeaseAddresses::read(root.path(), "eth0"), *held);
        }
        let newer = LeaseAddresses { address: held.address, routes: vec![default] };
        assert_eq!(held.clone().without(&newer), LeaseAddresses { address: None, routes: vec![near] });
        assert_eq!(held.clone().without(&LeaseAddresses::default()), held);
        held.keep(root.path(), "eth0").unwrap();
        LeaseAddresses::forget(root.path(), "eth0");
        assert_eq!(LeaseAddresses::read(root.path(), "eth0"), LeaseAddresses::default());
    }
}
