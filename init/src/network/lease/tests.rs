//! Every part of a lease in turn is of no use, in a network of its own with the real kernel: what the others say
//! holds, at first and after a renewal.

use super::*;
use crate::network::dhcp_event;
use farrier_linux::dhcp as wire;
use nix::sched::{CloneFlags, unshare};
use std::collections::BTreeMap;

const INTERFACE: &str = "eth0";
/// Size of packets before there was a lease.
const UNTOLD: u32 = 1500;

/// What the machine has, part by part.
type State = BTreeMap<&'static str, String>;
/// A lease as the client tells it, by the names of its variables.
type Variables = BTreeMap<&'static str, &'static str>;

fn good() -> Variables {
    BTreeMap::from([
        ("interface", INTERFACE),
        ("ip", "192.0.2.50"),
        ("subnet", "255.255.255.0"),
        ("staticroutes", "203.0.113.0/24 192.0.2.9 0.0.0.0/0 192.0.2.1"),
        ("router", "192.0.2.1"),
        ("mtu", "1400"),
        ("dns", "192.0.2.53"),
        ("search", "a.example"),
        ("hostname", "node7"),
    ])
}

/// What the good lease gives.
fn expected() -> State {
    BTreeMap::from([
        ("address", "192.0.2.50/24".to_owned()),
        ("default", "192.0.2.1".to_owned()),
        ("way", "192.0.2.9".to_owned()),
        ("mtu", "1400".to_owned()),
        ("names", "search a.example\nnameserver 192.0.2.53\n".to_owned()),
        ("host", "node7".to_owned()),
    ])
}

const LONG: &str =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.rack12.row7.hall3.dc1.building9.example-company.internal";

/// Names with values.
type Values = &'static [(&'static str, &'static str)];

/// Variables with values of no use, and what the machine then has of the parts that they tell.
const FAULTS: &[(Values, Values)] = &[
    (&[("ip", "")], &[("address", ""), ("default", ""), ("way", "")]),
    (&[("ip", "0.0.0.0")], &[("address", ""), ("default", ""), ("way", "")]),
    (&[("ip", "224.0.0.5")], &[("address", ""), ("default", ""), ("way", "")]),
    (&[("subnet", "")], &[("address", "192.0.2.50/32")]),
    (&[("subnet", "255.0.255.0")], &[("address", "192.0.2.50/32")]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.9 0.0.0.0/0 0.0.0.1")], &[]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.9 0.0.0.0/0 192.0.2.50")], &[]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.9 0.0.0.0/0 192.0.2.255")], &[]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.9 0.0.0.0/0 224.0.0.1")], &[]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.9 0.0.0.0/0 198.51.100.1")], &[]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.50 0.0.0.0/0 192.0.2.1")], &[("way", "")]),
    (&[("staticroutes", "203.0.113.0/24 192.0.2.255 0.0.0.0/0 192.0.2.1")], &[("way", "")]),
    (&[("staticroutes", "203.0.113.0/24 198.51.100.1 0.0.0.0/0 192.0.2.1")], &[("way", "")]),
    (&[("staticroutes", "203.0.113.0/99 192.0.2.9 0.0.0.0/0 192.0.2.1")], &[("way", "")]),
    (&[("staticroutes", "203.0.113.0/24 there 0.0.0.0/0 192.0.2.1")], &[("way", "")]),
    (&[("staticroutes", "203.0.113.0/24")], &[("way", "")]),
    (&[("staticroutes", ""), ("router", "0.0.0.0")], &[("way", ""), ("default", "")]),
    (&[("staticroutes", ""), ("router", "192.0.2.50")], &[("way", ""), ("default", "")]),
    (&[("staticroutes", ""), ("router", "192.0.2.255")], &[("way", ""), ("default", "")]),
    (&[("staticroutes", ""), ("router", "255.255.255.255")], &[("way", ""), ("default", "")]),
    (&[("staticroutes", ""), ("router", "224.0.0.1")], &[("way", ""), ("default", "")]),
    (&[("staticroutes", ""), ("router", "198.51.100.1")], &[("way", ""), ("default", "")]),
    (&[("staticroutes", ""), ("router", "there 0.0.0.0 192.0.2.1")], &[("way", "")]),
    (&[("mtu", "")], &[("mtu", "1500")]),
    (&[("mtu", "0")], &[("mtu", "1500")]),
    (&[("mtu", "68")], &[("mtu", "1500")]),
    (&[("mtu", "many")], &[("mtu", "1500")]),
    (&[("mtu", "4294967295")], &[("mtu", "1500")]),
    (&[("mtu", "576")], &[("mtu", "1280")]),
    (&[("dns", "")], &[("names", "search a.example\n")]),
    (&[("dns", "0.0.0.0 255.255.255.255 there 192.0.2.53")], &[]),
    (&[("search", "a.example two/words")], &[]),
    (&[("search", "\u{fffd}")], &[("names", "nameserver 192.0.2.53\n")]),
    (&[("hostname", LONG)], &[("host", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]),
    (&[("hostname", "")], &[("host", "before")]),
    (&[("hostname", "two words")], &[("host", "before")]),
    (&[("hostname", "-a")], &[("host", "before")]),
    (&[("hostname", "a\u{fffd}")], &[("host", "before")]),
];

/// A network of its own with one card, and files of its own. Needs root.
struct Machine {
    root: tempfile::TempDir,
    netlink: Netlink,
}

impl Machine {
    fn start() -> Self {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS).unwrap();
        let netlink = Netlink::open().unwrap();
        netlink.add_bridge(INTERFACE).unwrap();
        netlink.set_up(INTERFACE).unwrap();
        Self { root: tempfile::tempdir().unwrap(), netlink }
    }

    /// As if there had been no lease.
    fn forget(&self) {
        deconfigure(self.root.path(), INTERFACE).unwrap();
        self.netlink.set_mtu(INTERFACE, UNTOLD).unwrap();
        nix::unistd::sethostname("before").unwrap();
        fs::remove_dir_all(self.root.path().join("etc")).ok();
    }

    fn lease(&self, variables: &Variables) {
        let read = |name: &str| variables.get(name).map(|value| (*value).to_owned());
        dhcp_event::read(read).unwrap().apply(self.root.path());
    }

    fn state(&self) -> State {
        let own = netlink::addresses().unwrap().into_iter().filter(|one| one.interface == INTERFACE);
        let own = own.map(|one| format!("{}/{}", one.address, one.prefix)).collect::<Vec<_>>().join(" ");
        let size = fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/mtu")).unwrap_or_default();
        let names = fs::read_to_string(self.root.path().join("etc/resolv.conf")).unwrap_or_default();
        BTreeMap::from([
            ("address", own),
            ("default", gateway("00000000")),
            ("way", gateway("007100CB")),
            ("mtu", size.trim().to_owned()),
            ("names", names),
            ("host", nix::unistd::gethostname().unwrap().into_string().unwrap()),
        ])
    }
}

/// The gateways to a network, which the kernel shows as a number in its own order of bytes.
fn gateway(destination: &str) -> String {
    let text = fs::read_to_string("/proc/thread-self/net/route").unwrap();
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let gateway = |row: &Vec<&str>| Ipv4Addr::from(u32::from_str_radix(row[2], 16).unwrap().swap_bytes());
    let through = rows.filter(|row| row[1] == destination).map(|row| gateway(&row).to_string());
    through.collect::<Vec<_>>().join(" ")
}

#[test]
fn loop_a04_a_part_of_a_lease_that_is_of_no_use_takes_no_other_part_with_it() {
    let machine = Machine::start();
    machine.forget();
    machine.lease(&good());
    assert_eq!(machine.state(), expected());
    for (variables, told) in FAULTS {
        let mut faulty = good();
        faulty.extend(variables.iter().copied());
        let mut wanted = expected();
        wanted.extend(told.iter().map(|(part, value)| (*part, (*value).to_owned())));
        machine.forget();
        machine.lease(&faulty);
        assert_eq!(machine.state(), wanted, "at first: {variables:?}");
        machine.forget();
        machine.lease(&good());
        machine.lease(&faulty);
        // The size of packets and the name are not taken back.
        let mut renewed = machine.state();
        for part in ["mtu", "host"].into_iter().filter(|part| told.iter().any(|(one, _)| one == part)) {
            renewed.insert(part, wanted[part].clone());
        }
        assert_eq!(renewed, wanted, "as a renewal: {variables:?}");
        machine.lease(&good());
        assert_eq!(machine.state(), expected(), "after {variables:?}");
    }
}

/// A lease as the client of InfiniBand reads it.
fn granted() -> wire::Lease {
    let near = Route { destination: "203.0.113.0/24".parse().unwrap(), gateway: Some([192, 0, 2, 9].into()) };
    wire::Lease {
        server: [192, 0, 2, 1].into(),
        address: [192, 0, 2, 50].into(),
        mask: Some([255, 255, 255, 0].into()),
        routers: vec![[192, 0, 2, 1].into()],
        routes: vec![near, Route::default_through([192, 0, 2, 1].into())],
        mtu: Some(1400),
        name_servers: vec![[192, 0, 2, 53].into()],
        domains: vec!["a.example".to_owned()],
        host_name: Some("node7".to_owned()),
        seconds: Some(120),
    }
}

/// Makes a part of a lease unusable.
type Break = fn(&mut wire::Lease);

#[test]
fn loop_a04_the_same_holds_for_a_lease_on_infiniband() {
    let machine = Machine::start();
    let faults: [(Break, Values); 9] = [
        (|_| (), &[]),
        (|lease| lease.address = Ipv4Addr::UNSPECIFIED, &[("address", ""), ("default", ""), ("way", "")]),
        (|lease| lease.mask = Some([255, 0, 255, 0].into()), &[("address", "192.0.2.50/32")]),
        (|lease| lease.routes[1].gateway = Some([192, 0, 2, 50].into()), &[]),
        (
            |lease| {
                lease.routes = vec![Route::default_through(Ipv4Addr::UNSPECIFIED.into())];
                lease.routers = vec![Ipv4Addr::UNSPECIFIED, [192, 0, 2, 1].into()];
            },
            &[("way", "")],
        ),
        (|lease| lease.routes[0].gateway = Some([198, 51, 100, 1].into()), &[("way", "")]),
        (|lease| lease.mtu = Some(0), &[("mtu", "1500")]),
        (|lease| lease.name_servers.insert(0, Ipv4Addr::UNSPECIFIED), &[]),
        (|lease| lease.host_name = Some("b".repeat(65)), &[("host", LONGEST_NAME)]),
    ];
    for (number, (break_it, told)) in faults.into_iter().enumerate() {
        let mut lease = granted();
        break_it(&mut lease);
        machine.forget();
        Lease::granted(INTERFACE, &lease).apply(machine.root.path());
        let mut wanted = expected();
        wanted.extend(told.iter().map(|(part, value)| (*part, (*value).to_owned())));
        assert_eq!(machine.state(), wanted, "row {number}");
    }
}

const LONGEST_NAME: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
