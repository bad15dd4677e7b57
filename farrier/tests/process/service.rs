//! The documented service: its own user, with the rights that netboot needs and no others.

use crate::conductor::farrier;
use farrier_tests::strangers::network::{Neighbour, enter_own};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chown};
use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const UNIT: &str = include_str!("../../../docs/src/farrier.service");
const PAGE: &str = include_str!("../../../docs/src/service.md");

/// An unused number of a user and a group.
const USER: u32 = 64_123;

const PATIENCE: Duration = Duration::from_secs(60);

/// The rights of a server of DHCP: CAP_NET_BIND_SERVICE, CAP_NET_ADMIN and CAP_NET_RAW (linux/capability.h).
const OF_DHCP: u64 = 1 << 10 | 1 << 12 | 1 << 13;

/// The values of a line of the unit.
fn unit(key: &str) -> Vec<&'static str> {
    let line = UNIT.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_default().split(' ').collect()
}

/// As systemd starts the service, but for the user's name: `setpriv` carries out what the unit says.
fn start(state: &Path, path: &Path, arguments: &[&str]) -> Child {
    assert_eq!((unit("User"), unit("NoNewPrivileges")), (vec!["farrier"], vec!["yes"]));
    let rights = |key: &str| {
        let names = unit(key).into_iter().map(|right| right.trim_start_matches("CAP_").to_ascii_lowercase());
        names.fold("-all".to_owned(), |all, name| format!("{all},+{name}"))
    };
    let (ambient, bounding) = (rights("AmbientCapabilities"), rights("CapabilityBoundingSet"));
    // Its own copy, since the user may not enter the folder of the build.
    let program = path.join("farrier");
    fs::copy(farrier().get_program(), &program).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &USER.to_string(), "--regid", &USER.to_string(), "--clear-groups"])
        .args(["--inh-caps", &ambient, "--ambient-caps", &ambient, "--bounding-set", &bounding])
        .args(["--no-new-privs", "--"])
        .arg(&program)
        .arg("serve")
        .args(arguments)
        .env("FARRIER_STATE_DIR", state)
        .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", path.display()))
        .stdin(Stdio::null())
        .stdout(File::create(state.join("out")).unwrap())
        .stderr(File::create(state.join("log")).unwrap());
    command.spawn().unwrap()
}

/// Processes below one, with their names, users and effective rights.
fn children(of: u32) -> Vec<(String, u32, u64)> {
    let statuses = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let status = fs::read_to_string(entry.ok()?.path().join("status")).ok()?;
        let word = |key: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(key)?.split_whitespace().next().map(str::to_owned))
        };
        let is_ours = word("PPid:")?.parse() == Ok(of);
        let rights = u64::from_str_radix(&word("CapEff:")?, 16).ok()?;
        is_ours.then_some((word("Name:")?, word("Uid:")?.parse().ok()?, rights))
    });
    statuses.collect()
}

fn until(what: &str, log: &Path, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited for {what}: {}", fs::read_to_string(log).unwrap_or_default());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Asks for an address as firmware does, and gives how many bytes the answer has.
fn offered() -> usize {
    let socket = UdpSocket::bind("0.0.0.0:68").unwrap();
    socket.set_broadcast(true).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    // BOOTREQUEST by Ethernet, whose answer is to be broadcast (RFC 2131), and DISCOVER.
    let mut request = vec![1, 1, 6, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x80, 0];
    request.resize(28, 0);
    request.extend([0x52, 0x54, 0, 0, 0, 1]);
    request.resize(236, 0);
    request.extend([99, 130, 83, 99, 53, 1, 1, 255]);
    request.resize(300, 0);
    socket.send_to(&request, "255.255.255.255:67").unwrap();
    let mut answer = [0; 1500];
    socket.recv(&mut answer).unwrap_or_default()
}

fn loaded_by_tftp(server: &str) -> Vec<u8> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.send_to(b"\0\x01boot.ipxe\0octet\0", server).unwrap();
    let mut packet = [0; 1500];
    let (length, from) = socket.recv_from(&mut packet).unwrap();
    socket.send_to(&[0, 4, 0, 1], from).unwrap();
    packet[..length].to_vec()
}

#[test]
fn process_n18_the_page_shows_the_unit() {
    assert!(PAGE.contains("{{#include farrier.service}}"));
    assert!(
        unit("AmbientCapabilities") == unit("CapabilityBoundingSet") && unit("ProtectSystem") == ["strict"]
    );
}

#[test]
fn loop_n18_the_documented_unit_serves_netboot_as_its_own_user_and_its_children_have_no_more_than_they_need()
{
    // A thread of its own, as its network is another.
    thread::spawn(serves_netboot).join().unwrap();
}

fn serves_netboot() {
    enter_own().unwrap();
    let machine = Neighbour::connect(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let programs = folder.path().join("bin");
    fs::create_dir(&state).unwrap();
    fs::create_dir(&programs).unwrap();
    for path in [folder.path(), &state] {
        chown(path, Some(USER.into()), Some(USER.into())).unwrap();
    }
    // What ipmitool would be, and what it may do.
    let ipmitool = programs.join("ipmitool");
    let seen = state.join("ipmitool");
    let script = format!(
        "#!/bin/sh\nexec >>{}\nid -u\ngrep CapEff /proc/self/status\ntr '\\0' ' ' </proc/$$/cmdline\nenv\n",
        seen.display()
    );
    fs::write(&ipmitool, script).unwrap();
    fs::set_permissions(&ipmitool, PermissionsExt::from_mode(0o755)).unwrap();
    let log = state.join("log");
    let mut conductor = start(
        &state,
        &programs,
        &[
            ["--listen", "0.0.0.0:6385"],
            ["--admin-listen", "127.0.0.1:6386"],
            ["--api-url", "http://10.77.1.1:6385"],
            ["--tftp-listen", "10.77.1.1:69"],
            ["--dhcp-provider", "dnsmasq"],
            ["--dhcp-interface", "cable1"],
            ["--dhcp-range", "10.77.1.100,10.77.1.200"],
            ["--tftp-server", "10.77.1.1"],
        ]
        .concat(),
    );
    let said = || fs::read_to_string(state.join("out")).unwrap();
    until("it to listen", &log, || said().contains("node API listening"));
    let served = machine.run(|| Ok((loaded_by_tftp("10.77.1.1:69"), (0..5).map(|_| offered()).max())));
    let (file, offer) = served.join().unwrap().unwrap();
    assert_eq!(file[..4], [0, 3, 0, 1], "{file:?}");
    assert!(String::from_utf8_lossy(&file).contains("#!ipxe"));
    assert!(offer >= Some(240), "no address is offered: {}", fs::read_to_string(&log).unwrap());

    let secret = folder.path().join("bmc");
    fs::write(&secret, "hunter2").unwrap();
    let order = |arguments: &[&str]| {
        let user = USER.to_string();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"])
            .arg(programs.join("farrier"));
        command.args(arguments).env("FARRIER_STATE_DIR", &state).stdin(Stdio::null());
        command
    };
    let created = order(&["node", "create", "n1", "--mac", "52:54:00:00:00:01", "--driver", "ipmi"])
        .args(["--driver-info", "ipmi_address=192.0.2.9", "--driver-secret"])
        .arg(format!("ipmi_password={}", secret.display()))
        .output()
        .unwrap();
    assert!(created.status.success(), "{created:?}");
    let switched = order(&["node", "power", "n1", "off"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    until("ipmitool", &log, || fs::read_to_string(&seen).is_ok_and(|seen| seen.contains("LC_ALL")));
    let mut switched = switched.unwrap();
    switched.kill().unwrap();
    switched.wait().unwrap();
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(seen.starts_with(&format!("{USER}\nCapEff:\t0000000000000000\n")), "{seen}");
    assert!(!seen.contains("hunter2") && !seen.contains("FARRIER"), "{seen}");

    let children = children(conductor.id());
    assert!(children.iter().any(|(name, ..)| name == "dnsmasq"), "{children:?}");
    for (name, user, rights) in &children {
        assert_eq!(*user, USER, "{name}");
        assert_eq!(*rights, if name == "dnsmasq" { OF_DHCP } else { 0 }, "{name}");
    }
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert!(conductor.wait().unwrap().success(), "{}", fs::read_to_string(&log).unwrap());
}
