//! The DHCP client of the ramdisk and what it starts, with a real server, in a network of their own.

#![allow(clippy::unwrap_used)]

use farrier_init::network::dhcp_client;
use farrier_linux::private_mounts::with_private_mounts;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const RESOLVER: &str = "/etc/resolv.conf";

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Does this on the link `eth0`, at whose other end there is a server; `/run`, `/dev` and the resolver's file are
/// not those of this machine.
fn in_a_network(work: impl FnOnce(&Path) + Send) {
    let folder = TempDir::new().unwrap();
    let resolver = folder.path().join("resolv.conf");
    fs::write(&resolver, "").unwrap();
    symlink(env!("CARGO_BIN_EXE_farrier-agent"), folder.path().join("dhcp-event")).unwrap();
    with_private_mounts(|mut mounts| {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS).unwrap();
        mounts.memory(Path::new("/run")).unwrap();
        mounts.devices(Path::new("/dev"), &[], &[]).unwrap();
        mount(Some(&resolver), RESOLVER, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
        ip("netns add server");
        ip("link add eth0 type veth peer name server netns server");
        ip("-netns server addr add 192.0.2.1/24 dev server");
        ip("-netns server link set server up");
        ip("link set eth0 up");
        work(&folder.path().join("dhcp-event"));
    })
    .unwrap();
}

fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A server that gives one address, with these options by their names or numbers.
fn server(address: &str, options: &[&str]) -> Running {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", "server", "dnsmasq", "--conf-file=/dev/null", "--no-daemon", "--port=0"]);
    command.args([
        "--leasefile-ro",
        "--no-ping",
        "--dhcp-authoritative",
        "--interface=server",
        "--user=root",
    ]);
    command.arg(format!("--dhcp-range={address},{address},120"));
    command.args(options.iter().map(
        |option| match option.starts_with(|first: char| first.is_ascii_digit()) {
            true => format!("--dhcp-option-force={option}"),
            false => format!("--dhcp-option=option:{option}"),
        },
    ));
    Running::start(&mut command)
}

fn client(program: &Path) -> Running {
    Running::start(Command::new("busybox").args(dhcp_client::arguments("eth0", program.to_str().unwrap())))
}

/// Networks and addresses of `eth0`.
fn addresses() -> Vec<String> {
    let text = ip("-oneline -4 addr show dev eth0");
    let address = |line: &str| line.split_whitespace().nth(3).unwrap().to_owned();
    let mut addresses: Vec<_> = text.lines().map(address).collect();
    addresses.sort();
    addresses
}

/// Where routes of the client lead, and through whom.
fn routes() -> Vec<String> {
    let text = ip("-4 route show dev eth0 proto boot");
    let route = |line: &str| {
        line.split_whitespace().take_while(|word| *word != "metric").collect::<Vec<_>>().join(" ")
    };
    let mut routes: Vec<_> = text.lines().map(|line| route(line).replace(" scope link", "")).collect();
    routes.sort();
    routes
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: {:?} {:?}", addresses(), routes());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn loop_x16_search_domains_packet_size_and_classless_routes_of_a_real_server_are_obeyed() {
    in_a_network(|program| {
        let server = server(
            "192.0.2.50",
            &[
                "router,192.0.2.9",
                "dns-server,192.0.2.53",
                "domain-name,c.example",
                "domain-search,a.example,b.example",
                "mtu,1400",
                "classless-static-route,198.51.100.0/24,192.0.2.2,203.0.113.0/24,0.0.0.0,0.0.0.0/0,192.0.2.1",
            ],
        );
        let client = client(program);
        let resolver = "search a.example b.example\nnameserver 192.0.2.53\n";
        until("the lease is used", || fs::read_to_string(RESOLVER).unwrap() == resolver);
        assert_eq!(addresses(), ["192.0.2.50/24"]);
        let expected = ["198.51.100.0/24 via 192.0.2.2", "203.0.113.0/24", "default via 192.0.2.1"];
        assert_eq!(routes(), expected);
        assert!(ip("link show dev eth0").contains(" mtu 1400 "));
        drop((client, server));
    });
}

#[test]
fn loop_x17_a_lease_takes_only_its_own_with_it() {
    in_a_network(|program| {
        let fixed = ["192.0.2.7/24", "203.0.113.5/24"];
        // What the plan says of the size goes before what the server says.
        fs::create_dir_all("/run/farrier/packet-sizes").unwrap();
        fs::write("/run/farrier/packet-sizes/eth0", "").unwrap();
        for address in fixed {
            ip(&format!("addr add {address} dev eth0"));
        }
        ip("route add 198.51.100.0/24 via 203.0.113.1 proto static");
        let options = ["router,192.0.2.9", "mtu,1400"];
        let first = server("192.0.2.50", &options);
        let client = client(program);
        until("a lease beside the fixed addresses", || {
            addresses() == ["192.0.2.50/24", "192.0.2.7/24", "203.0.113.5/24"]
                && routes() == ["default via 192.0.2.9"]
        });
        drop(first);
        // The other server refuses what it did not give, and the client asks anew.
        let second = server("192.0.2.51", &["router,192.0.2.10"]);
        until("the other lease instead of the first", || {
            client.signal(Signal::SIGUSR1);
            thread::sleep(Duration::from_millis(500));
            addresses() == ["192.0.2.51/24", "192.0.2.7/24", "203.0.113.5/24"]
                && routes() == ["default via 192.0.2.10"]
        });
        client.signal(Signal::SIGUSR2);
        until("the end of the lease", || addresses() == fixed && routes().is_empty());
        assert!(ip("-4 route show proto static").contains("198.51.100.0/24 via 203.0.113.1"));
        assert!(ip("link show dev eth0").contains(" mtu 1500 "));
        drop((client, second));
    });
}

#[test]
fn loop_x17_an_address_that_is_fixed_and_leased_stays() {
    in_a_network(|program| {
        ip("addr add 192.0.2.50/24 dev eth0");
        let server = server("192.0.2.50", &["router,192.0.2.9"]);
        let client = client(program);
        until("the lease", || routes() == ["default via 192.0.2.9"]);
        client.signal(Signal::SIGUSR2);
        until("the end of the lease", || routes().is_empty());
        assert_eq!(addresses(), ["192.0.2.50/24"]);
        drop((client, server));
    });
}

#[test]
fn loop_a04_a_host_name_that_is_too_long_and_routers_that_are_none_cost_nothing_else() {
    let long = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.rack12.row7.hall3.dc1.building9.example-company.internal";
    for (routers, expected) in
        [("224.0.0.1", None), ("192.0.2.50", None), ("192.0.2.255,192.0.2.9", Some("default via 192.0.2.9"))]
    {
        in_a_network(|program| {
            let options = [
                &format!("router,{routers}"),
                "dns-server,192.0.2.53",
                &format!("12,{long}"),
                "mtu,60",
                "domain-search,a.example",
            ];
            let server = server("192.0.2.50", &options);
            let client = client(program);
            let resolver = "search a.example\nnameserver 192.0.2.53\n";
            until("the lease is used", || fs::read_to_string(RESOLVER).unwrap() == resolver);
            assert_eq!(addresses(), ["192.0.2.50/24"], "{routers}");
            assert_eq!(routes(), Vec::from_iter(expected), "{routers}");
            assert_eq!(nix::unistd::gethostname().unwrap(), "a".repeat(34).as_str(), "{routers}");
            assert!(ip("link show dev eth0").contains(" mtu 1500 "), "{routers}");
            drop((client, server));
        });
    }
}
