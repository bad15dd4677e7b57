//! A network for emulated machines: a bridge in a network namespace, which ends with the thread that is in it and with what
//! that has started.

use crate::machine::NOBODY;
use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The address of this side.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The addresses that DHCP servers give.
pub const RANGE: &str = "192.0.2.100,192.0.2.200";

/// A DHCP server of the site, which gives addresses, and nothing else that it is not told to; it ends with this.
#[derive(Debug)]
pub struct DhcpServer(Child);

impl DhcpServer {
    /// Starts it with its files in `folder` and further options of dnsmasq, by a cable of its own to the bridge.
    ///
    /// # Errors
    ///
    /// There is no bridge, or no dnsmasq.
    pub fn start(folder: &Path, options: &[String]) -> Result<Self> {
        ip(&[
            "link add site0 type veth peer name site1",
            "link set site1 master br0",
            "link set site1 up",
            "addr add 192.0.2.2/24 dev site0 noprefixroute",
            "link set site0 up",
        ])?;
        Self::run(folder, options)
    }

    /// Starts it with other options in the place of those that it had.
    ///
    /// # Errors
    ///
    /// There is no dnsmasq.
    pub fn start_again(&mut self, folder: &Path, options: &[String]) -> Result<()> {
        self.end();
        *self = Self::run(folder, options)?;
        Ok(())
    }

    fn run(folder: &Path, options: &[String]) -> Result<Self> {
        let server = Command::new("dnsmasq")
            .args([
                "--conf-file=/dev/null",
                "--port=0",
                "--keep-in-foreground",
                "--log-facility=-",
                "--bind-interfaces",
            ])
            .args(["--interface=site0", "--except-interface=lo", "--dhcp-option=3", "--log-dhcp"])
            .arg(format!("--dhcp-range={RANGE},3600"))
            .arg(format!("--dhcp-leasefile={}", folder.join("site-leases").display()))
            .arg(format!("--pid-file={}", folder.join("site-process").display()))
            .args(options)
            .stdin(Stdio::null())
            .stderr(File::options().create(true).append(true).open(folder.join("site.log"))?)
            .spawn();
        server.map(Self).context("cannot start dnsmasq")
    }

    fn end(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for DhcpServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A bridge, `br0` with [`ADDRESS`], with places for so many machines, `tap0` and on, in a network of the calling thread's
/// own, where what it starts from then on is too.
///
/// # Errors
///
/// The thread has no right to it.
pub fn network(machines: usize) -> Result<()> {
    network_called("br0", &[ADDRESS], machines)
}

/// The same, with a bridge of this name and with these addresses.
///
/// # Errors
///
/// As [`network`].
pub fn network_called(bridge: &str, addresses: &[Ipv4Addr], machines: usize) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("there is no network of its own; this needs root")?;
    ip(&["link set lo up", &format!("link add {bridge} type bridge")])?;
    for address in addresses {
        ip(&[&format!("addr add {address}/24 dev {bridge}")])?;
    }
    ip(&[&format!("link set {bridge} up")])?;
    for number in 0..machines {
        let tap = format!("tap{number}");
        let made = [
            // QEMU may run as a user without rights.
            format!("tuntap add {tap} mode tap user {NOBODY}"),
            format!("link set {tap} master {bridge}"),
            format!("link set {tap} up"),
        ];
        ip(&made.each_ref().map(String::as_str))?;
    }
    Ok(())
}

/// QEMU's network `net` of the machine at a place of the bridge.
pub fn place(number: usize) -> String {
    format!("tap,id=net,ifname=tap{number},script=no,downscript=no")
}

fn ip(commands: &[&str]) -> Result<()> {
    for words in commands {
        let output = Command::new("ip").args(words.split(' ')).output().context("cannot start ip")?;
        ensure!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
