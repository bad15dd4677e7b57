//! VLAN interfaces that the operator asks for (section 3.7).

use crate::settings::options::Options;
use farrier_hardware::inventory::lldp::{self, Tlv};
use farrier_hardware::inventory::nics;
use farrier_init::network::{VLAN_NUMBERS, is_vlan, set_up_vlan};
use farrier_linux::uevent::{Uevent, UeventSocket};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// Every interface, with the VLANs that its switch announces.
const ALL: &str = "all";
/// LLDP type of what organisations define.
const ORGANISATION: u8 = 127;
/// The beginning of the name of a VLAN, which its number follows (IEEE 802.1, subtype 3).
const VLAN_NAME: &str = "0080c203";
/// Pause before listening again after the kernel refused to deliver events.
const RETRY: Duration = Duration::from_secs(1);

/// A VLAN on an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vlan {
    interface: String,
    number: u16,
}

/// An interface by its name and hardware address.
type Nic = (String, String);

/// Makes the VLAN interfaces of the configuration, and sets them up: those on the cards that are there at
/// once, those on later ones beside whatever follows, as they appear. A failure is logged and stops nothing else.
/// Blocks while it listens to switches.
pub fn keep(options: &Options) {
    let Some(entries) = options.enable_vlan_interfaces.clone() else { return };
    // Listening starts before the first look, so that no card falls in between.
    let events = UeventSocket::open();
    let mut seen = Vec::new();
    make(options, &entries.0, &mut seen);
    for entry in absent(&entries.0, &seen) {
        tracing::warn!(entry, "ipa-enable-vlan-interfaces names an interface that is not there yet");
    }
    let options = options.clone();
    match events {
        Ok(events) => drop(thread::spawn(move || follow(&events, &options, &entries.0, seen))),
        Err(error) => tracing::error!(%error, "cards that appear from now on get no VLAN interfaces"),
    }
}

/// Makes those on later cards, for as long as the process lives.
fn follow(events: &UeventSocket, options: &Options, entries: &[String], mut seen: Vec<Nic>) -> ! {
    loop {
        match events.next() {
            Ok(event) if !is_new_link(&event) => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "device events were lost, looking at all cards again");
                thread::sleep(RETRY);
            }
        }
        make(options, entries, &mut seen);
    }
}

fn is_new_link(event: &Uevent) -> bool {
    event.action == "add" && event.properties.get("SUBSYSTEM").is_some_and(|subsystem| subsystem == "net")
}

/// Makes those on the cards that were not `seen` before.
fn make(options: &Options, entries: &[String], seen: &mut Vec<Nic>) {
    let present = nics::network_interfaces().unwrap_or_default().into_iter();
    let present = present.map(|nic| (nic.name, nic.mac_address)).filter(|(name, _)| !is_vlan(name));
    for vlan in due(options, entries, present.collect(), seen) {
        let Vlan { interface, number } = &vlan;
        match set_up_vlan(interface, *number) {
            Ok(name) => tracing::info!(interface = name, "VLAN interface set up"),
            Err(error) => tracing::error!(
                interface,
                "the VLAN interface {number} cannot be made: {error}; is the module 8021q in the ramdisk?"
            ),
        }
    }
}

/// The VLANs on those cards that were not `seen` before, which they are from now on.
fn due(options: &Options, entries: &[String], present: Vec<Nic>, seen: &mut Vec<Nic>) -> Vec<Vlan> {
    let new: Vec<Nic> = present.into_iter().filter(|nic| !seen.contains(nic)).collect();
    if new.is_empty() {
        return Vec::new();
    }
    seen.extend_from_slice(&new);
    plan(entries, &new, &announced(options, entries, &new))
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
        let (wanted, number) = parsed(entry);
        for (interface, _) in nics.iter().filter(|nic| is_meant(nic, wanted, number)) {
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

/// The entries that mean none of the cards.
fn absent<'a>(entries: &'a [String], nics: &[Nic]) -> Vec<&'a String> {
    let is_there = |entry: &&String| {
        let (wanted, number) = parsed(entry);
        nics.iter().any(|nic| is_meant(nic, wanted, number))
    };
    entries.iter().filter(|entry| !is_there(entry)).collect()
}

fn is_meant((name, mac): &Nic, wanted: &str, number: Option<u16>) -> bool {
    name == wanted || mac.eq_ignore_ascii_case(wanted) || (wanted == ALL && number.is_none())
}

/// What an entry names, and the number that it may have.
fn parsed(entry: &str) -> (&str, Option<u16>) {
    numbered(entry).map_or((entry, None), |(name, number)| (name, Some(number)))
}

/// Interface or hardware address, and number, of an entry that has one.
fn numbered(entry: &str) -> Option<(&str, u16)> {
    let (name, number) = entry.rsplit_once('.')?;
    Some((name, number.parse().ok().filter(|number| VLAN_NUMBERS.contains(number))?))
}

/// The number of the VLAN that a TLV names.
fn vlan_of(Tlv(kind, hex): &Tlv) -> Option<u16> {
    let hex = hex.to_ascii_lowercase();
    let digits = hex.strip_prefix(VLAN_NAME)?.get(..4)?;
    let number = u16::from_str_radix(digits, 16).ok()?;
    (*kind == ORGANISATION && VLAN_NUMBERS.contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x10_a_card_that_appears_late_gets_its_vlans_once() {
        let nic = |name: &str, last: u8| (name.to_owned(), format!("52:54:00:00:00:{last:02x}"));
        let entries = ["eth0.5", "52:54:00:00:00:02.6"].map(str::to_owned);
        let mut seen = Vec::new();
        for (present, expected) in [
            (vec![], vec![]),
            (vec![nic("eth0", 1)], vec![("eth0", 5)]),
            (vec![nic("eth0", 1), nic("eth1", 2)], vec![("eth1", 6)]),
            (vec![nic("eth0", 1), nic("eth1", 2), nic("eth2", 3)], vec![]),
        ] {
            let due = due(&Options::default(), &entries, present, &mut seen);
            let due: Vec<_> = due.iter().map(|vlan| (vlan.interface.as_str(), vlan.number)).collect();
            assert_eq!(due, expected);
        }
    }

    #[test]
    fn x10_entries_whose_card_is_not_there_yet_are_told() {
        let nics = [("eth0".to_owned(), "52:54:00:00:00:01".to_owned())];
        let entries = ["eth0.5", "eth1.5", "52:54:00:00:00:01.6", "52:54:00:00:00:02", "all"];
        let entries = entries.map(str::to_owned);
        assert_eq!(absent(&entries, &nics), ["eth1.5", "52:54:00:00:00:02"]);
        assert_eq!(absent(&entries, &[]).len(), 5);
    }

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
