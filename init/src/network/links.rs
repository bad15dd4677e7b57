//! Makes a plan true, link by link, as network cards appear.
//!
//! Nothing here waits: [`Links::settle`] does what can be done with the cards that are there and is called
//! again and again. When a card that the plan needs does not appear, or the kernel refuses a link, one
//! line says so; if nothing of the plan can be used, every card finds out by itself what it needs.

mod activation;

use super::host_name;
use super::infiniband;
use super::interface::{self, mac_of};
use super::ipv6::Listener;
use super::lease::LeaseAddresses;
use super::name_servers;
use super::packet_size;
use super::plan::{Automatic, Ipv6, Kind, Plan, PlannedLink, Which};
use super::source::Source;
use crate::events::Event;
use crate::mac_address::MacAddress;
use activation::tell;
use farrier_linux::netlink::Netlink;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long a card may take to appear after the one before it.
const PATIENCE: Duration = Duration::from_secs(15);

/// The links of this machine.
pub struct Links {
    plan: Plan,
    origin: &'static str,
    /// Below which files are kept.
    root: PathBuf,
    events: Sender<Event>,
    /// Wired links in the order of their appearance.
    present: Vec<String>,
    /// Their permanent hardware addresses, which are asked for once: there may be many links.
    macs: BTreeMap<String, MacAddress>,
    /// The kernel's names of planned links that are made, by their names in the plan.
    made: BTreeMap<String, String>,
    /// Kernel's names of ports that are attached.
    attached: BTreeSet<String>,
    /// Wired links outside of the plan that were seen to.
    others: BTreeSet<String>,
    /// Links that could not be set up yet: when that is tried again, and the pause before.
    down: BTreeMap<String, (Instant, Duration)>,
    /// Brings addresses of the plan that other machines have.
    conflicts: (Sender<Ipv4Addr>, Receiver<Ipv4Addr>),
    /// Tells the threads of [`Listener`] that the plan is another one.
    over: Arc<AtomicBool>,
    /// When cards that are not there yet are given up; nothing once that is told.
    deadline: Option<Instant>,
}

/// The kernel would not make a link.
#[derive(Debug, thiserror::Error)]
#[error("{link} cannot be made ({source}): is its kernel module in the ramdisk?")]
struct MakeError {
    link: String,
    #[source]
    source: io::Error,
}

impl Links {
    /// The links of a machine of which none has appeared; files are kept below `root`.
    pub fn new(root: &Path, source: Source, events: Sender<Event>) -> Self {
        if let Some(name) = &source.plan.host_name {
            host_name::set(name);
        }
        let servers = &source.plan.name_servers;
        if let Err(error) = name_servers::remember(root, name_servers::Source::Plan, servers, &[]) {
            tracing::error!(%error, "the name servers cannot be kept");
        }
        Self {
            plan: source.plan,
            origin: source.origin,
            root: root.to_owned(),
            events,
            present: Vec::new(),
            macs: BTreeMap::new(),
            made: BTreeMap::new(),
            attached: BTreeSet::new(),
            others: BTreeSet::new(),
            down: BTreeMap::new(),
            conflicts: channel(),
            over: Arc::default(),
            deadline: Some(Instant::now() + PATIENCE),
        }
    }

    /// A wired link is there, perhaps one that was made here.
    pub fn appeared(&mut self, name: String) {
        if !self.present.contains(&name) {
            self.macs.extend(mac_of(&name).map(|mac| (name.clone(), mac)));
            self.present.push(name);
            self.deadline = self.deadline.map(|_| Instant::now() + PATIENCE);
        }
    }

    /// Does what can be done now.
    pub fn settle(&mut self) {
        if let Err(error) = self.try_settle() {
            self.fall_back(&error.to_string());
        }
        self.see_to_others();
        self.set_up_again();
        self.look_for_duplicates();
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.deadline = None;
            self.give_up();
        }
    }

    fn try_settle(&mut self) -> Result<(), MakeError> {
        for link in self.plan.links.clone() {
            if !self.made.contains_key(&link.name)
                && let Some(name) = self.make(&link)?
            {
                self.made.insert(link.name.clone(), name.clone());
                self.configure(&link, &name);
            }
            self.attach_ports(&link)?;
        }
        Ok(())
    }

    /// The kernel's name of a link, once it is there.
    fn make(&self, link: &PlannedLink) -> Result<Option<String>, MakeError> {
        let (name, outcome) = match &link.kind {
            Kind::Card(which) => return Ok(self.card(which)),
            Kind::Vlan { number, parent } => {
                let Some(parent) = self.made.get(parent) else { return Ok(None) };
                let made = interface::add_vlan(parent, *number);
                return made
                    .map(Some)
                    .map_err(|source| MakeError { link: format!("{parent}.{number}"), source });
            }
            Kind::Bond(bond, _) => {
                let name = interface::usable_name(&link.name, "bond", self.position(link));
                let outcome = Netlink::open().and_then(|netlink| netlink.add_bond(&name, bond));
                (name, outcome)
            }
            Kind::Bridge(_) => {
                let name = interface::usable_name(&link.name, "bridge", self.position(link));
                let outcome = Netlink::open().and_then(|netlink| netlink.add_bridge(&name));
                (name, outcome)
            }
        };
        match outcome {
            // This process was started again, and the link is from the time before.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(MakeError { link: name, source: error })
            }
            _ => Ok(Some(name)),
        }
    }

    fn position(&self, link: &PlannedLink) -> usize {
        self.plan.links.iter().position(|one| one.name == link.name).unwrap_or_default()
    }

    fn card(&self, which: &Which) -> Option<String> {
        let is_free = |name: &&String| !self.made.values().any(|made| made == *name);
        let is_meant = |name: &&String| match which {
            Which::Mac(mac) => self.macs.get(*name) == Some(mac),
            Which::Name(wanted) => *name == wanted,
            Which::Any => interface::has_carrier(name) && interface::shared(name).is_none(),
        };
        self.present.iter().filter(is_free).find(is_meant).cloned()
    }

    /// Gives a link what it is to have. What fails is told, and the rest is done.
    fn configure(&mut self, link: &PlannedLink, name: &str) {
        if let Some(mac) = link.mac {
            tell(name, "the hardware address cannot be set", |netlink| {
                netlink.set_hardware_address(name, mac.0)
            });
        }
        if let Some(mtu) = link.mtu {
            tell(name, &format!("packets cannot have {mtu} bytes"), |netlink| {
                packet_size::by_plan(netlink, &self.root, name, mtu)
            });
        }
        if self.plan.links.iter().any(|other| other.ports().contains(&link.name)) {
            // A port has no life of its own, and is set up when it is attached.
            return;
        }
        self.start_automatic(name, link.automatic);
        self.set_up(name);
    }

    /// Starts what a link is to find out by itself. The link should not be up yet.
    fn start_automatic(&self, name: &str, automatic: Automatic) {
        let is_fixed = automatic.ipv6 == Ipv6::Fixed;
        // A kernel without IPv6 has nothing to be told.
        fs::write(format!("/proc/sys/net/ipv6/conf/{name}/accept_ra"), if is_fixed { "0" } else { "1" }).ok();
        if let (false, Some(mac)) = (is_fixed, mac_of(name)) {
            Listener::open(name, mac, automatic.ipv6, Arc::clone(&self.over)).start();
        }
        if automatic.dhcpv4 {
            match infiniband::Link::of(name, Arc::clone(&self.over)) {
                Some(link) => link.start(),
                // The receiver lives as long as PID 1.
                None => drop(self.events.send(Event::Dhcp(name.to_owned()))),
            }
        }
    }

    /// Attaches the ports of a bond or a bridge that are there.
    fn attach_ports(&mut self, link: &PlannedLink) -> Result<(), MakeError> {
        let Some(controller) = self.made.get(&link.name) else { return Ok(()) };
        for port in link.ports() {
            let Some(port) = self.made.get(port).filter(|port| !self.attached.contains(*port)) else {
                continue;
            };
            interface::attach(port, controller).map_err(|source| MakeError {
                link: format!("{controller} with {port} as its port"),
                source,
            })?;
            tracing::info!(interface = controller, port, "port attached");
            self.attached.insert(port.clone());
        }
        Ok(())
    }

    /// Wired links that the plan does not name. A VLAN among them was asked of the agent.
    fn see_to_others(&mut self) {
        let is_other =
            |name: &&String| !self.made.values().any(|made| made == *name) && !self.others.contains(*name);
        let names: Vec<String> = self.present.iter().filter(is_other).cloned().collect();
        for name in names {
            let automatic = match interface::shared(&name) {
                Some(reason) => {
                    tracing::warn!(interface = name, "this interface is not used: {reason}");
                    Automatic::NOTHING
                }
                None if interface::is_vlan(&name) => Automatic::ALL,
                None => self.plan.others,
            };
            self.start_automatic(&name, automatic);
            self.set_up(&name);
            self.others.insert(name);
        }
    }

    /// Gives up addresses that another machine has, and asks DHCP for others.
    fn look_for_duplicates(&mut self) {
        let is_ours = |link: &PlannedLink| link.addresses.iter().any(|address| address.addr().is_ipv6());
        let mut refused: Vec<IpAddr> = self.conflicts.1.try_iter().map(IpAddr::from).collect();
        if self.plan.links.iter().any(is_ours) {
            refused
                .extend(Netlink::open().and_then(|netlink| netlink.refused_addresses()).unwrap_or_default());
        }
        for address in refused {
            let Some((name, owned)) = self.owner(address) else { continue };
            tracing::error!(
                interface = name,
                "another machine has the address {address}: correct {}; DHCP and routers are asked instead",
                self.origin
            );
            if let Err(error) = Netlink::open().and_then(|netlink| netlink.remove_address(name, owned)) {
                tracing::warn!(interface = name, %error, "the address {address} cannot be removed");
            }
            self.start_automatic(name, Automatic::ALL);
        }
    }

    /// The kernel's name of the link for which the plan has an address, and the address with its network.
    fn owner(&self, address: IpAddr) -> Option<(&String, IpNet)> {
        self.plan.links.iter().find_map(|link| {
            let owned = link.addresses.iter().find(|owned| owned.addr() == address)?;
            Some((self.made.get(&link.name)?, *owned))
        })
    }

    /// The cards that have not appeared by now are missing.
    fn give_up(&mut self) {
        let missing: Vec<String> = self
            .plan
            .links
            .iter()
            .filter(|link| !self.made.contains_key(&link.name))
            .filter_map(|link| match &link.kind {
                Kind::Card(which) => Some(which.to_string()),
                _ => None,
            })
            .collect();
        if missing.is_empty() {
            return;
        }
        let there = self.macs.values().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let missing = format!("{} is not there (this machine has {there})", missing.join(", "));
        if self.is_of_use() {
            tracing::error!(
                "{} names a network card that is missing: {missing}; continuing without it",
                self.origin
            );
        } else {
            self.fall_back(&missing);
        }
    }

    /// Whether a link that packets can leave by has an address or finds one out.
    fn is_of_use(&self) -> bool {
        self.plan.links.iter().any(|link| {
            let has_address = !link.addresses.is_empty() || link.automatic != Automatic::NOTHING;
            has_address && self.leads_out(link)
        })
    }

    fn leads_out(&self, link: &PlannedLink) -> bool {
        let is_out = |name: &String| self.plan.link(name).is_some_and(|part| self.leads_out(part));
        self.made.contains_key(&link.name)
            && match &link.kind {
                Kind::Card(_) => true,
                Kind::Vlan { parent, .. } => is_out(parent),
                Kind::Bond(_, ports) | Kind::Bridge(ports) => ports.iter().any(is_out),
            }
    }

    /// Gives the plan up: every card is on its own.
    fn fall_back(&mut self, reason: &str) {
        tracing::error!(
            "{} cannot be used: {reason}; every link asks DHCP and its router instead",
            self.origin
        );
        self.unmake();
        let Source { plan, origin } = Source::automatic();
        (self.plan, self.origin) = (plan, origin);
    }

    /// Takes every link from what it has, and follows another plan.
    pub fn start_over(&mut self, source: Source) {
        tracing::info!("from now on the network is configured by {}", source.origin);
        self.over.store(true, Ordering::Relaxed);
        let names: Vec<String> = self.present.iter().chain(self.made.values()).cloned().collect();
        self.unmake();
        for name in names {
            // The receiver lives as long as PID 1.
            self.events.send(Event::NoDhcp(name.clone())).ok();
            LeaseAddresses::forget(&self.root, &name);
            packet_size::forget(&self.root, &name);
            if let Err(error) = interface::clear(&name) {
                tracing::debug!(interface = name, %error, "the link cannot be cleared");
            }
        }
        let (present, macs) = (std::mem::take(&mut self.present), std::mem::take(&mut self.macs));
        *self = Self { present, macs, ..Self::new(&self.root, source, self.events.clone()) };
    }

    /// Removes the links that were made here.
    fn unmake(&mut self) {
        for link in self.plan.links.iter().rev().filter(|link| !matches!(link.kind, Kind::Card(_))) {
            let Some(name) = self.made.remove(&link.name) else { continue };
            if let Err(error) = Netlink::open().and_then(|netlink| netlink.remove(&name)) {
                tracing::warn!(interface = name, %error, "the link cannot be removed");
            }
            self.present.retain(|present| *present != name);
        }
        self.made.clear();
        self.attached.clear();
        self.others.clear();
        self.down.clear();
    }
}

#[cfg(test)]
mod tests;
