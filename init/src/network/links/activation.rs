//! Setting links up, again where a card refuses for now, and what they have once they are up.

use super::super::arp;
use super::super::interface::mac_of;
use super::super::plan::PlannedLink;
use super::Links;
use farrier_linux::netlink::{Lifetime, Netlink};
use ipnet::IpNet;
use rand::Rng;
use std::io;
use std::time::{Duration, Instant};

/// Metric of the routes of the first interface; those of later ones are higher. Leases come after.
const BASE_METRIC: u32 = 50;
/// First pause before a link is set up again that the kernel would not set up; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest of these pauses.
const MAX_PAUSE: Duration = Duration::from_secs(30);

impl Links {
    /// Sets a link up, then gives it the addresses and routes that it is planned to have. A card may refuse for
    /// now, as one whose firmware is not ready.
    pub(super) fn set_up(&mut self, name: &str) {
        let Err(error) = Netlink::open().and_then(|netlink| netlink.set_up(name)) else {
            if self.down.remove(name).is_some() {
                tracing::info!(interface = name, "the link is set up");
            }
            return self.add_addresses(name);
        };
        let pause = match self.down.get(name) {
            Some((_, pause)) => (*pause * 2).min(MAX_PAUSE),
            None => {
                tracing::error!(interface = name, %error, "the link cannot be set up, trying again");
                FIRST_PAUSE
            }
        };
        let jitter = rand::rng().random_range(0.8..1.2);
        self.down.insert(name.to_owned(), (Instant::now() + pause.mul_f64(jitter), pause));
    }

    /// Tries those again whose pause is over.
    pub(super) fn set_up_again(&mut self) {
        let now = Instant::now();
        let is_due = |(name, (due, _)): (&String, &(Instant, Duration))| (*due <= now).then(|| name.clone());
        for name in self.down.iter().filter_map(is_due).collect::<Vec<_>>() {
            self.set_up(&name);
        }
    }

    fn add_addresses(&self, name: &str) {
        let is_made = |link: &&PlannedLink| self.made.get(&link.name).is_some_and(|made| made == name);
        let Some(link) = self.plan.links.iter().find(is_made) else { return };
        for address in &link.addresses {
            tell(name, &format!("the address {address} cannot be had"), |netlink| {
                netlink.add_address(name, *address, Lifetime::ENDLESS)
            });
            tracing::info!(interface = name, %address, "address by {}", self.origin);
            if let (IpNet::V4(address), Some(mac)) = (address, mac_of(name)) {
                // IPv6 has the kernel ask.
                arp::ask(name, mac, address.addr(), self.conflicts.0.clone());
            }
        }
        let metric = BASE_METRIC + nix::net::if_::if_nametoindex(name).unwrap_or_default();
        for route in &link.routes {
            tell(name, &format!("the network {} cannot be reached over it", route.destination), |netlink| {
                netlink.add_route(name, *route, metric)
            });
        }
    }
}

/// Asks the kernel for something of a link, and tells when it refuses.
pub(super) fn tell(name: &str, what: &str, ask: impl FnOnce(&Netlink) -> io::Result<()>) {
    if let Err(error) = Netlink::open().and_then(|netlink| ask(&netlink)) {
        tracing::error!(interface = name, "{what}: {error}");
    }
}
