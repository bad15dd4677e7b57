//! Descriptions as conductors write them, and as they should not.

use super::*;
use farrier_linux::netlink::{BondLacpRate, BondMode, BondXmitHashPolicy};
use proptest::prelude::*;
use serde_json::json;

/// A bond of two cards with a VLAN and static IPv6 on it.
fn bonded() -> Value {
    json!({
        "links": [
            {"id": "vlan0", "type": "vlan", "vlan_link": "bond0", "vlan_id": "100", "mtu": 9000,
             "vlan_mac_address": "52:54:00:00:00:0A"},
            {"id": "bond0", "type": "bond", "bond_mode": "802.3ad", "bond_links": ["tap1", "tap2"],
             "bond_miimon": "50", "bond_lacp_rate": "fast", "bond_xmit_hash_policy": "layer3+4",
             "ethernet_mac_address": "52:54:00:00:00:0a", "mtu": null},
            {"id": "tap1", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:0A", "vif_id": "x"},
            {"id": "tap2", "type": "phy", "ethernet_mac_address": "52-54-00-00-00-0b"}
        ],
        "networks": [
            {"id": "network0", "link": "vlan0", "network_id": "n", "type": "ipv6",
             "ip_address": "2001:db8::15", "netmask": "ffff:ffff:ffff:ffff::",
             "routes": [{"network": "::", "netmask": "::", "gateway": "2001:db8::1",
                         "services": [{"type": "dns", "address": "2001:db8::53"}]}]}
        ],
        "services": [{"type": "dns", "address": "192.0.2.53"}, {"type": "ntp", "address": "192.0.2.1"}]
    })
}

fn plan(data: &Value) -> Plan {
    read(&data.to_string()).unwrap()
}

#[test]
fn a_bond_with_a_vlan_and_fixed_ipv6_is_understood() {
    let plan = plan(&bonded());
    let names: Vec<_> = plan.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["tap1", "tap2", "bond0", "vlan0"]);
    let bond = plan.link("bond0").unwrap();
    let expected = Bond {
        mode: BondMode::Ieee8023Ad,
        miimon: 50,
        lacp_rate: Some(BondLacpRate::Fast),
        hash_policy: Some(BondXmitHashPolicy::Layer34),
        ..Bond::default()
    };
    assert_eq!(bond.kind, Kind::Bond(expected, vec!["tap1".into(), "tap2".into()]));
    let vlan = plan.link("vlan0").unwrap();
    assert_eq!(vlan.kind, Kind::Vlan { number: 100, parent: "bond0".into() });
    assert_eq!(vlan.mac, MacAddress::parse("52:54:00:00:00:0a"));
    assert_eq!(vlan.addresses, ["2001:db8::15/64".parse().unwrap()]);
    assert_eq!(vlan.routes, [Route::default_through("2001:db8::1".parse().unwrap())]);
    assert_eq!(vlan.automatic, Automatic::NOTHING);
    assert_eq!(plan.link("tap2").unwrap().mtu, Some(9000));
    let servers: Vec<IpAddr> = ["192.0.2.53", "2001:db8::53"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(plan.name_servers, servers);
    assert_eq!(plan.others, Automatic::NOTHING);
}

/// The link of a description with one card and one network.
fn one(network: Value) -> Result<PlannedLink> {
    let mut network = network;
    network["id"] = "n".into();
    network["link"] = "l".into();
    let data = json!({"links": [{"id": "l", "type": "ovs", "name": "eth0"}], "networks": [network]});
    Ok(read(&data.to_string())?.links.remove(0))
}

#[test]
fn every_type_of_network_is_understood() {
    for (network, addresses, dhcpv4, ipv6) in [
        (
            json!({"type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.255.254.0"}),
            vec!["192.0.2.5/23"],
            false,
            Ipv6::Fixed,
        ),
        (
            json!({"type": "ipv4", "ip_address": "192.0.2.5", "netmask": 24}),
            vec!["192.0.2.5/24"],
            false,
            Ipv6::Fixed,
        ),
        (
            json!({"type": "ipv4", "ip_address": "192.0.2.5/25", "netmask": null}),
            vec!["192.0.2.5/25"],
            false,
            Ipv6::Fixed,
        ),
        (
            json!({"type": "ipv6", "ip_address": "2001:db8::5/64", "netmask": "ffff::"}),
            vec!["2001:db8::5/64"],
            false,
            Ipv6::Fixed,
        ),
        (
            json!({"type": "ipv6", "ip_address": "2001:db8::5", "netmask": "56"}),
            vec!["2001:db8::5/56"],
            false,
            Ipv6::Fixed,
        ),
        (json!({"type": "ipv4_dhcp"}), vec![], true, Ipv6::Fixed),
        (json!({"type": "ipv6_slaac"}), vec![], false, Ipv6::ByRouter),
        (json!({"type": "ipv6_dhcpv6-stateless"}), vec![], false, Ipv6::ByRouter),
        (json!({"type": "ipv6_dhcpv6-stateful"}), vec![], false, Ipv6::Dhcp),
        (json!({"type": "ipv6_dhcp"}), vec![], false, Ipv6::Dhcp),
    ] {
        let link = one(network.clone()).unwrap();
        let found: Vec<_> = link.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(
            (found, link.automatic),
            (addresses.iter().map(|text| (*text).to_owned()).collect(), Automatic { dhcpv4, ipv6 }),
            "{network}"
        );
        assert_eq!(link.kind, Kind::Card(Which::Name("eth0".into())));
    }
}

#[test]
fn a_description_without_links_leaves_them_alone() {
    for text in ["{}", r#"{"links": null, "networks": [], "services": []}"#] {
        assert_eq!(read(text).unwrap(), Plan::automatic(), "{text}");
    }
}

#[test]
fn routes_have_masks_lengths_or_no_gateway() {
    let network = json!({"type": "ipv4_dhcp", "gateway": "192.0.2.1", "routes": [
        {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1"},
        {"network": "198.51.100.7/24", "gateway": "192.0.2.2"},
        {"network": "203.0.113.0", "netmask": "255.255.255.0"},
    ]});
    let found = one(network).unwrap().routes;
    let route = |destination: &str, gateway: Option<&str>| Route {
        destination: destination.parse().unwrap(),
        gateway: gateway.map(|text| text.parse().unwrap()),
    };
    let expected = [
        route("0.0.0.0/0", Some("192.0.2.1")),
        route("198.51.100.0/24", Some("192.0.2.2")),
        route("203.0.113.0/24", None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_wrong_is_named() {
    let links = |link: Value| json!({"links": [link]});
    for (data, words) in [
        (json!([]), vec!["cannot be read"]),
        (json!({"links": [{"type": "phy"}]}), vec!["id"]),
        (links(json!({"id": "a", "ethernet_mac_address": "5"})), vec!["ethernet_mac_address", "link a"]),
        (links(json!({"id": "a", "mtu": "huge"})), vec!["mtu of link a", "huge"]),
        (links(json!({"id": "a", "type": "vlan", "vlan_link": "b"})), vec!["vlan_id of link a is missing"]),
        (links(json!({"id": "a", "type": "vlan", "vlan_link": "b", "vlan_id": 4095})), vec!["4095"]),
        (links(json!({"id": "a", "type": "vlan", "vlan_link": "b", "vlan_id": 5})), vec!["a needs b"]),
        (links(json!({"id": "a", "type": "bond", "bond_mode": "best"})), vec!["bond_mode", "best"]),
        (json!({"networks": [{"id": "n", "link": "x", "type": "ipv4_dhcp"}]}), vec!["network n", "\"x\""]),
        (json!({"services": [{"type": "dns", "address": "here"}]}), vec!["dns", "here"]),
    ] {
        let text = faults(&data).join("; ");
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    }
    for (network, words) in [
        (json!({"type": "ipv4"}), vec!["ip_address of network n is missing"]),
        (json!({"type": "ipv4", "ip_address": "192.0.2.5"}), vec!["netmask of network n is missing"]),
        (json!({"type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.0.255.0"}), vec!["255.0.255.0"]),
        (json!({"type": "ipv4", "ip_address": "here", "netmask": 24}), vec!["ip_address", "here"]),
        (json!({"type": "token_ring"}), vec!["type of network n", "token_ring"]),
        (json!({"type": "ipv4_dhcp", "gateway": "x"}), vec!["gateway of network n"]),
        (
            json!({"type": "ipv4_dhcp", "routes": [{"network": "::/0", "gateway": "192.0.2.1"}]}),
            vec!["a route of network n", "192.0.2.1"],
        ),
    ] {
        let mut network = network;
        (network["id"], network["link"]) = ("n".into(), "l".into());
        let text = faults(&json!({"links": [{"id": "l"}], "networks": [network]})).join("; ");
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    }
}

/// What is told of a description that cannot be used, or of parts of one.
fn faults(data: &Value) -> Vec<String> {
    match read_parts(&data.to_string()) {
        Ok((_, faults)) => faults.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// Every part of a good description in turn is of no use.
#[test]
fn a04_a_part_that_cannot_be_used_takes_no_other_part_with_it() {
    let good = || {
        json!({
            "links": [
                {"id": "a", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01", "mtu": 1400},
                {"id": "b", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:02"},
                {"id": "bond", "type": "bond", "bond_mode": "4", "bond_links": ["b"],
                 "ethernet_mac_address": "52:54:00:00:00:02"},
                {"id": "vlan", "type": "vlan", "vlan_link": "bond", "vlan_id": 7,
                 "vlan_mac_address": "52:54:00:00:00:02"}
            ],
            "networks": [
                {"id": "n", "link": "a", "type": "ipv4", "ip_address": "192.0.2.5", "netmask": 24,
                 "gateway": "192.0.2.1", "routes": [
                    {"network": "198.51.100.0/24", "gateway": "192.0.2.2"},
                    {"network": "203.0.113.0/24", "gateway": "192.0.2.3"}]},
                {"id": "m", "link": "vlan", "type": "ipv4_dhcp"}
            ],
            "services": [{"type": "dns", "address": "192.0.2.53"}, {"type": "dns", "address": "192.0.2.54"}]
        })
    };
    let show = |data: &Value| {
        let plan = plan(data);
        let link = |link: &PlannedLink| {
            let mut lines = vec![format!("{} {:?} {:?}", link.name, link.mtu, link.automatic)];
            lines.extend(link.addresses.iter().map(|address| format!("{} has {address}", link.name)));
            lines.extend(
                link.routes.iter().map(|route| format!("{} leads to {}", link.name, route.destination)),
            );
            lines
        };
        let mut lines: Vec<String> = plan.links.iter().flat_map(link).collect();
        lines.extend(plan.name_servers.iter().map(ToString::to_string));
        lines
    };
    let whole = show(&good());
    for (pointer, value, lost) in [
        ("/links/0/mtu", json!("huge"), 1),
        ("/links/0/ethernet_mac_address", json!("5"), 5),
        ("/links/1/ethernet_mac_address", json!("5"), 3),
        ("/links/2/bond_mode", json!("best"), 0),
        ("/links/2/bond_links", json!(["b", "gone"]), 0),
        ("/links/2/ethernet_mac_address", json!("5"), 0),
        ("/links/3/vlan_id", json!(4095), 1),
        ("/links/3/vlan_link", json!("gone"), 1),
        ("/links/3/vlan_mac_address", json!("5"), 0),
        ("/networks/0/ip_address", json!("here"), 2),
        ("/networks/0/netmask", json!("255.0.255.0"), 2),
        ("/networks/0/type", json!("token_ring"), 2),
        ("/networks/0/link", json!("gone"), 4),
        ("/networks/0/gateway", json!("there"), 1),
        ("/networks/0/routes/0/gateway", json!("2001:db8::1"), 1),
        ("/networks/0/routes/0/network", json!("198.51.100.0/99"), 1),
        ("/networks/1/type", json!(""), 1),
        ("/networks/1/link", json!("gone"), 1),
        ("/services/0/address", json!("here"), 1),
        ("/services/0/address", json!(null), 1),
    ] {
        let mut data = good();
        *data.pointer_mut(pointer).unwrap() = value;
        let held = show(&data);
        let gone: Vec<_> = whole.iter().filter(|line| !held.contains(line)).collect();
        assert_eq!(gone.len(), lost, "{pointer}: {gone:?}");
        assert!(!faults(&data).is_empty(), "{pointer}");
    }
    // A description of which nothing is of use is none.
    for text in [
        r#"{"links": [{"id": "a"}], "networks": [{"link": "b", "type": "ipv4_dhcp"}]}"#,
        r#"{"links": [{}]}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
    // Without its address a link finds out by itself what it needs.
    let mut data = good();
    data["networks"][0]["ip_address"] = "here".into();
    assert_eq!(plan(&data).link("a").unwrap().automatic, Automatic::ALL);
}

/// What cloud-init stumbled over, in the forms in which its reporters had it.
#[test]
fn a19_bonds_and_vlans_are_understood_without_names_and_with_one_address_twice() {
    let mac = "fa:16:3e:ed:9a:59";
    let plan = plan(&json!({
        "links": [
            {"id": "ens1f0np0", "type": "phy", "name": null, "ethernet_mac_address": mac, "mtu": "9000"},
            {"id": "ens1f1np1", "type": null, "ethernet_mac_address": "fa:16:3e:ed:9a:60", "vif_id": null},
            {"id": "bond0", "type": "bond", "bond_mode": "4", "bond_links": ["ens1f0np0", "ens1f1np1"],
             "bond_xmit_hash_policy": "layer3+4", "bond_miimon": 100, "ethernet_mac_address": mac},
            {"id": "vlan2", "type": "vlan", "vlan_link": "bond0", "vlan_id": 602, "vlan_mac_address": mac}
        ],
        "networks": [
            {"id": "n0", "link": "bond0", "type": "ipv4_dhcp", "network_id": null, "routes": null},
            {"id": "n1", "link": "vlan2", "type": "ipv4", "ip_address": "172.19.0.130",
             "netmask": "255.255.252.0", "routes": [
                {"network": "192.168.1.1", "netmask": "255.255.255.255", "gateway": "172.19.3.254"},
                {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "172.19.3.254"}]},
            {"id": "n2", "link": "vlan2", "type": "ipv6", "ip_address": "2001:db8::5", "netmask": "64",
             "gateway": "2001:db8::1"}
        ],
        "services": [{"type": "dns", "address": "8.8.8.8"}]
    }));
    let bond = plan.link("bond0").unwrap();
    let Kind::Bond(made, ports) = &bond.kind else { panic!("{bond:?}") };
    assert_eq!((made.mode, made.hash_policy), (BondMode::Ieee8023Ad, Some(BondXmitHashPolicy::Layer34)));
    assert_eq!((ports.len(), bond.mac, bond.automatic.dhcpv4), (2, MacAddress::parse(mac), true));
    let vlan = plan.link("vlan2").unwrap();
    assert_eq!(vlan.kind, Kind::Vlan { number: 602, parent: "bond0".into() });
    let routes: Vec<_> = vlan.routes.iter().map(|route| route.destination.to_string()).collect();
    assert_eq!(routes, ["192.168.1.1/32", "0.0.0.0/0", "::/0"]);
    assert_eq!((vlan.mac, vlan.addresses.len()), (MacAddress::parse(mac), 2));
    let second = plan.link("ens1f1np1").unwrap();
    assert_eq!(second.kind, Kind::Card(Which::Mac(MacAddress::parse("fa:16:3e:ed:9a:60").unwrap())));
    assert_eq!(plan.links.len(), 4);
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".*") {
        read(&text).ok();
    }

    /// One value of a good description is replaced by another one.
    #[test]
    fn no_value_is_too_odd(
        pointer in prop::sample::select(vec![
            "/links/0/vlan_id", "/links/0/vlan_link", "/links/1/bond_links", "/links/1/bond_mode",
            "/links/1/bond_miimon", "/links/2/ethernet_mac_address", "/links/3/id", "/links/3/type",
            "/links/0/mtu", "/networks/0/ip_address", "/networks/0/netmask", "/networks/0/routes",
            "/networks/0/routes/0/network", "/networks/0/type", "/services/0/address", "/services",
        ]),
        value in prop_oneof![
            Just(Value::Null), any::<i64>().prop_map(Value::from), ".*".prop_map(Value::from),
            Just(json!([])), Just(json!({})), Just(json!(["vlan0", "tap1", "tap1"])),
        ],
    ) {
        let mut data = bonded();
        *data.pointer_mut(pointer).unwrap() = value;
        read(&data.to_string()).ok();
    }
}
