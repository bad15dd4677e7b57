//! The network as the kernel command line describes it: `ip=` in the forms of the kernel
//! (`Documentation/admin-guide/nfs/nfsroot.rst`) and of dracut, any number of times, and the options
//! `farrier-net-…` for what these cannot say.

use super::plan::{self, Automatic, Ipv6, Kind, Plan, PlanError, PlannedLink, VLAN_NUMBERS, Which};
use crate::mac_address::MacAddress;
use crate::settings::Settings;
use farrier_linux::netlink::{Bond, Route};
use ipnet::IpNet;
use std::net::IpAddr;

/// A part of a parameter has no possible value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}={value}: {part:?} is not {expected}")]
pub struct ParameterError {
    /// Name of the parameter.
    parameter: &'static str,
    /// All of its value.
    value: String,
    /// The part.
    part: String,
    /// What it should be.
    expected: &'static str,
}

type Result<T> = std::result::Result<T, ParameterError>;

const IP: &str = "ip";
/// The value of `ip=` that leaves all to the table of firmware that booted from an iSCSI disk.
const FIRMWARE: &str = "ibft";
const BOND: &str = "farrier-net-bond";
const VLANS: &str = "farrier-net-vlans";
const DNS: &str = "farrier-net-dns";
const ROUTES: &str = "farrier-net-routes";

/// The plan of the values of `ip=` and of the settings; nothing when there are none of either. What `ip=ibft`
/// stands for is asked for, and the rest is added to it. A parameter, or a part of one, that cannot be used is logged
/// and left out.
///
/// # Errors
///
/// [`PlanError`] when the parameters contradict each other.
pub fn plan(
    ip: &[String],
    settings: &Settings,
    of_firmware: impl FnOnce() -> Plan,
) -> std::result::Result<Option<Plan>, PlanError> {
    let mut faults = Vec::new();
    let plan = plan_of_parts(ip, settings, of_firmware, &mut faults);
    for fault in faults {
        tracing::error!("{fault}; the agent ignores this part of the network and applies the rest");
    }
    plan
}

fn plan_of_parts(
    ip: &[String],
    settings: &Settings,
    of_firmware: impl FnOnce() -> Plan,
    faults: &mut Vec<ParameterError>,
) -> std::result::Result<Option<Plan>, PlanError> {
    let (firmware, ip): (Vec<_>, Vec<_>) = ip.iter().partition(|text| *text == FIRMWARE);
    let mut plan = if firmware.is_empty() { Plan::automatic() } else { of_firmware() };
    let mut is_silent = false;
    if let Some(text) = &settings.bond {
        is_silent |= usable(add_bond(&mut plan, text, faults), faults).is_some();
    }
    for name in &settings.vlans {
        is_silent |= usable(add_named_vlan(&mut plan, name), faults).is_some();
    }
    for text in ip {
        let ip = Ip { text, boot_interface: settings.boot_interface.as_deref() };
        is_silent |= usable(ip.add_to(&mut plan, faults), faults).unwrap_or_default();
    }
    plan.name_servers
        .extend(settings.name_servers.iter().filter_map(|text| usable(address(DNS, text, text), faults)));
    for text in &settings.routes {
        usable(add_route(&mut plan, text), faults);
    }
    if is_silent {
        plan.others = Automatic::NOTHING;
    }
    let plan = settle_uppermost(plan).checked()?;
    Ok((plan != Plan::automatic()).then_some(plan))
}

/// What was read; nothing where it is at fault.
fn usable<T>(read: Result<T>, faults: &mut Vec<ParameterError>) -> Option<T> {
    read.map_err(|fault| faults.push(fault)).ok()
}

/// Links that nothing stands on, and that nothing was said about, find out by themselves what they need.
fn settle_uppermost(mut plan: Plan) -> Plan {
    let parts: Vec<String> = plan.links.iter().flat_map(|link| link.parts().to_vec()).collect();
    for link in plan.links.iter_mut().filter(|link| !parts.contains(&link.name)) {
        let is_made = !matches!(link.kind, Kind::Card(_));
        if is_made && link.addresses.is_empty() && link.automatic == Automatic::NOTHING {
            link.automatic = Automatic::ALL;
        }
    }
    plan
}

/// `NAME:PORT,PORT[:OPTION=VALUE,…[:MTU]]`
fn add_bond(plan: &mut Plan, text: &str, faults: &mut Vec<ParameterError>) -> Result<()> {
    let mut fields = text.split(':');
    let (name, ports) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let ports: Vec<String> = ports.split(',').filter(|port| !port.is_empty()).map(str::to_owned).collect();
    if name.is_empty() || ports.is_empty() {
        return Err(part(BOND, text, text, "of the form bond0:eth0,eth1:mode=active-backup"));
    }
    let mut bond = Bond::default();
    for option in fields.next().unwrap_or_default().split(',').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let set = plan::set_bond_option(&mut bond, key, value);
        usable(set.map_err(|expected| part(BOND, text, option, expected)), faults);
    }
    let mtu = fields.next().and_then(|field| usable(mtu(BOND, text, field), faults));
    for port in &ports {
        add_card(plan, port);
    }
    plan.links.push(PlannedLink { mtu, ..PlannedLink::new(name, Kind::Bond(bond, ports)) });
    Ok(())
}

/// `PARENT.NUMBER`
fn add_named_vlan(plan: &mut Plan, name: &str) -> Result<()> {
    let (parent, text) = name.rsplit_once('.').unwrap_or((name, ""));
    let number = text.parse().ok().filter(|number| VLAN_NUMBERS.contains(number));
    let number = number.ok_or_else(|| part(VLANS, name, text, "the number of a VLAN"))?;
    add_vlan(plan, name, parent, number);
    Ok(())
}

fn add_vlan(plan: &mut Plan, name: &str, parent: &str, number: u16) {
    if plan.link(parent).is_none() {
        add_card(plan, parent);
    }
    plan.links.push(PlannedLink::new(name, Kind::Vlan { number, parent: parent.to_owned() }));
}

fn add_card(plan: &mut Plan, name: &str) {
    let which = MacAddress::parse(name).map_or_else(|| Which::Name(name.to_owned()), Which::Mac);
    plan.links.push(PlannedLink::new(name, Kind::Card(which)));
}

/// `NETWORK/LENGTH@GATEWAY`, over the link whose addresses have the gateway among them.
fn add_route(plan: &mut Plan, text: &str) -> Result<()> {
    let (destination, gateway) = text.split_once('@').unwrap_or((text, ""));
    let network: IpNet =
        destination.parse().map_err(|_| part(ROUTES, text, destination, "a network such as 192.0.2.0/24"))?;
    let gateway = address(ROUTES, text, gateway)?;
    let is_near = |link: &&mut PlannedLink| link.addresses.iter().any(|own| own.contains(&gateway));
    let link = plan.links.iter_mut().find(is_near);
    let link =
        link.ok_or_else(|| part(ROUTES, text, &gateway.to_string(), "in the network of an address of ip="))?;
    link.routes.push(Route { destination: network.trunc(), gateway: Some(gateway) });
    Ok(())
}

/// One value of `ip=`.
struct Ip<'a> {
    text: &'a str,
    boot_interface: Option<&'a str>,
}

impl Ip<'_> {
    /// Adds what it says, and tells whether it is about a link of its own.
    fn add_to(&self, plan: &mut Plan, faults: &mut Vec<ParameterError>) -> Result<bool> {
        let fields = fields(self.text);
        let field = |position: usize| fields.get(position).copied().unwrap_or_default();
        match (automatic(field(0)), automatic(field(1))) {
            (Some(automatic), _) if fields.len() == 1 => {
                plan.others = automatic;
                Ok(false)
            }
            // The kernel has no name of an interface that is one of its words.
            (_, Some(automatic)) if !field(0).is_empty() && !field(1).is_empty() => {
                let link = self.link(plan, field(0));
                link.automatic = automatic;
                self.add_mtu(link, &fields, 2, faults);
                Ok(true)
            }
            _ => self.add_full(plan, &fields, faults),
        }
    }

    /// `<client>:<server>:<gateway>:<netmask>:<host name>:<device>:<method>:…`, where two name servers
    /// and a time server, or the size of packets and a hardware address follow.
    fn add_full(&self, plan: &mut Plan, fields: &[&str], faults: &mut Vec<ParameterError>) -> Result<bool> {
        let field = |position: usize| fields.get(position).copied().unwrap_or_default();
        let method =
            automatic(field(6)).ok_or_else(|| self.part(field(6), "a method such as dhcp or none"))?;
        if !field(4).is_empty() {
            plan.host_name = Some(field(4).to_owned());
        }
        let tail = fields.get(7..).unwrap_or_default();
        let is_mtu = tail.first().is_some_and(|first| first.parse::<u32>().is_ok());
        if !is_mtu {
            let servers = tail.iter().take(2).filter(|server| !server.is_empty());
            plan.name_servers.extend(servers.filter_map(|server| usable(self.address(server), faults)));
        }
        if field(0).is_empty() && field(5).is_empty() {
            plan.others = method;
            return Ok(false);
        }
        let address = if field(0).is_empty() { None } else { Some(self.with_mask(field(0), field(3))?) };
        let gateway = field(2);
        let gateway = if gateway.is_empty() { None } else { usable(self.address(gateway), faults) };
        let link = self.link(plan, field(5));
        match address {
            // With an address, only a method that is named is used beside it.
            Some(address) if field(6).is_empty() => link.addresses.push(address),
            address => {
                link.addresses.extend(address);
                link.automatic = method;
            }
        }
        link.routes.extend(gateway.map(Route::default_through));
        if is_mtu {
            self.add_mtu(link, fields, 7, faults);
        }
        Ok(true)
    }

    /// The planned link of that name; a new one, perhaps for a VLAN, if there is none.
    fn link<'plan>(&self, plan: &'plan mut Plan, name: &str) -> &'plan mut PlannedLink {
        let boot_interface = self.boot_interface.and_then(MacAddress::of_boot_interface);
        let name = match (name, boot_interface) {
            ("", Some(mac)) => mac.to_string(),
            ("", None) => Which::Any.to_string(),
            (name, _) => name.to_owned(),
        };
        if plan.link(&name).is_none() {
            match name.rsplit_once('.').map(|(parent, number)| (parent, number.parse())) {
                Some((parent, Ok(number))) => add_vlan(plan, &name, parent, number),
                _ if name == Which::Any.to_string() => {
                    plan.links.push(PlannedLink::new(&name, Kind::Card(Which::Any)));
                }
                _ => add_card(plan, &name),
            }
        }
        let position = plan.links.iter().position(|link| link.name == name);
        // It was there, or has become the last one just now.
        let position = position.unwrap_or(plan.links.len() - 1);
        &mut plan.links[position]
    }

    /// Size of packets, and a hardware address, whose own colons separated it too.
    fn add_mtu(
        &self,
        link: &mut PlannedLink,
        fields: &[&str],
        position: usize,
        faults: &mut Vec<ParameterError>,
    ) {
        if let Some(field) = fields.get(position).filter(|field| !field.is_empty()) {
            link.mtu = usable(mtu(IP, self.text, field), faults);
        }
        let mac = fields.get(position + 1..).unwrap_or_default().join(":");
        if !mac.is_empty() {
            let parsed = MacAddress::parse(&mac);
            link.mac = usable(parsed.ok_or_else(|| self.part(&mac, "a hardware address")), faults);
        }
    }

    /// Without a mask the network is as large as the class of the address says, or has 64 bits.
    fn with_mask(&self, address: &str, mask: &str) -> Result<IpNet> {
        if address.contains('/') {
            return address.parse().map_err(|_| self.part(address, "an address with a prefix length"));
        }
        let address = self.address(address)?;
        let by_class = match address {
            IpAddr::V4(address) if address.octets()[0] < 128 => "8",
            IpAddr::V4(address) if address.octets()[0] < 192 => "16",
            IpAddr::V4(_) => "24",
            IpAddr::V6(_) => "64",
        };
        let mask = if mask.is_empty() { by_class } else { mask };
        plan::with_mask(address, mask).ok_or_else(|| self.part(mask, "a mask of the address's family"))
    }

    fn address(&self, text: &str) -> Result<IpAddr> {
        address(IP, self.text, text)
    }

    fn part(&self, text: &str, expected: &'static str) -> ParameterError {
        part(IP, self.text, text, expected)
    }
}

/// What a method of `ip=` lets a link find out; nothing said is everything.
fn automatic(method: &str) -> Option<Automatic> {
    match method {
        "" | "any" | "on" | "both" | "dhcp" | "dhcp4" | "single-dhcp" | "bootp" | "rarp" => {
            Some(Automatic::ALL)
        }
        "dhcp6" => Some(Automatic { dhcpv4: false, ipv6: Ipv6::Dhcp }),
        "auto6" | "either6" | "link6" => Some(Automatic { dhcpv4: false, ipv6: Ipv6::ByRouter }),
        "off" | "none" => Some(Automatic::NOTHING),
        _ => None,
    }
}

/// What stands between colons, save those of IPv6 addresses in brackets.
fn fields(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let is_separator = |character: char| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ':' && depth == 0
    };
    text.split(is_separator).collect()
}

fn mtu(parameter: &'static str, value: &str, text: &str) -> Result<u32> {
    let number = text.parse().ok().filter(|number| (68..=65535).contains(number));
    number.ok_or_else(|| part(parameter, value, text, "a size of packets in bytes"))
}

fn address(parameter: &'static str, value: &str, text: &str) -> Result<IpAddr> {
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    plain.parse().map_err(|_| part(parameter, value, text, "an IP address"))
}

fn part(parameter: &'static str, value: &str, part: &str, expected: &'static str) -> ParameterError {
    ParameterError { parameter, value: value.to_owned(), part: part.to_owned(), expected }
}

#[cfg(test)]
mod tests;
