//! Network interfaces (section 9.3).

use farrier_linux::hardware_address::Shared;
use farrier_linux::netlink::{self, InterfaceAddress, Link, Netlink};
use farrier_linux::{infiniband, sysfs};
use farrier_protocol::inventory::NetworkInterface;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The physical interfaces, bonds and VLANs of this machine that have a hardware address.
///
/// # Errors
///
/// The kernel does not list its links. A single interface that cannot be read in full is still
/// listed (F42).
pub fn network_interfaces() -> io::Result<Vec<NetworkInterface>> {
    let links = Netlink::open()?.links()?;
    let addresses = netlink::all_addresses().unwrap_or_default();
    Ok(describe_all(Path::new("/sys"), &links, &addresses))
}

/// Hardware addresses of the given interfaces that identify the machine, each once.
pub fn mac_addresses(interfaces: &[NetworkInterface]) -> Vec<String> {
    let mut addresses: Vec<_> = interfaces.iter().map(|nic| nic.mac_address.clone()).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Folders of the devices behind the network interfaces of the machine whose sysfs this is.
pub fn devices(sysfs: &Path) -> Vec<PathBuf> {
    let class = sysfs.join("class/net");
    let folders = sysfs::entries(&class).into_iter().map(|name| class.join(name).join("device"));
    folders.filter(|device| device.exists()).collect()
}

/// Hardware addresses of interfaces that are left out because machines share them.
///
/// # Errors
///
/// The kernel does not list its links.
pub fn left_out_addresses() -> io::Result<Vec<String>> {
    let links = Netlink::open()?.links()?;
    Ok(shared(Path::new("/sys"), &links).map(|(link, _)| identity(&link.hardware_address).0).collect())
}

fn describe_all(sysfs: &Path, links: &[Link], addresses: &[InterfaceAddress]) -> Vec<NetworkInterface> {
    let class = sysfs.join("class/net");
    let left_out: Vec<_> =
        shared(sysfs, links).inspect(|(link, reason)| tell_left_out(link, *reason)).collect();
    // A VLAN and a bond have the address of a card.
    let is_shared =
        |link: &Link| left_out.iter().any(|(one, _)| one.hardware_address == link.hardware_address);
    let mut interfaces: Vec<_> = links
        .iter()
        .filter(|link| is_considered(&class, &link.name) && !is_shared(link))
        .map(|link| describe(&class, link, addresses))
        .filter(|interface| !interface.mac_address.is_empty())
        .collect();
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    interfaces
}

/// The interfaces whose addresses are no identity of this machine (S22).
fn shared<'a>(sysfs: &'a Path, links: &'a [Link]) -> impl Iterator<Item = (&'a Link, Shared)> {
    let class = sysfs.join("class/net");
    let considered = links.iter().filter(move |link| is_considered(&class, &link.name));
    considered.filter_map(|link| Some((link, Shared::of(sysfs, &link.name, &link.hardware_address)?)))
}

/// Logs it once: interfaces are read many times during the wait for the first one.
fn tell_left_out(link: &Link, reason: Shared) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mac_address = colons(&link.hardware_address);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert(format!("{} {mac_address}", link.name)) {
        tracing::warn!(interface = link.name, mac_address, "interface left out: {reason}");
    }
}

fn is_considered(class: &Path, name: &str) -> bool {
    let directory = class.join(name);
    let is_vlan =
        name.split_once('.').is_some_and(|(_, id)| !id.is_empty() && id.bytes().all(|c| c.is_ascii_digit()));
    directory.join("device").exists() || directory.join("bonding").exists() || is_vlan
}

fn describe(class: &Path, link: &Link, addresses: &[InterfaceAddress]) -> NetworkInterface {
    let directory = class.join(&link.name);
    let device = directory.join("device");
    let own = || addresses.iter().filter(|found| found.interface == link.name).map(|found| found.address);
    let address = |wanted: fn(&IpAddr) -> bool| {
        own().find(|found| wanted(found) && !netlink::is_link_local(*found)).map(|found| found.to_string())
    };
    // One that is good on this link only names it (section 9.3).
    let on_link = || Some(format!("{}%{}", own().find(IpAddr::is_ipv6)?, link.name));
    let (mac_address, client_id) = identity(&link.hardware_address);
    NetworkInterface {
        name: link.name.clone(),
        mac_address,
        client_id,
        ipv4_address: address(IpAddr::is_ipv4),
        ipv6_address: address(IpAddr::is_ipv6).or_else(on_link),
        has_carrier: sysfs::attribute(&directory, "carrier").as_deref() == Some("1"),
        vendor: sysfs::attribute(&device, "vendor"),
        product: sysfs::attribute(&device, "device"),
        lldp: None,
        biosdevname: None,
        // The kernel says -1 or refuses while the link is down.
        speed_mbps: sysfs::number(&directory, "speed"),
        pci_address: sysfs::link_name(&directory, "device"),
        driver: sysfs::link_name(&device, "driver"),
    }
}

/// Hardware address and, for InfiniBand, client identifier; an empty address for anything else.
///
/// The address of an InfiniBand interface is made of both ends of its GUID.
fn identity(bytes: &[u8]) -> (String, Option<String>) {
    let mac = match (bytes, infiniband::guid(bytes)) {
        (bytes, _) if bytes.iter().all(|byte| *byte == 0) => return (String::new(), None),
        (bytes, None) if bytes.len() == 6 => colons(bytes),
        (_, Some(guid)) => colons(&[&guid[..3], &guid[5..]].concat()),
        _ => String::new(),
    };
    (mac, infiniband::client_identifier(bytes).as_deref().map(colons))
}

fn colons(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn link(name: &str, last: u8) -> Link {
        Link { name: name.into(), hardware_address: vec![0x52, 0x54, 0, 0, 0, last] }
    }

    #[test]
    fn s22_only_real_interfaces_of_this_machine_are_listed() {
        let sysfs = tempfile::tempdir().unwrap();
        let class = sysfs.path().join("class/net");
        for directory in ["eth0/device", "bond0/bonding", "eth0.100", "lo", "veth1", "dummy.x", "bmc0/device"]
        {
            fs::create_dir_all(class.join(directory)).unwrap();
        }
        fs::write(class.join("eth0/carrier"), "1\n").unwrap();
        fs::write(class.join("eth0/device/vendor"), "0x1af4\n").unwrap();
        fs::write(class.join("eth0/speed"), "10000\n").unwrap();
        fs::write(class.join("bond0/speed"), "-1\n").unwrap();
        let internal = Link { name: "bmc0".into(), hardware_address: vec![0xfa, 1, 2, 3, 4, 5] };
        let mut links: Vec<_> = ["veth1", "lo", "eth0.100", "eth0", "dummy.x", "bond0"]
            .iter()
            .map(|name| link(name, 1))
            .collect();
        links.push(internal);
        let addresses =
            [InterfaceAddress { interface: "eth0".into(), address: [192, 0, 2, 7].into(), prefix: 24 }];

        let found = describe_all(sysfs.path(), &links, &addresses);

        let names: Vec<_> = found.iter().map(|nic| nic.name.as_str()).collect();
        assert_eq!(names, ["bond0", "eth0", "eth0.100"]);
        assert!(found[1].has_carrier);
        assert_eq!(found[1].ipv4_address.as_deref(), Some("192.0.2.7"));
        assert_eq!(found[1].vendor.as_deref(), Some("0x1af4"));
        assert_eq!((found[0].speed_mbps, found[1].speed_mbps), (None, Some(10000)));
        assert_eq!(mac_addresses(&found), ["52:54:00:00:00:01"]);
    }

    #[test]
    fn x37_an_ipv6_address_of_the_link_alone_is_told_where_there_is_no_other() {
        let has = |text: &str| InterfaceAddress {
            interface: "eth0".into(),
            address: text.parse().unwrap(),
            prefix: 64,
        };
        let elsewhere = InterfaceAddress { interface: "eth1".into(), ..has("2001:db8::9") };
        for (own, ipv4, ipv6) in [
            (vec![], None, None),
            (vec![has("fe80::1")], None, Some("fe80::1%eth0")),
            (vec![has("fe80::1"), has("2001:db8::1")], None, Some("2001:db8::1")),
            (vec![has("169.254.0.1"), has("192.0.2.1")], Some("192.0.2.1"), None),
        ] {
            let addresses = [own, vec![elsewhere.clone()]].concat();
            let found = describe(Path::new("/nonexistent"), &link("eth0", 1), &addresses);
            assert_eq!((found.ipv4_address.as_deref(), found.ipv6_address.as_deref()), (ipv4, ipv6));
        }
    }

    #[test]
    fn a05_a_card_on_usb_whose_address_a_model_range_shares_is_no_identity() {
        let sysfs = tempfile::tempdir().unwrap();
        let class = sysfs.path().join("class/net");
        for (interface, device) in
            [("eth0", "pci0/0000:00:03.0"), ("usb0", "pci0/usb1/1-1"), ("usb1", "pci0/usb1/1-2")]
        {
            let device = sysfs.path().join("devices").join(device);
            fs::create_dir_all(&device).unwrap();
            fs::create_dir_all(class.join(interface)).unwrap();
            std::os::unix::fs::symlink(&device, class.join(interface).join("device")).unwrap();
        }
        fs::create_dir_all(class.join("usb0.7")).unwrap();
        fs::create_dir_all(class.join("bond0/bonding")).unwrap();
        let of_a_range = vec![0xbe, 0x3a, 0xf2, 0xb6, 0x05, 0x9f];
        let links = [
            link("eth0", 1),
            Link { name: "usb0".into(), hardware_address: of_a_range.clone() },
            Link { name: "usb0.7".into(), hardware_address: of_a_range.clone() },
            Link { name: "bond0".into(), hardware_address: of_a_range },
            Link { name: "usb1".into(), hardware_address: vec![0xa0, 0xce, 0xc8, 1, 2, 3] },
        ];
        let found = describe_all(sysfs.path(), &links, &[]);
        let names: Vec<_> = found.iter().map(|nic| nic.name.as_str()).collect();
        assert_eq!(names, ["eth0", "usb1"]);
        assert_eq!(mac_addresses(&found), ["52:54:00:00:00:01", "a0:ce:c8:01:02:03"]);
        let pci = [Link { name: "eth0".into(), hardware_address: vec![0xbe, 0x3a, 0xf2, 0xb6, 0x05, 0x9f] }];
        assert_eq!(describe_all(sysfs.path(), &pci, &[]).len(), 1, "virtual functions have such addresses");
    }

    #[test]
    fn f42_odd_hardware_addresses_give_no_mac() {
        for bytes in [vec![], vec![0; 6], vec![0; 20], vec![1; 7]] {
            assert_eq!(identity(&bytes), (String::new(), None));
        }
    }

    #[test]
    fn an_infiniband_interface_is_known_by_its_guid() {
        let address = [&[0x80; 12][..], &[0x7c, 0xfe, 0x90, 0x03, 0x00, 0x29, 0x26, 0x52]].concat();
        let (mac, client_id) = identity(&address);
        assert_eq!(mac, "7c:fe:90:29:26:52");
        let expected = "ff:00:00:00:00:00:02:00:00:02:c9:00:7c:fe:90:03:00:29:26:52";
        assert_eq!(client_id.as_deref(), Some(expected));
    }
}
