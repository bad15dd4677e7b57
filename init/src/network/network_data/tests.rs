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
        let text = read(&data.to_string()).unwrap_err().to_string();
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
        let text = one(network).unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    }
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
