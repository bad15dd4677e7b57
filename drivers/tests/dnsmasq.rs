//! What a real dnsmasq tells machines that are configured as ours, in a network of their own.

#![allow(clippy::unwrap_used)]

use farrier_conductor::interfaces::DhcpProvider;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{NewNode, Node};
use farrier_drivers::dhcp::dnsmasq::{Dnsmasq, Places};
use farrier_drivers::dhcp::lease::Log;
use farrier_drivers::dhcp::site::Site;
use farrier_drivers::netboot::boot_file_names::BootFileNames;
use farrier_drivers::netboot::dhcp_options::{self, Servers};
use farrier_drivers::netboot::method::Method;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::net::{SocketAddrV6, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const CARD: &str = "52:54:00:00:00:01";
const SCRIPT: &str = "http://192.0.2.1:6385/boot.ipxe";

/// A dnsmasq at the other end of `eth0`.
struct Server {
    process: Child,
    configuration: PathBuf,
    log: PathBuf,
}

impl Server {
    /// One that gives these addresses, beside a conductor with this one.
    fn start(folder: &Path, places: &Places, range: &str, servers: &Servers) -> Self {
        fs::create_dir_all(&places.hosts).unwrap();
        fs::create_dir_all(&places.options).unwrap();
        let site = Site {
            interface: "server".into(),
            ranges: vec![range.parse().unwrap()],
            router: None,
            tftp: servers.tftp,
            http_url: servers.http_url.clone(),
        };
        let (configuration, log) = (folder.join("dnsmasq.conf"), folder.join("log"));
        fs::write(&configuration, format!("user=root\nno-ping\n{}", site.configuration(places))).unwrap();
        Self { process: Self::run(&configuration, &log), configuration, log }
    }

    fn start_again(&mut self) {
        self.stop();
        self.process = Self::run(&self.configuration, &self.log);
    }

    fn stop(&mut self) {
        kill(Pid::from_raw(self.process.id().cast_signed()), Signal::SIGTERM).ok();
        self.process.wait().unwrap();
    }

    fn run(configuration: &Path, log: &Path) -> Child {
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", "server", "dnsmasq"]);
        command.arg(format!("--conf-file={}", configuration.display()));
        command.stdin(Stdio::null()).stderr(log).spawn().unwrap()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What firmware of an architecture is told: its boot file, and from whom.
fn asked(folder: &Path, options: &[&str]) -> Option<(String, String)> {
    let (script, answer) = (folder.join("event"), folder.join("told"));
    fs::write(&script, format!("#!/bin/busybox sh\n[ $1 = bound ] && env > {}\n", answer.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&answer).ok();
    let mut client = Command::new("busybox");
    client.args(["udhcpc", "-i", "eth0", "-n", "-q", "-f", "-t", "5", "-T", "1", "-O", "bootfile"]);
    client.arg("-s").arg(&script).args(options);
    client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let answer = fs::read_to_string(answer).ok()?;
    let value = |name: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_default().to_owned()
    };
    let file = Some(value("boot_file")).filter(|file| !file.is_empty()).unwrap_or_else(|| value("bootfile"));
    Some((file, value("siaddr")))
}

fn until(folder: &Path, server: &Server, options: &[&str], expected: &str) {
    let start = Instant::now();
    loop {
        let answer = asked(folder, options);
        if answer
            .as_ref()
            .is_some_and(|(file, from)| file == expected && (from == "192.0.2.1" || file == SCRIPT))
        {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{options:?}: {answer:?}, not {expected}\n{}", server.said());
    }
}

/// A cable from `eth0` to `server`, in networks of their own that end with this thread.
fn network() {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    nix::mount::mount(
        None::<&str>,
        "/",
        None::<&str>,
        nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE,
        None::<&str>,
    )
    .unwrap();
    nix::mount::mount(Some("tmpfs"), "/run", Some("tmpfs"), nix::mount::MsFlags::empty(), None::<&str>)
        .unwrap();
    ip("netns add server");
    ip("link add eth0 type veth peer name server netns server");
    ip(&format!("link set eth0 address {CARD}"));
    // Its own address of IPv6 is good at once.
    fs::write("/proc/sys/net/ipv6/conf/eth0/accept_dad", "0").unwrap();
    ip("-netns server addr add 192.0.2.1/24 dev server");
    ip("-netns server addr add 2001:db8::1/64 dev server nodad");
    ip("-netns server link set server up");
    ip("link set eth0 up");
}

/// What a machine of this architecture is told by IPv6: the URL of its boot file.
fn asked_by_ipv6(architecture: u16, is_ipxe: bool) -> Option<String> {
    fn option(code: u16, data: &[u8]) -> Vec<u8> {
        [&code.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
    }
    let identity = [&[0, 3, 0, 1][..], &[0x52, 0x54, 0, 0, 0, 1]].concat();
    let class = if is_ipxe { option(15, b"\0\x04iPXE") } else { Vec::new() };
    let (association, wanted) = ([&[0, 0, 0, 1][..], &[0; 8]].concat(), [0, 59]);
    let parts = [
        option(1, &identity),
        option(3, &association),
        option(6, &wanted),
        option(8, &[0, 0]),
        option(61, &architecture.to_be_bytes()),
        class,
    ];
    let solicit = [&[1, b'a', b'b', b'c'][..], &parts.concat()].concat();
    let index = nix::net::if_::if_nametoindex("eth0").unwrap();
    // A program that another test starts has the one before for a moment.
    let socket = UdpSocket::bind("[::]:546").ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    socket.send_to(&solicit, SocketAddrV6::new("ff02::1:2".parse().unwrap(), 547, 0, index)).ok()?;
    let mut packet = [0; 1500];
    let length = socket.recv(&mut packet).ok()?;
    let mut rest = &packet[4..length];
    while let [c0, c1, l0, l1, after @ ..] = rest {
        let (data, next) = after.split_at(usize::from(u16::from_be_bytes([*l0, *l1])));
        if u16::from_be_bytes([*c0, *c1]) == 59 {
            return Some(String::from_utf8(data.to_vec()).unwrap());
        }
        rest = next;
    }
    None
}

#[tokio::test]
async fn loop_a_machine_gets_by_ipv6_what_its_node_says() {
    network();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let places = Places::below(&folder.join("dnsmasq"));
    let servers = Servers {
        tftp: "2001:db8::1".parse().unwrap(),
        http_url: "http://[2001:db8::1]:6385".into(),
        names: BootFileNames::default(),
    };
    let mut server = Server::start(folder, &places, "2001:db8::100,2001:db8::110", &servers);
    let until = |server: &Server, architecture, is_ipxe, expected: &str| {
        let start = Instant::now();
        loop {
            let answer = asked_by_ipv6(architecture, is_ipxe);
            if answer.as_deref() == Some(expected) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{answer:?}, not {expected}\n{}", server.said());
        }
    };
    let script = "http://[2001:db8::1]:6385/boot.ipxe";
    until(&server, 7, false, "tftp://[2001:db8::1]/snponly.efi");
    until(&server, 11, false, "tftp://[2001:db8::1]/ipxe-arm64.efi");
    until(&server, 16, false, "http://[2001:db8::1]:6385/snponly.efi");
    until(&server, 7, true, script);

    let node =
        Node::enrol(NewNode { ports: vec![CARD.parse().unwrap()], ..NewNode::default() }, SystemClock.now());
    let provider = Dnsmasq::new(places, Arc::default());
    for (method, is_ipxe, expected) in [
        (Method::Pxe, false, "tftp://[2001:db8::1]/bootx64.efi"),
        (Method::Http, false, "http://[2001:db8::1]:6385/bootx64.efi"),
        (Method::Ipxe, false, "tftp://[2001:db8::1]/snponly.efi"),
        (Method::Ipxe, true, script),
    ] {
        let options = dhcp_options::of(method, &node, &servers).unwrap();
        provider.update_dhcp_opts(&node, &options).await.unwrap();
        server.start_again();
        until(&server, 7, is_ipxe, expected);
    }
}

#[tokio::test]
async fn loop_a_machine_gets_what_its_node_says_while_it_says_so() {
    network();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let places = Places::below(&folder.join("dnsmasq"));
    let servers = Servers {
        tftp: "192.0.2.1".parse().unwrap(),
        http_url: "http://192.0.2.1:6385".into(),
        names: BootFileNames::default(),
    };
    let mut server = Server::start(folder, &places, "192.0.2.100,192.0.2.110", &servers);
    let bios = ["-V", "PXEClient:Arch:00000:UNDI:002001", "-x", "0x5d:0000"];
    let uefi = ["-V", "PXEClient:Arch:00007:UNDI:003016", "-x", "0x5d:0007"];
    let ipxe = ["-V", "PXEClient:Arch:00000:UNDI:002001", "-x", "0x5d:0000", "-x", "0xaf:010101"];

    // A machine of no node.
    until(folder, &server, &bios, "undionly.kpxe");
    until(folder, &server, &uefi, "snponly.efi");
    until(folder, &server, &ipxe, SCRIPT);

    let mut node =
        Node::enrol(NewNode { ports: vec![CARD.parse().unwrap()], ..NewNode::default() }, SystemClock.now());
    node.properties.insert("capabilities".into(), "boot_mode:bios".into());
    let provider = Dnsmasq::new(places.clone(), Arc::default());
    for (method, firmware, file) in [
        (Method::Pxe, &bios[..], "pxelinux.0"),
        (Method::Ipxe, &bios, "undionly.kpxe"),
        (Method::Ipxe, &ipxe, SCRIPT),
    ] {
        let options = dhcp_options::of(method, &node, &servers).unwrap();
        provider.update_dhcp_opts(&node, &options).await.unwrap();
        server.start_again();
        until(folder, &server, firmware, file);
    }
    node.properties.remove("capabilities");
    provider.update_dhcp_opts(&node, &dhcp_options::of(Method::Pxe, &node, &servers).unwrap()).await.unwrap();
    server.start_again();
    until(folder, &server, &uefi, "bootx64.efi");

    provider.clean_dhcp_opts(&node).await.unwrap();
    server.start_again();
    until(folder, &server, &bios, "undionly.kpxe");
    let address = provider.get_ip_addresses(&node).await.unwrap();
    assert_eq!(address.len(), 1, "{}", server.said());
    let said = server.said();
    let mut log = Log::default();
    let leased = said.lines().filter_map(|line| log.lease(line)).next().unwrap();
    assert_eq!((leased.address, leased.card.as_str()), (address[0], CARD));
}
