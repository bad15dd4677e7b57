//! VLAN interfaces that the operator asks for (section 3.7).

use crate::options::Options;
use farrier_hardware::inventory::lldp::{self, Tlv};
use farrier_hardware::inventory::nics;
use farrier_linux::netlink::Netlink;
use std::collections::BTreeMap;
use std::io;

/// Every interface, with the VLANs that its switch announces.
const ALL: &str = "all";
/// LLDP type of what organisations define.
const ORGANISATION: u8 = 127;
/// The beginning of the name of a VLAN, which its number follows (IEEE 802.1, subtype 3).
const VLAN_NAME: &str = "0080c203";
/// Numbers a VLAN can have (IEEE 802.1Q).
const NUMBERS: std::ops::RangeInclusive<u16> = 1..=4094;

/// A VLAN on an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vlan {
    interface: String,
    number: u16,
}

/// An interface by its name and hardware address.
type Nic = (String, String);

/// Makes the VLAN interfaces of the configuration, and sets them up. A failure is logged and stops
/// nobody. Blocks while it listens to switches.
pub fn make(options: &Options) {
    let Some(entries) = &options.enable_vlan_interfaces else { return };
    let nics = nics::network_interfaces().unwrap_or_default();
    let nics: Vec<Nic> = nics.into_iter().map(|nic| (nic.name, nic.mac_address)).collect();
    for vlan in plan(&entries.0, &nics, &announced(options, &entries.0, &nics)) {
        let name = format!("{}.{}", vlan.interface, vlan.number);
        match try_make(&vlan, &name) {
            Ok(()) => tracing::info!(interface = name, "VLAN interface set up"),
            Err(error) => tracing::error!(
                interface = name,
                "the VLAN interface cannot be made: {error}; is the module 8021q in the ramdisk?"
            ),
        }
    }
}

fn try_make(vlan: &Vlan, name: &str) -> io::Result<()> {
    let netlink = Netlink::open()?;
    netlink.set_up(&vlan.interface)?;
    match netlink.add_vlan(&vlan.interface, name, vlan.number) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    netlink.set_up(name)
}

/// What the switches say, if that matters.
fn announced(options: &Options, entries: &[String], nics: &[Nic]) -> BTreeMap<String, Vec<Tlv>> {
    if entries.iter().all(|entry| numbered(entry).is_some()) {
        return BTreeMap::new();
    }
    if !options.collect_lldp {
        tracing::warn!("ipa-enable-vlan-interfaces without numbers needs ipa-collect-lldp=1: none are made");
        return BTreeMap::new();
    }
    let names: Vec<_> = nics.iter().map(|(name, _)| name.clone()).collect();
    lldp::listen(&names, options.lldp_timeout.duration())
}

/// The VLANs meant by the entries, each once.
fn plan(entries: &[String], nics: &[Nic], announced: &BTreeMap<String, Vec<Tlv>>) -> Vec<Vlan> {
    let mut vlans: Vec<Vlan> = Vec::new();
    for entry in entries {
        let (wanted, number) = numbered(entry).map_or((entry.as_str(), None), |(name, id)| (name, Some(id)));
        let is_meant = |(name, mac): &&Nic| {
            name == wanted || mac.eq_ignore_ascii_case(wanted) || (wanted == ALL && number.is_none())
        };
        let mut found = nics.iter().filter(is_meant).peekable();
        if found.peek().is_none() {
            tracing::warn!(entry, "ipa-enable-vlan-interfaces names an interface that is not there");
        }
        for (interface, _) in found {
            let numbers = match number {
                Some(number) => vec![number],
                None => announced.get(interface).into_iter().flatten().filter_map(vlan_of).collect(),
            };
            let new = numbers.into_iter().map(|number| Vlan { interface: interface.clone(), number });
            for vlan in new.collect::<Vec<_>>() {
                if !vlans.contains(&vlan) {
                    vlans.push(vlan);
                }
            }
        }
    }
    vlans
}

/// Interface or hardware address, and number, of an entry that has one.
fn numbered(entry: &str) -> Option<(&str, u16)> {
    let (name, number) = entry.rsplit_once('.')?;
    Some((name, number.parse().ok().filter(|number| NUMBERS.contains(number))?))
}

/// The number of the VLAN that a TLV names.
fn vlan_of(Tlv(kind, hex): &Tlv) -> Option<u16> {
    let hex = hex.to_ascii_lowercase();
    let digits = hex.strip_prefix(VLAN_NAME)?.get(..4)?;
    let number = u16::from_str_radix(digits, 16).ok()?;
    (*kind == ORGANISATION && NUMBERS.contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_contract() {
        let nics: Vec<Nic> = [("eth0", "52:54:00:00:00:01"), ("eth1", "52:54:00:00:00:0a"), ("p.2", "x")]
            .map(|(name, mac)| (name.to_owned(), mac.to_owned()))
            .to_vec();
        let tlv = |hex: &str| Tlv(127, hex.to_owned());
        let announced = BTreeMap::from([
            (
                "eth0".to_owned(),
                vec![tlv("0080c20300640474657374"), tlv("0080c2030065"), tlv("0080c2010064")],
            ),
            ("eth1".to_owned(), vec![tlv("0080C2030fff"), tlv("0080c203"), Tlv(5, "0080c2030001".into())]),
        ]);
        for (entries, expected) in [
            ("eth0.5", vec![("eth0", 5)]),
            ("52:54:00:00:00:0A.7", vec![("eth1", 7)]),
            ("eth0.5,eth0.5,eth1.6", vec![("eth0", 5), ("eth1", 6)]),
            ("eth0", vec![("eth0", 100), ("eth0", 101)]),
            ("all", vec![("eth0", 100), ("eth0", 101)]),
            ("eth1", vec![]),
            ("p.2.3", vec![("p.2", 3)]),
            ("eth9.5", vec![]),
            ("eth0.0", vec![]),
            ("eth0.4095", vec![]),
            ("eth0.x", vec![]),
        ] {
            let entries: Vec<_> = entries.split(',').map(str::to_owned).collect();
            let found = plan(&entries, &nics, &announced);
            let found: Vec<_> = found.iter().map(|vlan| (vlan.interface.as_str(), vlan.number)).collect();
            assert_eq!(found, expected, "{entries:?}");
        }
    }
}
