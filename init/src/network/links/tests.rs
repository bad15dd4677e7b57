//! Links in a network of their own. Bridges stand in for network cards: every kernel can make them.

use super::*;
use crate::network::network_data;
use farrier_linux::netlink::addresses;
use nix::sched::{CloneFlags, unshare};
use serde_json::json;
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// A network of its own for this thread, with two cards. Needs root.
fn enter_network() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let netlink = Netlink::open().unwrap();
    for (name, last) in [("eth0", 1), ("eth1", 2)] {
        netlink.add_bridge(name).unwrap();
        netlink.set_hardware_address(name, [0x52, 0x54, 0, 0, 0, last]).unwrap();
    }
}

/// A fixed address on the card with this last byte of its hardware address, and a bridge on that.
fn start(last: u8) -> (Links, Receiver<Event>, TempDir) {
    let data = json!({
        "links": [{"id": "a", "type": "phy", "ethernet_mac_address": format!("52:54:00:00:00:{last:02x}"),
                   "mtu": 1400}],
        "networks": [{"id": "n", "link": "a", "type": "ipv4", "ip_address": "192.0.2.5",
                      "netmask": "255.255.255.0", "gateway": "192.0.2.1"}]
    });
    let plan = network_data::read(&data.to_string()).unwrap();
    let (sender, events) = channel();
    let root = tempfile::tempdir().unwrap();
    (Links::new(root.path(), Source { plan, origin: "the test" }, sender), events, root)
}

/// Links that were given to a DHCP client.
fn clients(events: &Receiver<Event>) -> Vec<String> {
    let name = |event| match event {
        Event::Dhcp(name) => Some(name),
        _ => None,
    };
    events.try_iter().filter_map(name).collect()
}

fn own_addresses() -> Vec<(String, String)> {
    let found = addresses().unwrap().into_iter();
    found.map(|one| (one.interface, format!("{}/{}", one.address, one.prefix))).collect()
}

#[test]
fn loop_a_fixed_address_comes_with_its_card_whatever_else_is_there() {
    enter_network();
    let (mut links, events, _root) = start(2);
    links.appeared("eth0".into());
    links.settle();
    assert_eq!(own_addresses(), []);
    links.appeared("eth1".into());
    links.settle();
    assert_eq!(own_addresses(), [("eth1".to_owned(), "192.0.2.5/24".to_owned())]);
    assert_eq!(clients(&events), Vec::<String>::new());
    let mtu = fs::read_to_string("/proc/sys/net/ipv6/conf/eth1/mtu").unwrap();
    assert_eq!(mtu.trim(), "1400");
    let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap();
    assert!(routes.lines().any(|line| line.starts_with("eth1\t00000000\t010200C0")), "{routes}");
}

#[test]
fn loop_without_the_only_card_of_the_plan_every_link_asks_dhcp() {
    enter_network();
    let (mut links, events, _root) = start(9);
    for name in ["eth0", "eth1"] {
        links.appeared(name.into());
    }
    links.settle();
    assert_eq!(clients(&events), Vec::<String>::new());
    links.deadline = Some(Instant::now());
    links.settle();
    links.settle();
    assert_eq!(clients(&events), ["eth0", "eth1"]);
    links.settle();
    assert_eq!(clients(&events), Vec::<String>::new());
}

#[test]
fn loop_without_one_card_of_several_the_plan_goes_on() {
    enter_network();
    let (mut links, events, _root) = start(1);
    links.plan.links.push(PlannedLink::new("gone", Kind::Card(Which::Name("eth7".into()))));
    for name in ["eth0", "eth1"] {
        links.appeared(name.into());
    }
    links.settle();
    links.deadline = Some(Instant::now());
    links.settle();
    links.settle();
    assert_eq!(clients(&events), Vec::<String>::new());
    assert_eq!(own_addresses(), [("eth0".to_owned(), "192.0.2.5/24".to_owned())]);
}

#[test]
fn loop_a_link_that_the_kernel_refuses_leaves_all_to_dhcp() {
    enter_network();
    let (mut links, events, _root) = start(1);
    let Some(card) = links.plan.links.first_mut() else { panic!("no card") };
    card.name = "eth0".into();
    // A bridge cannot be a port of a bridge.
    links.plan.links.push(PlannedLink::new("br", Kind::Bridge(vec!["eth0".into()])));
    links.appeared("eth0".into());
    links.settle();
    links.settle();
    assert_eq!(clients(&events), ["eth0"]);
    assert!(Netlink::open().unwrap().links().unwrap().iter().all(|link| link.name != "br"));
}

#[test]
fn loop_x18_a_card_whose_first_up_fails_is_tried_again() {
    enter_network();
    let (mut links, events, _root) = start(1);
    let Some(card) = links.plan.links.first_mut() else { panic!("no card") };
    card.kind = Kind::Card(Which::Name("eth8".into()));
    // The kernel sets no link up that it does not have.
    for name in ["eth8", "eth9"] {
        links.appeared(name.into());
    }
    links.settle();
    assert_eq!(links.down.len(), 2, "{:?}", links.down);
    let netlink = Netlink::open().unwrap();
    for name in ["eth8", "eth9"] {
        netlink.add_bridge(name).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while !links.down.is_empty() {
        assert!(Instant::now() < deadline, "{:?}", links.down);
        std::thread::sleep(Duration::from_millis(50));
        links.settle();
    }
    assert_eq!(own_addresses(), [("eth8".to_owned(), "192.0.2.5/24".to_owned())]);
    assert_eq!(clients(&events), Vec::<String>::new());
    // Only a link that is up takes routes.
    let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap();
    assert!(routes.lines().any(|line| line.starts_with("eth8\t00000000\t010200C0")), "{routes}");
}
