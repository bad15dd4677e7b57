//! What the network of the ramdisk is to be: links, addresses, routes, name servers.
//!
//! A plan is only a description; whoever reads one makes it whole with [`Plan::checked`], which refuses
//! what contradicts itself, and [`super::links`] makes it true.

use crate::mac_address::MacAddress;
use farrier_linux::netlink::{Bond, BondMode, Route};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Numbers a VLAN can have (IEEE 802.1Q).
pub const VLAN_NUMBERS: std::ops::RangeInclusive<u16> = 1..=4094;

/// The network of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Links with what they get; those that others stand on come first in a checked plan.
    pub links: Vec<PlannedLink>,
    /// Servers to ask for names, before those that DHCP and routers tell.
    pub name_servers: Vec<IpAddr>,
    /// Name of the machine.
    pub host_name: Option<String>,
    /// What the wired links get that are not in the plan.
    pub others: Automatic,
}

/// A link and what it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLink {
    /// What the plan calls it. Bonds and bridges are made under this name.
    pub name: String,
    /// Where it comes from.
    pub kind: Kind,
    /// Largest packet in bytes.
    pub mtu: Option<u32>,
    /// Hardware address to give it.
    pub mac: Option<MacAddress>,
    /// Addresses that do not change.
    pub addresses: Vec<IpNet>,
    /// Ways that lead over it.
    pub routes: Vec<Route>,
    /// The settings that it must find out by itself.
    pub automatic: Automatic,
}

/// Where a link comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A network card.
    Card(Which),
    /// Made for one VLAN of another link.
    Vlan {
        /// Number of the VLAN.
        number: u16,
        /// Name of the other link.
        parent: String,
    },
    /// Made of several links that act as one.
    Bond(Bond, Vec<String>),
    /// A switch between several links.
    Bridge(Vec<String>),
}

/// How a network card is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// By its permanent hardware address.
    Mac(MacAddress),
    /// By the kernel's name.
    Name(String),
    /// The first one that has a carrier.
    Any,
}

/// What a link finds out by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Automatic {
    /// Whether to ask for an IPv4 address.
    pub dhcpv4: bool,
    /// Where IPv6 comes from.
    pub ipv6: Ipv6,
}

/// Where the IPv6 addresses of a link come from, beside those in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ipv6 {
    /// Nowhere, and routers are not listened to.
    Fixed,
    /// From what the routers announce, and from DHCP if they say so.
    ByRouter,
    /// From DHCP, whatever routers say; the routes come from them.
    Dhcp,
}

/// A plan contradicts itself.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two links of one name.
    #[error("the link {0} is described twice")]
    NameTwice(String),
    /// Two links that are one card.
    #[error("the links {0} and {1} are the same network card")]
    CardTwice(String, String),
    /// The same address on two links, or twice on one.
    #[error("the address {address} is given twice, to {first} and {second}")]
    AddressTwice {
        /// The address.
        address: IpAddr,
        /// A link.
        first: String,
        /// The same or another one.
        second: String,
    },
    /// A link stands on one that there is not.
    #[error("the link {link} needs {part}, which is not described")]
    Unknown {
        /// The link.
        link: String,
        /// What it needs.
        part: String,
    },
    /// A link is in two bonds or bridges.
    #[error("the link {0} is a port of two others")]
    PortTwice(String),
    /// Links stand on each other.
    #[error("the link {0} stands on itself")]
    Circle(String),
    /// A VLAN has a number between 1 and 4094.
    #[error("the link {link} has the VLAN number {number}; it can be 1 to 4094")]
    VlanNumber {
        /// The link.
        link: String,
        /// What was said.
        number: u16,
    },
}

impl Automatic {
    /// Everything a link can find out.
    pub const ALL: Self = Self { dhcpv4: true, ipv6: Ipv6::ByRouter };
    /// Nothing.
    pub const NOTHING: Self = Self { dhcpv4: false, ipv6: Ipv6::Fixed };
}

/// Sets a property of a bond by the name that the kernel's documentation gives it.
///
/// # Errors
///
/// What the value has to be.
pub fn set_bond_option(bond: &mut Bond, name: &str, value: &str) -> Result<(), &'static str> {
    let milliseconds = || value.parse().map_err(|_| "a number of milliseconds");
    match name {
        // Ironic's own schema calls it by the name of another standard.
        "mode" if value == "802.1ad" => bond.mode = BondMode::Ieee8023Ad,
        "mode" => bond.mode = value.parse().map_err(|_| "a mode such as 802.3ad or active-backup")?,
        "miimon" => bond.miimon = milliseconds()?,
        "updelay" => bond.up_delay = milliseconds()?,
        "downdelay" => bond.down_delay = milliseconds()?,
        "lacp_rate" => bond.lacp_rate = Some(value.parse().map_err(|_| "slow or fast")?),
        "xmit_hash_policy" => {
            bond.hash_policy = Some(value.parse().map_err(|_| "a policy such as layer2 or layer3+4")?);
        }
        _ => tracing::warn!("the agent ignores bond property {name}: it is unknown"),
    }
    Ok(())
}

/// An address in its network, whose size is given as a mask or as the length of the prefix.
pub fn with_mask(address: IpAddr, mask: &str) -> Option<IpNet> {
    match mask.parse::<u8>() {
        Ok(length) => IpNet::new(address, length).ok(),
        Err(_) => IpNet::with_netmask(address, mask.parse().ok()?).ok(),
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mac(mac) => mac.fmt(formatter),
            Self::Name(name) => formatter.write_str(name),
            Self::Any => formatter.write_str("any network card with a carrier"),
        }
    }
}

impl PlannedLink {
    /// A link that gets nothing yet.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            mtu: None,
            mac: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            automatic: Automatic::NOTHING,
        }
    }

    /// Names of the links that it bundles.
    pub fn ports(&self) -> &[String] {
        match &self.kind {
            Kind::Bond(_, ports) | Kind::Bridge(ports) => ports,
            Kind::Card(_) | Kind::Vlan { .. } => &[],
        }
    }

    /// Names of the links that it stands on.
    pub fn parts(&self) -> &[String] {
        match &self.kind {
            Kind::Vlan { parent, .. } => std::slice::from_ref(parent),
            _ => self.ports(),
        }
    }
}

impl Plan {
    /// Every wired link finds out everything by itself.
    pub fn automatic() -> Self {
        Self { links: Vec::new(), name_servers: Vec::new(), host_name: None, others: Automatic::ALL }
    }

    /// The link of that name.
    pub fn link(&self, name: &str) -> Option<&PlannedLink> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Leaves out the links whose parts are not described, and those parts of bonds and bridges that still have
    /// others. Returns what was left out.
    pub fn leave_out_unsupported(&mut self) -> Vec<PlanError> {
        let mut faults = Vec::new();
        loop {
            let names: BTreeSet<String> = self.links.iter().map(|link| link.name.clone()).collect();
            let before = faults.len();
            for link in &mut self.links {
                let name = link.name.clone();
                if let Kind::Bond(_, ports) | Kind::Bridge(ports) = &mut link.kind
                    && ports.iter().any(|port| names.contains(port))
                {
                    ports.retain(|port| {
                        let is_there = names.contains(port);
                        if !is_there {
                            faults.push(PlanError::Unknown { link: name.clone(), part: port.clone() });
                        }
                        is_there
                    });
                }
            }
            self.links.retain(|link| {
                let missing = link.parts().iter().find(|part| !names.contains(*part));
                faults.extend(
                    missing.map(|part| PlanError::Unknown { link: link.name.clone(), part: part.clone() }),
                );
                missing.is_none()
            });
            if faults.len() == before {
                return faults;
            }
        }
    }

    /// The plan with its links in the order in which they can be made, and each able to carry the packets
    /// of those that stand on it.
    ///
    /// # Errors
    ///
    /// [`PlanError`] naming the link.
    pub fn checked(mut self) -> Result<Self, PlanError> {
        self.require_unique()?;
        self.require_distinct_addresses()?;
        self.require_parts()?;
        self.links = in_order(std::mem::take(&mut self.links))?;
        self.raise_mtu();
        Ok(self)
    }

    fn require_unique(&self) -> Result<(), PlanError> {
        let mut names = BTreeSet::new();
        let mut cards: BTreeMap<&Which, &str> = BTreeMap::new();
        for link in &self.links {
            if !names.insert(&link.name) {
                return Err(PlanError::NameTwice(link.name.clone()));
            }
            if let Kind::Card(which) = &link.kind
                && let Some(other) = cards.insert(which, &link.name)
            {
                return Err(PlanError::CardTwice(other.to_owned(), link.name.clone()));
            }
        }
        Ok(())
    }

    fn require_distinct_addresses(&self) -> Result<(), PlanError> {
        let mut owners: BTreeMap<IpAddr, &str> = BTreeMap::new();
        for link in &self.links {
            for address in link.addresses.iter().map(IpNet::addr) {
                if let Some(first) = owners.insert(address, &link.name) {
                    let (first, second) = (first.to_owned(), link.name.clone());
                    return Err(PlanError::AddressTwice { address, first, second });
                }
            }
        }
        Ok(())
    }

    fn require_parts(&self) -> Result<(), PlanError> {
        let mut ports = BTreeSet::new();
        for link in &self.links {
            if let Kind::Vlan { number, .. } = link.kind
                && !VLAN_NUMBERS.contains(&number)
            {
                return Err(PlanError::VlanNumber { link: link.name.clone(), number });
            }
            if let Some(part) = link.parts().iter().find(|part| self.link(part).is_none()) {
                return Err(PlanError::Unknown { link: link.name.clone(), part: part.clone() });
            }
            if let Some(port) = link.ports().iter().find(|port| !ports.insert(port.as_str())) {
                return Err(PlanError::PortTwice(port.clone()));
            }
        }
        Ok(())
    }

    /// A link cannot carry larger packets than what it stands on.
    fn raise_mtu(&mut self) {
        for position in (0..self.links.len()).rev() {
            let (below, link) = self.links.split_at_mut(position);
            let Some(link) = link.first() else { continue };
            for part in below.iter_mut().filter(|part| link.parts().contains(&part.name)) {
                part.mtu = part.mtu.max(link.mtu);
            }
        }
    }
}

/// Links after those they stand on.
fn in_order(links: Vec<PlannedLink>) -> Result<Vec<PlannedLink>, PlanError> {
    let mut ordered: Vec<PlannedLink> = Vec::new();
    let mut waiting = links;
    while !waiting.is_empty() {
        let is_ready =
            |link: &PlannedLink| link.parts().iter().all(|part| ordered.iter().any(|one| one.name == *part));
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_ready);
        if ready.is_empty() {
            let name = rest.first().map(|link| link.name.clone()).unwrap_or_default();
            return Err(PlanError::Circle(name));
        }
        ordered.extend(ready);
        waiting = rest;
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests;
