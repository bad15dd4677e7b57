//! The network as a conductor describes it: OpenStack's `network_data.json`.
//!
//! The format is that of Nova's schema. What programs write beside it is understood too: prefix lengths
//! in place of masks, numbers as text, properties of bonds.

use super::plan::{self, Automatic, Ipv6, Kind, Plan, PlanError, PlannedLink, Which};
use crate::mac_address::MacAddress;
use farrier_linux::netlink::{Bond, Route};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::net::IpAddr;

/// The description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetworkDataError {
    /// It is not JSON of this form.
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has no possible value.
    #[error("{place} is {value:?}, which is not {expected}")]
    Field {
        /// Entry and field.
        place: String,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
    /// A field is missing.
    #[error("{place} is missing")]
    Missing {
        /// Entry and field.
        place: String,
    },
    /// Its parts do not go together.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

type Result<T> = std::result::Result<T, NetworkDataError>;

#[derive(Debug, Deserialize)]
struct NetworkData {
    #[serde(default, deserialize_with = "or_empty")]
    links: Vec<Link>,
    #[serde(default, deserialize_with = "or_empty")]
    networks: Vec<Network>,
    #[serde(default, deserialize_with = "or_empty")]
    services: Vec<Service>,
}

#[derive(Debug, Deserialize)]
struct Link {
    id: String,
    #[serde(rename = "type", default, deserialize_with = "or_empty")]
    kind: String,
    name: Option<String>,
    ethernet_mac_address: Option<String>,
    mtu: Option<Value>,
    vlan_id: Option<Value>,
    vlan_link: Option<String>,
    vlan_mac_address: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    bond_links: Vec<String>,
    bridge_links: Option<Vec<String>>,
    /// Properties of bonds among them.
    #[serde(flatten)]
    further: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Network {
    #[serde(default, deserialize_with = "or_empty")]
    id: String,
    link: String,
    #[serde(rename = "type")]
    kind: String,
    ip_address: Option<String>,
    netmask: Option<Value>,
    gateway: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    routes: Vec<RouteEntry>,
    #[serde(default, deserialize_with = "or_empty")]
    services: Vec<Service>,
}

#[derive(Debug, Deserialize)]
struct RouteEntry {
    network: String,
    netmask: Option<Value>,
    gateway: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    services: Vec<Service>,
}

#[derive(Debug, Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
    address: Option<String>,
}

/// Nothing, and an explicit null, are the same.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> std::result::Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Reads a description. Cards that it does not name get nothing, unless it names none at all. A part that cannot be
/// used is logged and left out; a link none of whose networks can be used finds out by itself what it needs.
///
/// # Errors
///
/// [`NetworkDataError`] naming entry and field, where no link can be used, or the description contradicts itself.
pub fn read(text: &str) -> Result<Plan> {
    let (plan, faults) = read_parts(text)?;
    for fault in faults {
        tracing::error!("{fault}; the agent ignores this part of the network and applies the rest");
    }
    Ok(plan)
}

/// What can be used of a description, and what cannot.
fn read_parts(text: &str) -> Result<(Plan, Vec<NetworkDataError>)> {
    // Read as an object first: a list would be taken for the fields in their order.
    let object: Map<String, Value> = serde_json::from_str(text)?;
    let data = NetworkData::deserialize(Value::Object(object))?;
    let others = if data.links.is_empty() { Automatic::ALL } else { Automatic::NOTHING };
    let mut plan = Plan { others, ..Plan::automatic() };
    let mut faults = Vec::new();
    for link in &data.links {
        match link.plan(&mut faults) {
            Ok(link) => plan.links.push(link),
            Err(fault) => faults.push(fault),
        }
    }
    faults.extend(plan.leave_out_unsupported().into_iter().map(NetworkDataError::from));
    for network in &data.networks {
        network.plan(&mut plan, &mut faults);
    }
    let is_of_use = |link: &PlannedLink| !link.addresses.is_empty() || link.automatic != Automatic::NOTHING;
    let is_empty = data.links.is_empty() && data.networks.is_empty();
    if !is_empty && !faults.is_empty() && !plan.links.iter().any(is_of_use) {
        return Err(faults.remove(0));
    }
    let of_routes =
        data.networks.iter().flat_map(|network| &network.routes).flat_map(|route| &route.services);
    let of_networks = data.networks.iter().flat_map(|network| &network.services);
    for service in data.services.iter().chain(of_networks).chain(of_routes) {
        for server in service.name_servers() {
            match server {
                Ok(server) if !plan.name_servers.contains(&server) => plan.name_servers.push(server),
                Ok(_) => {}
                Err(fault) => faults.push(fault),
            }
        }
    }
    Ok((plan.checked()?, faults))
}

/// What was read; nothing where it is at fault.
fn usable<T>(read: Result<T>, faults: &mut Vec<NetworkDataError>) -> Option<T> {
    read.map_err(|fault| faults.push(fault)).ok()
}

impl Link {
    /// What it is to be. Only a link of which it is not known what it is cannot be planned.
    fn plan(&self, faults: &mut Vec<NetworkDataError>) -> Result<PlannedLink> {
        let place = format!("link {}", self.id);
        let mac = |name: &str, value: &Option<String>| match value {
            None => Ok(None),
            Some(text) => MacAddress::parse(text)
                .map(Some)
                .ok_or_else(|| field(&place, name, text, "a hardware address")),
        };
        let own_mac = mac("ethernet_mac_address", &self.ethernet_mac_address);
        let (kind, mac) = match self.kind.as_str() {
            "bond" => (Kind::Bond(self.bond(&place, faults), self.bond_links.clone()), own_mac),
            "vlan" => (self.vlan(&place)?, mac("vlan_mac_address", &self.vlan_mac_address)),
            // Without ports the word tells how a hypervisor plugs the card in.
            "bridge" if self.bridge_links.is_some() => {
                (Kind::Bridge(self.bridge_links.clone().unwrap_or_default()), own_mac)
            }
            // By it the card is known.
            _ => (Kind::Card(self.card(own_mac?)), Ok(None)),
        };
        let mtu = self
            .mtu
            .as_ref()
            .and_then(|value| usable(number(&place, "mtu", value, 68..=65535), faults).map(u32::from));
        let mac = usable(mac, faults).flatten();
        Ok(PlannedLink { mac, mtu, ..PlannedLink::new(&self.id, kind) })
    }

    fn card(&self, mac: Option<MacAddress>) -> Which {
        mac.map_or_else(|| Which::Name(self.name.clone().unwrap_or_else(|| self.id.clone())), Which::Mac)
    }

    fn vlan(&self, place: &str) -> Result<Kind> {
        let value = self.vlan_id.as_ref().ok_or_else(|| missing(place, "vlan_id"))?;
        let parent = self.vlan_link.clone().ok_or_else(|| missing(place, "vlan_link"))?;
        Ok(Kind::Vlan { number: number(place, "vlan_id", value, 1..=4094)?, parent })
    }

    fn bond(&self, place: &str, faults: &mut Vec<NetworkDataError>) -> Bond {
        let mut bond = Bond::default();
        for (name, value) in &self.further {
            let Some(option) = name.strip_prefix("bond_") else { continue };
            let text = plain(value);
            let set = plan::set_bond_option(&mut bond, option, &text);
            usable(set.map_err(|expected| field(place, name, &text, expected)), faults);
        }
        bond
    }
}

impl Network {
    fn place(&self) -> String {
        format!("network {}", if self.id.is_empty() { &self.link } else { &self.id })
    }

    /// Adds it to its link. What an address lacks its link finds out by itself.
    fn plan(&self, plan: &mut Plan, faults: &mut Vec<NetworkDataError>) {
        let place = self.place();
        let Some(link) = plan.links.iter_mut().find(|link| link.name == self.link) else {
            return faults.push(field(
                &place,
                "link",
                &self.link,
                "the id of one of the links that can be used",
            ));
        };
        if let Err(fault) = self.give_address(link, &place) {
            faults.push(fault);
            if link.addresses.is_empty() && link.automatic == Automatic::NOTHING {
                link.automatic = Automatic::ALL;
            }
        }
        if let Some(gateway) = &self.gateway
            && let Some(gateway) = usable(address(&place, "gateway", gateway), faults)
        {
            link.routes.push(Route::default_through(gateway));
        }
        for route in self.routes.iter().filter_map(|route| usable(route.plan(&place), faults)) {
            if !link.routes.contains(&route) {
                link.routes.push(route);
            }
        }
    }

    fn give_address(&self, link: &mut PlannedLink, place: &str) -> Result<()> {
        match self.kind.as_str() {
            "ipv4" | "ipv6" => link.addresses.push(self.address(place)?),
            "ipv4_dhcp" => link.automatic.dhcpv4 = true,
            "ipv6_slaac" | "ipv6_dhcpv6-stateless" => link.automatic.ipv6 = Ipv6::ByRouter,
            "ipv6_dhcp" | "ipv6_dhcpv6-stateful" => link.automatic.ipv6 = Ipv6::Dhcp,
            other => {
                let expected =
                    "ipv4, ipv4_dhcp, ipv6, ipv6_slaac, ipv6_dhcp or ipv6_dhcpv6-stateful/-stateless";
                return Err(field(place, "type", other, expected));
            }
        }
        Ok(())
    }

    fn address(&self, place: &str) -> Result<IpNet> {
        let text = self.ip_address.as_ref().ok_or_else(|| missing(place, "ip_address"))?;
        network(place, "ip_address", text, self.netmask.as_ref())
    }
}

impl RouteEntry {
    fn plan(&self, place: &str) -> Result<Route> {
        let place = format!("a route of {place}");
        let destination = network(&place, "network", &self.network, self.netmask.as_ref())?.trunc();
        let gateway = self.gateway.as_ref().map(|text| address(&place, "gateway", text)).transpose()?;
        match gateway {
            Some(gateway) if gateway.is_ipv4() != destination.addr().is_ipv4() => {
                Err(field(&place, "gateway", &gateway.to_string(), "of the network's own address family"))
            }
            gateway => Ok(Route { destination, gateway }),
        }
    }
}

impl Service {
    /// An old form has several addresses in one text.
    fn name_servers(&self) -> Vec<Result<IpAddr>> {
        let place = "a service of type dns";
        match &self.address {
            _ if self.kind != "dns" => Vec::new(),
            None => vec![Err(missing(place, "address"))],
            Some(text) => {
                let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
                parts.map(|part| address(place, "address", part)).collect()
            }
        }
    }
}

/// An address with its prefix, which may stand in the same text, or beside it as length or mask.
fn network(place: &str, name: &str, text: &str, mask: Option<&Value>) -> Result<IpNet> {
    if text.contains('/') {
        return text.parse().map_err(|_| field(place, name, text, "an address with a prefix length"));
    }
    let address = address(place, name, text)?;
    let mask = plain(mask.ok_or_else(|| missing(place, "netmask"))?);
    plan::with_mask(address, &mask)
        .ok_or_else(|| field(place, "netmask", &mask, "a mask of the address's family"))
}

fn address(place: &str, name: &str, text: &str) -> Result<IpAddr> {
    text.trim().parse().map_err(|_| field(place, name, text, "an IP address"))
}

fn number(place: &str, name: &str, value: &Value, allowed: std::ops::RangeInclusive<u16>) -> Result<u16> {
    let text = plain(value);
    let number = text.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| field(place, name, &text, "a number that such a thing can have"))
}

/// The text of a value, without the quotes that some writers put around numbers.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

fn field(place: &str, name: &str, value: &str, expected: &'static str) -> NetworkDataError {
    NetworkDataError::Field { place: format!("{name} of {place}"), value: value.to_owned(), expected }
}

fn missing(place: &str, name: &str) -> NetworkDataError {
    NetworkDataError::Missing { place: format!("{name} of {place}") }
}

#[cfg(test)]
mod tests;
