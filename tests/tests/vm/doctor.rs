//! Machines that cannot reach their conductor, and what their doctor says on the console.

use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::environment;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Boot, Firmware, Hardware, free_port};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long an emulated machine may take to be examined.
const PATIENCE: Duration = Duration::from_secs(240);
/// The last line of every examination.
const END: &str = "lookup  http";
/// Long enough for a lease of an emulated machine, and no longer.
const SOON: &str = "console=ttyS0 farrier-doctor-after=12 ipa-lldp-timeout=2";

/// Boots a machine whose conductor has this URL and returns the console once all texts are on it.
fn examine(url: &str, parameters: &str, texts: &[&str], arguments: &[&str], folder: &Path) -> String {
    examine_under(Firmware::Bios, url, parameters, texts, arguments, folder)
}

/// As [`examine`], with this firmware.
fn examine_under(
    firmware: Firmware,
    url: &str,
    parameters: &str,
    texts: &[&str],
    arguments: &[&str],
    folder: &Path,
) -> String {
    let hardware = Hardware {
        mac: "52:54:00:fa:00:07".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![],
        media: vec![],
        folder: folder.to_owned(),
    };
    let line = format!("{SOON} ipa-api-url={url} {parameters}");
    let arguments: Vec<_> = arguments.iter().map(|one| (*one).to_owned()).collect();
    let boot = Boot::Ramdisk(&environment::path("FARRIER_DIST"), &line);
    let _machine = hardware.boot_under(firmware, boot, &arguments).unwrap();
    for text in texts {
        hardware.console().wait_for(text, 0, PATIENCE).unwrap();
    }
    hardware.console().text()
}

fn assert_says(console: &str, lines: &[&str]) {
    for line in lines {
        assert!(console.contains(line), "{line:?} is not on the console:\n{console}");
    }
}

#[test]
fn vm_a_refused_connection_is_named_and_left_for_the_conductor() {
    let folder = TempDir::new().unwrap();
    let bmc = ["-device", "ipmi-bmc-sim,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0"];
    let places = "farrier-doctor-report=sel,efi,dhcp";
    let (url, told) = ("http://10.0.2.2:1", "reported to dhcp");
    let console = examine_under(Firmware::Uefi, url, places, &[told], &bmc, folder.path());
    assert_says(
        &console,
        &[
            "ok        link    eth0: up",
            "unused    lldp    eth0: no LLDP frame",
            "ok        dhcp    eth0: not asked: has 10.0.2.15/24 already",
            "ok        route   http://10.0.2.2:1: to 10.0.2.2 from 10.0.2.15",
            "FAILED    tcp     http://10.0.2.2:1: 10.0.2.2:1 refuses the connection. Start the conductor",
            "not tried lookup  http://10.0.2.2:1: needs http",
            "reported to dhcp: host name farrier-tcp at 10.0.2.2",
            "reported to sel: record 0x",
            "reported to efi",
        ],
    );
    let variables = fs::read(folder.path().join("vars.fd")).unwrap();
    let note = b"FAILED    tcp     http://10.0.2.2:1: 10.0.2.2:1 refuses the connection";
    assert!(variables.windows(note.len()).any(|window| window == note), "the UEFI variable is not kept");
}

/// A server that speaks TLS with a certificate of nobody's authority. Dropping it ends it.
struct TlsServer(Child);

impl TlsServer {
    fn start(port: u16, folder: &Path) -> Self {
        let [key, certificate] = ["key.pem", "certificate.pem"].map(|name| folder.join(name));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-subj", "/CN=stranger", "-addext", "subjectAltName=IP:10.0.2.2", "-days", "30"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success());
        let server = Command::new("openssl")
            .args(["s_server", "-www", "-accept", &format!("127.0.0.1:{port}"), "-key"])
            .arg(&key)
            .arg("-cert")
            .arg(&certificate)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(server.unwrap())
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn vm_a_certificate_of_a_stranger_is_told_from_a_wrong_clock() {
    for (arguments, finding) in [
        (&[][..], "Its certificate is of no known authority"),
        (&["-rtc", "base=2020-01-01T00:00:00"], "and here it is 2020-01-01"),
    ] {
        let (folder, port) = (TempDir::new().unwrap(), free_port().unwrap());
        let _server = TlsServer::start(port, folder.path());
        let url = format!("https://10.0.2.2:{port}");
        let console = examine(&url, "farrier-doctor-report=none", &[END], arguments, folder.path());
        assert_says(&console, &["ok        tcp", "FAILED    tls", finding]);
    }
}

/// Arguments of QEMU for so many further network cards, each behind a PCI Express port of its own and on
/// a network without anybody else.
fn network_cards(count: usize) -> Vec<String> {
    let card = |number: usize| {
        let place = format!("bus=pcie.0,addr={:x}.{:x}", 0x10 + number / 8, number % 8);
        let mac = format!("52:54:00:fb:00:{number:02x}");
        [
            "-device".to_owned(),
            format!("pcie-root-port,id=port{number},chassis={},{place},multifunction=on", number + 1),
            "-netdev".to_owned(),
            format!("hubport,id=net{number},hubid={number}"),
            "-device".to_owned(),
            format!("virtio-net-pci,netdev=net{number},bus=port{number},romfile=,mac={mac}"),
        ]
    };
    (0..count).flat_map(card).collect()
}

#[test]
fn vm_forty_network_cards_are_found_and_one_without_a_driver_is_named() {
    let (folder, conductor) = (TempDir::new().unwrap(), StubConductor::start().unwrap());
    let mut arguments = network_cards(39);
    arguments.extend(["-device", "ne2k_pci,romfile="].map(str::to_owned));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let callback = format!("ipa-inspection-callback-url={}/v1/continue_inspection", conductor.guest_url());
    let texts = ["has no driver in this ramdisk", "first heartbeat accepted"];
    let console = examine(&conductor.guest_url(), &callback, &texts, &arguments, folder.path());
    assert_says(&console, &["network card 0000:", "(10ec:8029) has no driver"]);
    let posted = conductor.wait_for("/v1/continue_inspection", PATIENCE).unwrap();
    assert_eq!(posted["inventory"]["interfaces"].as_array().map(Vec::len), Some(40), "{posted}");
}

/// Pulls the cable of a machine that is about to be switched on. Its firmware takes longer than this before
/// there is anybody to see the cable.
fn pull_cable(monitor: &Path) {
    let mut monitor = Monitor::connect(monitor).unwrap();
    monitor.execute("set_link", &json!({"name": "net", "up": false})).unwrap();
}

#[test]
fn vm_a_missing_cable_is_told_from_a_missing_dhcp_server() {
    let folder = TempDir::new().unwrap();
    let monitor = folder.path().join("monitor");
    let [option, place] = Monitor::arguments(&monitor);
    // Every packet arrives more than an hour late.
    let late = "filter-buffer,id=late,netdev=net,queue=all,interval=4000000000";
    let pulled = thread::spawn(move || pull_cable(&monitor));
    for (arguments, lines) in [
        (
            [option.as_str(), &place],
            ["FAILED    link    eth0: no carrier", "not tried dhcp    eth0: needs link", "not tried address"],
        ),
        (
            ["-object", late],
            [
                "ok        link    eth0: up",
                "FAILED    dhcp    eth0: no DHCP server answers",
                "FAILED    address",
            ],
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let places = "farrier-doctor-report=none";
        let console = examine("http://10.0.2.2:1", places, &[END], &arguments, folder.path());
        assert_says(&console, &lines);
    }
    pulled.join().unwrap();
}
