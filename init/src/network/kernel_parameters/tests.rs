//! Kernel command lines as people write them, and as they should not.

use super::*;
use farrier_linux::kernel_line::{self, Parameters};
use farrier_linux::netlink::BondMode;
use proptest::prelude::*;

type Planned = std::result::Result<Option<Plan>, PlanError>;

fn read(line: &str) -> Planned {
    read_with(line, || panic!("{line} does not ask for the firmware's network"))
}

fn settings(parameters: &Parameters) -> Settings {
    let list = |name| {
        let names: Option<&String> = parameters.get(name);
        names.into_iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
    };
    Settings {
        boot_interface: parameters.get("BOOTIF").cloned(),
        bond: parameters.get(BOND).cloned(),
        vlans: list(VLANS),
        name_servers: list(DNS),
        routes: list(ROUTES),
        ..Settings::default()
    }
}

fn read_with(line: &str, of_firmware: impl FnOnce() -> Plan) -> Planned {
    plan(&kernel_line::values(line, "ip"), &settings(&kernel_line::parse(line)), of_firmware)
}

#[test]
fn x19_ibft_is_the_network_of_the_firmware() {
    let mut card =
        PlannedLink::new("ethernet0", Kind::Card(Which::Mac(MacAddress([0x52, 0x54, 0, 0, 0, 10]))));
    card.addresses.push("192.0.2.15/24".parse().unwrap());
    let firmware = || Plan { links: vec![card.clone()], ..Plan::automatic() };
    let plan = read_with("ip=ibft", firmware).unwrap().unwrap();
    assert_eq!(plan, firmware(), "others than its cards find out by themselves");
    let plan = read_with("ip=ibft farrier-net-dns=192.0.2.53", firmware).unwrap().unwrap();
    assert_eq!(
        (plan.name_servers.len(), show(&plan, "ethernet0")),
        (1, "192.0.2.15/24 via  fixed fixed".into())
    );
    assert_eq!(plan.others, Automatic::ALL);
    let plan = read_with("ip=eth1:dhcp ip=ibft", firmware).unwrap().unwrap();
    assert_eq!((plan.links.len(), plan.others), (2, Automatic::NOTHING));
    let route = "ip=ibft farrier-net-routes=198.51.100.0/24@192.0.2.9";
    assert_eq!(
        show(&read_with(route, firmware).unwrap().unwrap(), "ethernet0"),
        "192.0.2.15/24 via 192.0.2.9 fixed fixed"
    );
    assert_eq!(read_with("ip=ibft", Plan::automatic).unwrap(), None);
}

/// What a link gets, as one line.
fn show(plan: &Plan, name: &str) -> String {
    let Some(link) = plan.link(name) else { return "-".to_owned() };
    let addresses: Vec<_> = link.addresses.iter().map(ToString::to_string).collect();
    let gateways: Vec<_> =
        link.routes.iter().filter_map(|route| route.gateway).map(|one| one.to_string()).collect();
    let ipv6 = match link.automatic.ipv6 {
        Ipv6::Fixed => "fixed",
        Ipv6::ByRouter => "router",
        Ipv6::Dhcp => "dhcp6",
    };
    let dhcpv4 = if link.automatic.dhcpv4 { "dhcp4" } else { "fixed" };
    format!("{} via {} {dhcpv4} {ipv6}", addresses.join(","), gateways.join(","))
}

#[test]
fn forms_of_the_kernel_and_of_dracut() {
    let any = Which::Any.to_string();
    for (line, name, expected) in [
        (
            "ip=192.0.2.5::192.0.2.1:255.255.255.0:host:eth0:off",
            "eth0",
            "192.0.2.5/24 via 192.0.2.1 fixed fixed",
        ),
        ("ip=192.0.2.5::192.0.2.1:25::eth0:none", "eth0", "192.0.2.5/25 via 192.0.2.1 fixed fixed"),
        ("ip=192.0.2.5/26:::::eth0", "eth0", "192.0.2.5/26 via  fixed fixed"),
        ("ip=10.1.2.3::10.0.0.1", &any, "10.1.2.3/8 via 10.0.0.1 fixed fixed"),
        (
            "ip=192.0.2.5:192.0.2.9:192.0.2.1:255.255.255.0 BOOTIF=01-52-54-00-00-00-0a",
            "52:54:00:00:00:0a",
            "192.0.2.5/24 via 192.0.2.1 fixed fixed",
        ),
        (
            "ip=[2001:db8::5]::[2001:db8::1]:64::eth0:none",
            "eth0",
            "2001:db8::5/64 via 2001:db8::1 fixed fixed",
        ),
        ("ip=[2001:db8::5]::[fe80::1]:::eth0:none", "eth0", "2001:db8::5/64 via fe80::1 fixed fixed"),
        ("ip=eth1:dhcp", "eth1", " via  dhcp4 router"),
        ("ip=eth1:dhcp6", "eth1", " via  fixed dhcp6"),
        ("ip=eth1:auto6", "eth1", " via  fixed router"),
        ("ip=:::::eth2:dhcp", "eth2", " via  dhcp4 router"),
        ("ip=eth0.100:dhcp", "eth0.100", " via  dhcp4 router"),
        ("ip=eth0.100:dhcp", "eth0", " via  fixed fixed"),
        (
            "ip=192.0.2.5:::24::eth0:none ip=198.51.100.5:::24::eth1:none",
            "eth0",
            "192.0.2.5/24 via  fixed fixed",
        ),
        (
            "ip=192.0.2.5:::24::eth0:none ip=198.51.100.5:::24::eth1:none",
            "eth1",
            "198.51.100.5/24 via  fixed fixed",
        ),
        ("farrier-net-vlans=eth0.100", "eth0.100", " via  dhcp4 router"),
        ("farrier-net-vlans=eth0.100", "eth0", " via  fixed fixed"),
        (
            "farrier-net-bond=bond0:eth0,eth1 ip=192.0.2.5:::24::bond0:none",
            "bond0",
            "192.0.2.5/24 via  fixed fixed",
        ),
        ("farrier-net-bond=bond0:eth0,eth1", "bond0", " via  dhcp4 router"),
        ("farrier-net-bond=bond0:eth0,eth1 farrier-net-vlans=bond0.7", "bond0", " via  fixed fixed"),
        ("farrier-net-bond=bond0:eth0,eth1 farrier-net-vlans=bond0.7", "bond0.7", " via  dhcp4 router"),
        (
            "ip=192.0.2.5:::24::eth0:none farrier-net-routes=198.51.100.0/24@192.0.2.9",
            "eth0",
            "192.0.2.5/24 via 192.0.2.9 fixed fixed",
        ),
    ] {
        let plan = read(line).unwrap().unwrap();
        assert_eq!(show(&plan, name), expected, "{line}");
        assert_eq!(plan.others, Automatic::NOTHING, "{line}");
    }
}

#[test]
fn without_a_link_every_link_is_meant() {
    for (line, expected) in [
        ("ip=dhcp6", Automatic { dhcpv4: false, ipv6: Ipv6::Dhcp }),
        ("ip=auto6", Automatic { dhcpv4: false, ipv6: Ipv6::ByRouter }),
        ("ip=off", Automatic::NOTHING),
        ("ip=::::::none", Automatic::NOTHING),
        ("farrier-net-dns=192.0.2.53", Automatic::ALL),
        ("ip=::::host::dhcp", Automatic::ALL),
    ] {
        let plan = read(line).unwrap().unwrap();
        assert_eq!((plan.others, plan.links.len()), (expected, 0), "{line}");
    }
    for line in ["", "ip=dhcp", "ip=any", "ip=on", "quiet"] {
        assert_eq!(read(line).unwrap(), None, "{line}");
    }
}

#[test]
fn what_stands_behind_the_method() {
    let plan =
        read("ip=192.0.2.5:::24:name:eth0:none:192.0.2.53:[2001:db8::53]:192.0.2.123").unwrap().unwrap();
    let servers: Vec<_> = plan.name_servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["192.0.2.53", "2001:db8::53"]);
    assert_eq!(plan.host_name.as_deref(), Some("name"));
    for line in ["ip=192.0.2.5:::24::eth0:none:9000:52:54:00:00:00:0a", "ip=eth0:dhcp:9000:52:54:00:00:00:0a"]
    {
        let plan = read(line).unwrap().unwrap();
        let link = plan.link("eth0").unwrap();
        assert_eq!((link.mtu, link.mac), (Some(9000), MacAddress::parse("52:54:00:00:00:0a")), "{line}");
    }
    let line = "farrier-net-bond=b:52-54-00-00-00-0a,eth1:mode=802.3ad,miimon=50:9000 farrier-net-dns=192.0.2.1,[::1]";
    let plan = read(line).unwrap().unwrap();
    let ports = vec!["52-54-00-00-00-0a".to_owned(), "eth1".to_owned()];
    let bond = Bond { mode: BondMode::Ieee8023Ad, miimon: 50, ..Bond::default() };
    let link = plan.link("b").unwrap();
    assert_eq!((&link.kind, link.mtu), (&Kind::Bond(bond, ports), Some(9000)));
    let card = plan.link("52-54-00-00-00-0a").unwrap();
    assert_eq!(card.kind, Kind::Card(Which::Mac(MacAddress([0x52, 0x54, 0, 0, 0, 10]))));
    assert_eq!(plan.name_servers.len(), 2);
}

#[test]
fn what_is_wrong_is_named() {
    for (line, words) in [
        ("ip=here", vec!["ip=here", "here"]),
        ("ip=192.0.2.5:::255.0.255.0::eth0:none", vec!["255.0.255.0", "mask"]),
        ("ip=192.0.2.5:::24::eth0:ibft", vec!["ibft", "method"]),
        ("ip=192.0.2.5::nowhere:24::eth0:none", vec!["nowhere", "IP address"]),
        ("ip=eth0:dhcp:tiny", vec!["tiny", "bytes"]),
        ("ip=eth0:dhcp:1500:xx", vec!["xx", "hardware address"]),
        ("ip=192.0.2.5:::24::eth0:none ip=192.0.2.5:::24::eth1:none", vec!["192.0.2.5", "twice"]),
        ("farrier-net-vlans=eth0", vec!["farrier-net-vlans=eth0", "VLAN"]),
        ("farrier-net-vlans=eth0.5000", vec!["eth0.5000", "5000"]),
        ("farrier-net-bond=bond0", vec!["farrier-net-bond=bond0", "of the form"]),
        ("farrier-net-bond=bond0:eth0:mode=best", vec!["mode=best", "active-backup"]),
        ("farrier-net-dns=here", vec!["farrier-net-dns", "here"]),
        ("farrier-net-routes=192.0.2.0/24", vec!["farrier-net-routes", "IP address"]),
        ("farrier-net-routes=192.0.2.0/24@192.0.2.1", vec!["192.0.2.1", "ip="]),
    ] {
        let text = faults(line);
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    }
}

/// What is told of a command line that cannot be used, or of parts of one.
fn faults(line: &str) -> String {
    let mut faults = Vec::new();
    let (ip, settings) = (kernel_line::values(line, "ip"), settings(&kernel_line::parse(line)));
    match plan_of_parts(&ip, &settings, Plan::automatic, &mut faults) {
        Ok(_) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a04_a_parameter_that_cannot_be_used_takes_no_other_one_with_it() {
    let good = "ip=192.0.2.5::192.0.2.1:24:name:eth0:none:192.0.2.53 farrier-net-dns=192.0.2.54 \
                farrier-net-routes=198.51.100.0/24@192.0.2.9";
    let plan = |line: &str| read(line).unwrap().unwrap();
    let whole = plan(good);
    for further in [
        "ip=here",
        "ip=192.0.2.6:::255.0.255.0::eth1:none",
        "ip=192.0.2.6:::24::eth1:ibft",
        "farrier-net-vlans=eth7",
        "farrier-net-vlans=eth7.5000",
        "farrier-net-bond=bond0",
    ] {
        assert_eq!(plan(&format!("{good} {further}")), whole, "{further}");
        assert_ne!(faults(&format!("{good} {further}")), "", "{further}");
    }
    let eth0 = "192.0.2.5/24 via 192.0.2.1,192.0.2.9 fixed fixed";
    assert_eq!(show(&whole, "eth0"), eth0);
    for (part, broken, link, servers) in [
        ("192.0.2.1:24", "nowhere:24", "192.0.2.5/24 via 192.0.2.9 fixed fixed", 2),
        ("none:192.0.2.53", "none:here", eth0, 1),
        ("dns=192.0.2.54", "dns=here", eth0, 1),
        ("dns=192.0.2.54", "dns=here,192.0.2.54", eth0, 2),
        ("24@192.0.2.9", "24@here", "192.0.2.5/24 via 192.0.2.1 fixed fixed", 2),
        ("24@192.0.2.9", "99@192.0.2.9", "192.0.2.5/24 via 192.0.2.1 fixed fixed", 2),
        ("24@192.0.2.9", "24@203.0.113.1", "192.0.2.5/24 via 192.0.2.1 fixed fixed", 2),
    ] {
        let line = good.replace(part, broken);
        let plan = plan(&line);
        assert_eq!((show(&plan, "eth0").as_str(), plan.name_servers.len()), (link, servers), "{line}");
        assert_eq!(plan.others, Automatic::NOTHING, "{line}");
    }
    let bond = plan("farrier-net-bond=b:eth0,eth1:mode=best,miimon=50:tiny");
    let expected = Bond { miimon: 50, ..Bond::default() };
    assert_eq!(bond.link("b").unwrap().kind, Kind::Bond(expected, vec!["eth0".into(), "eth1".into()]));
    let card = plan("ip=eth0:dhcp:tiny:xx");
    assert_eq!(show(&card, "eth0"), " via  dhcp4 router");
}

proptest! {
    #[test]
    fn no_value_is_too_odd(ip in ".*", bond in ".*", vlan in ".*", route in ".*") {
        let settings = Settings {
            bond: Some(bond),
            vlans: vec![vlan],
            routes: vec![route],
            ..Settings::default()
        };
        plan(&[ip], &settings, Plan::automatic).ok();
    }

    #[test]
    fn no_row_of_fields_is_too_odd(fields in prop::collection::vec(
        prop::sample::select(vec!["", "192.0.2.5", "[2001:db8::1]", "24", "eth0", "dhcp", "none", "9000", "52"]), 0..14,
    )) {
        plan(&[fields.join(":")], &Settings::default(), Plan::automatic).ok();
    }
}
