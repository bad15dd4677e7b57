//! How the ramdisk's network comes up: links as the conductor, the kernel command line, the switch and
//! the routers say.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::bmc::media;
use farrier_tests::environment;
use farrier_tests::machine::{Boot, Firmware, Hardware, Medium, free_port};
use farrier_tests::network::router::{GIVEN, NAME_SERVER};
use farrier_tests::network::switch::{Behaviour, Switch};
use serde_json::{Value, json};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long an emulated machine may take to its first heartbeat.
const PATIENCE: Duration = Duration::from_secs(240);
/// Hardware addresses of the machine's cards.
const MACS: [&str; 2] = ["52:54:00:fa:00:21", "52:54:00:fa:00:22"];
/// QEMU's network of IPv6 alone, in which this machine is `fd00::2`.
const ONLY_IPV6: &str = "ipv4=off,ipv6=on,ipv6-prefix=fd00::,ipv6-prefixlen=64,ipv6-host=fd00::2";

/// What is said of the network, and where the conductor is.
struct Lab<'a> {
    behaviour: Behaviour,
    /// Options of QEMU's user network.
    network: &'a str,
    /// This machine as the other one knows it, as URLs write it.
    host: &'a str,
    /// Where the conductor listens.
    listen: IpAddr,
    /// Further kernel parameters.
    parameters: &'a str,
    /// What the boot medium says; no medium without it.
    network_data: Option<String>,
}

/// What was seen.
struct Seen {
    callback_url: String,
    console: String,
    dhcp_requests: usize,
}

impl Lab<'_> {
    /// Boots the machine and waits for its first heartbeat.
    fn boot(&self) -> Seen {
        let folder = TempDir::new().unwrap();
        let conductor = StubConductor::start_on(self.listen).unwrap();
        let switch = Switch::start(folder.path(), &MACS, self.behaviour).unwrap();
        let medium = self.network_data.as_ref().map(|text| boot_medium(folder.path(), text));
        let hardware = Hardware {
            mac: String::new(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: Vec::new(),
            media: medium.into_iter().map(Medium::Optical).collect(),
            folder: folder.path().to_owned(),
        };
        let parameters =
            format!("console=ttyS0 ipa-api-url={} {}", conductor.url_at(self.host), self.parameters);
        let dist = environment::path("FARRIER_DIST");
        let boot = Boot::Ramdisk(&dist, &parameters);
        let _machine =
            hardware.boot_without_network(Firmware::Bios, boot, &switch.arguments(self.network)).unwrap();
        let heartbeat = conductor.wait_for("/v1/heartbeat", PATIENCE);
        if self.behaviour.bundles {
            switch.wait_until_bundled(PATIENCE).unwrap();
        }
        let console = hardware.console().text();
        let Some(heartbeat) = heartbeat else { panic!("no heartbeat:\n{console}") };
        let callback_url = heartbeat["callback_url"].as_str().unwrap().to_owned();
        Seen { callback_url, console, dhcp_requests: switch.dhcp_requests() }
    }
}

/// A boot medium as Ironic makes it, with a description of the network.
fn boot_medium(folder: &Path, network_data: &str) -> PathBuf {
    let content = folder.join("content");
    let directory = content.join("openstack/latest");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("network_data.json"), network_data).unwrap();
    let file = folder.join("boot.iso");
    media::iso(&file, "config-2", "ab-12", &content).unwrap();
    file
}

/// A bond of both cards with VLAN 100 and a fixed IPv6 address on it.
fn bonded(mode: &str) -> Value {
    json!({
        "links": [
            {"id": "card0", "type": "phy", "ethernet_mac_address": MACS[0]},
            {"id": "card1", "type": "phy", "ethernet_mac_address": MACS[1]},
            {"id": "bond0", "type": "bond", "bond_mode": mode, "bond_links": ["card0", "card1"],
             "bond_miimon": 100, "ethernet_mac_address": MACS[0]},
            {"id": "tenant", "type": "vlan", "vlan_link": "bond0", "vlan_id": 100,
             "vlan_mac_address": MACS[0], "mtu": 1400}
        ],
        "networks": [{"id": "network0", "link": "tenant", "type": "ipv6", "ip_address": "fd00::15",
                      "netmask": "ffff:ffff:ffff:ffff::"}],
        "services": [{"type": "dns", "address": "fd00::3"}]
    })
}

#[test]
fn vm_s14_a_bond_with_a_vlan_and_fixed_ipv6_needs_no_dhcp_server() {
    let seen = Lab {
        behaviour: Behaviour { vlan: Some(100), is_silent: true, ..Behaviour::default() },
        network: ONLY_IPV6,
        host: "[fd00::2]",
        listen: Ipv6Addr::LOCALHOST.into(),
        parameters: "boot_method=vmedia ir_pub_id=ab-12",
        network_data: Some(bonded("active-backup").to_string()),
    }
    .boot();
    assert!(seen.callback_url.starts_with("https://[fd00::15]:"), "{}", seen.callback_url);
    assert_eq!(seen.dhcp_requests, 0, "{}", seen.console);
    for port in ["port=\"eth0\"", "port=\"eth1\""] {
        assert!(seen.console.contains(port), "{}", seen.console);
    }
}

#[test]
fn vm_a_bond_is_bundled_with_a_switch_that_speaks_lacp() {
    let seen = Lab {
        behaviour: Behaviour { vlan: Some(100), is_silent: true, bundles: true, ..Behaviour::default() },
        network: ONLY_IPV6,
        host: "[fd00::2]",
        listen: Ipv6Addr::LOCALHOST.into(),
        parameters: "boot_method=vmedia ir_pub_id=ab-12",
        network_data: Some(bonded("802.3ad").to_string()),
    }
    .boot();
    assert!(seen.callback_url.starts_with("https://[fd00::15]:"), "{}", seen.callback_url);
}

#[test]
fn vm_a_bridge_of_network_data_has_the_address() {
    let data = json!({
        "links": [
            {"id": "card0", "type": "phy", "ethernet_mac_address": MACS[0]},
            {"id": "br0", "type": "bridge", "bridge_links": ["card0"]}
        ],
        "networks": [{"id": "n", "link": "br0", "type": "ipv4", "ip_address": "10.0.2.21", "netmask": "24"}]
    });
    let seen = Lab {
        behaviour: Behaviour { is_silent: true, ..Behaviour::default() },
        network: "ipv6=off",
        host: "10.0.2.2",
        listen: Ipv4Addr::LOCALHOST.into(),
        parameters: "boot_method=vmedia ir_pub_id=ab-12",
        network_data: Some(data.to_string()),
    }
    .boot();
    assert!(seen.callback_url.starts_with("https://10.0.2.21:"), "{}", seen.callback_url);
    assert!(seen.console.contains("interface=\"br0\" port=\"eth0\""), "{}", seen.console);
}

#[test]
fn vm_network_data_that_cannot_be_used_leaves_the_machine_to_dhcp() {
    let mut absent = bonded("active-backup");
    for (link, mac) in [(0, "52:54:00:fa:00:31"), (1, "52:54:00:fa:00:32")] {
        absent["links"][link]["ethernet_mac_address"] = mac.into();
    }
    for (data, line) in [
        ("{\"links\": [".to_owned(), "is not used: it cannot be read"),
        (absent.to_string(), "52:54:00:fa:00:31, 52:54:00:fa:00:32 is not there"),
    ] {
        let seen = Lab {
            behaviour: Behaviour::default(),
            network: "ipv6=off",
            host: "10.0.2.2",
            listen: Ipv4Addr::LOCALHOST.into(),
            parameters: "boot_method=vmedia ir_pub_id=ab-12",
            network_data: Some(data),
        }
        .boot();
        assert!(seen.callback_url.starts_with("https://10.0.2."), "{}", seen.callback_url);
        assert!(seen.console.contains(line), "{}", seen.console);
    }
}

#[test]
fn vm_an_address_that_another_machine_has_is_given_up() {
    // Those of this machine in the two networks.
    for (kind, address, netmask, network, host, listen) in [
        ("ipv4", "10.0.2.2", "24", "ipv6=off", "10.0.2.2", IpAddr::from(Ipv4Addr::LOCALHOST)),
        ("ipv6", "fd00::2", "64", ONLY_IPV6, "[fd00::2]", Ipv6Addr::LOCALHOST.into()),
    ] {
        let data = json!({
            "links": [{"id": "card0", "type": "phy", "ethernet_mac_address": MACS[0]}],
            "networks": [{"id": "n", "link": "card0", "type": kind, "ip_address": address, "netmask": netmask}]
        });
        let seen = Lab {
            behaviour: Behaviour::default(),
            network,
            host,
            listen,
            parameters: "boot_method=vmedia ir_pub_id=ab-12",
            network_data: Some(data.to_string()),
        }
        .boot();
        let own = if kind == "ipv4" { "https://10.0.2.1" } else { "https://[fd00::5054:ff:fefa:21]" };
        assert!(seen.callback_url.starts_with(own), "{}", seen.callback_url);
        let line = format!("another machine has the address {address}");
        assert!(seen.console.contains(&line), "{}", seen.console);
    }
}

#[test]
fn vm_a_lease_that_comes_late_is_taken_and_silence_is_told_once() {
    let seen = Lab {
        behaviour: Behaviour { lost_requests: 60, ..Behaviour::default() },
        network: "ipv6=off",
        host: "10.0.2.2",
        listen: Ipv4Addr::LOCALHOST.into(),
        parameters: "",
        network_data: None,
    }
    .boot();
    assert!(seen.callback_url.starts_with("https://10.0.2.1"), "{}", seen.callback_url);
    for interface in ["eth0", "eth1"] {
        let line = format!("which is asked on interface=\"{interface}\"");
        assert_eq!(seen.console.matches(&line).count(), 1, "{}", seen.console);
    }
}

#[test]
fn vm_vlans_that_the_switch_announces_or_the_operator_names_reach_the_conductor() {
    for parameters in [
        "ipa-enable-vlan-interfaces=all ipa-collect-lldp=1 ipa-lldp-timeout=5",
        "ipa-enable-vlan-interfaces=52:54:00:FA:00:21.100",
    ] {
        let seen = Lab {
            behaviour: Behaviour { vlan: Some(100), announces: true, ..Behaviour::default() },
            network: "ipv6=off",
            host: "10.0.2.2",
            listen: Ipv4Addr::LOCALHOST.into(),
            parameters,
            network_data: None,
        }
        .boot();
        assert!(seen.callback_url.starts_with("https://10.0.2."), "{}", seen.callback_url);
        let line = "VLAN interface set up interface=\"eth0.100\"";
        assert!(seen.console.contains(line), "{parameters}: {}", seen.console);
    }
}

#[test]
fn vm_p14_a_bond_and_a_vlan_of_the_kernel_command_line_are_made_before_any_dhcp() {
    let seen = Lab {
        behaviour: Behaviour { vlan: Some(100), is_silent: true, ..Behaviour::default() },
        network: "ipv6=off",
        host: "10.0.2.2",
        listen: Ipv4Addr::LOCALHOST.into(),
        parameters: "farrier-net-bond=bond0:eth0,eth1:mode=802.3ad,miimon=50 \
                     ip=10.0.2.20::10.0.2.2:255.255.255.0:horse:bond0.100:none",
        network_data: None,
    }
    .boot();
    assert!(seen.callback_url.starts_with("https://10.0.2.20:"), "{}", seen.callback_url);
    assert_eq!(seen.dhcp_requests, 0, "{}", seen.console);
}

#[test]
fn vm_a_router_gives_the_address() {
    let seen = Lab {
        behaviour: Behaviour::default(),
        network: ONLY_IPV6,
        host: "[fd00::2]",
        listen: Ipv6Addr::LOCALHOST.into(),
        parameters: "",
        network_data: None,
    }
    .boot();
    assert!(seen.callback_url.starts_with("https://[fd00::5054:ff:fefa:2"), "{}", seen.callback_url);
}

#[test]
fn vm_dhcp_over_ipv6_gives_the_address_when_the_router_says_so() {
    let seen = Lab {
        behaviour: Behaviour { is_silent: true, routes: true, ..Behaviour::default() },
        network: ONLY_IPV6,
        host: "[fd00::2]",
        listen: Ipv6Addr::LOCALHOST.into(),
        parameters: "ip=eth0:auto6",
        network_data: None,
    }
    .boot();
    assert!(seen.callback_url.starts_with(&format!("https://[{GIVEN}]:")), "{}", seen.callback_url);
    assert!(seen.console.contains(NAME_SERVER), "{}", seen.console);
}

#[test]
fn vm_a_rescued_machine_has_the_network_of_its_user() {
    let folder = TempDir::new().unwrap();
    let data = json!({
        "links": [{"id": "card0", "type": "phy", "ethernet_mac_address": MACS[0]}],
        "networks": [{"id": "network0", "link": "card0", "type": "ipv4", "ip_address": "10.0.2.77",
                      "netmask": "255.255.255.0", "gateway": "10.0.2.2"}]
    });
    let drive = boot_medium(folder.path(), &data.to_string());
    let hardware = Hardware {
        mac: MACS[0].into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(drive, "CONFIG")],
        media: Vec::new(),
        folder: folder.path().to_owned(),
    };
    let dist = environment::path("FARRIER_DIST");
    let agent = CommandedAgent::boot(&hardware, &[], &dist, "").unwrap();
    let console = hardware.console();
    // The agent's address is known before its line has gone through a serial port.
    console.wait_for("address by DHCP", 0, PATIENCE).unwrap();
    let before = console.text();
    assert!(!before.contains("10.0.2.77"), "{before}");
    let mut typist = console.typist(hardware.keyboard_port).unwrap();
    agent.order("rescue.finalize_rescue", &json!({"rescue_password": "horse"})).unwrap();
    typist.answer("login:", "rescue", PATIENCE).unwrap();
    typist.answer("Password:", "horse", PATIENCE).unwrap();
    console.wait_for("address=10.0.2.77/24", before.len(), PATIENCE).unwrap();
    typist.answer("~ #", "busybox ping -c 3 -I 10.0.2.77 10.0.2.2", PATIENCE).unwrap();
    typist.expect("bytes from 10.0.2.2", PATIENCE).unwrap();
    // What is typed does not hold what is waited for: a prompt may be drawn again while it is typed.
    typist.answer("~ #", "busybox ip address show dev eth0; echo shown=$?", PATIENCE).unwrap();
    typist.expect("shown=0", PATIENCE).unwrap();
    let text = console.text();
    assert!(text.contains("inet 10.0.2.77/24") && !text.contains("inet 10.0.2.15/24"), "{text}");
}
