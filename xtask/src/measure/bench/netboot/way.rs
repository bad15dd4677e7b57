//! A way to the first heartbeat: a conductor, a boot interface and a firmware.
//!
//! Whoever leads, the machine is the same, is switched on by hand, and all that it gets comes over a bridge in a network
//! namespace of the run.

use std::fmt;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use farrier_tests::cells::netboot::uefi_arguments;
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::ironic::Ironic;
use farrier_tests::conductor::node_api::{Conductor, Control, Enrolment, Node, Order};
use farrier_tests::machine::{Boot, EMULATED, Firmware, Hardware, free_port};
use farrier_tests::network::bridge::network;
use farrier_tests::network::netboot_loaders::{Architecture, Bootable};
use serde::{Deserialize, Serialize};

use super::servers::Server;
use crate::measure::bench::{HEARTBEAT, MAC};

/// Where the bridge is, and all servers.
const ADDRESS: &str = "192.0.2.1";
/// GRUB 2.06 loads by HTTP from port 80 alone.
const LISTEN: &str = "192.0.2.1:80";
/// The port of the server beside Ironic, as in its documentation.
const FILES_PORT: u16 = 8080;
const TAP: &str = "tap0";
const DISK_BYTES: u64 = 64 << 20;
const MEMORY_MIB: &str = "1024";
/// What the kernel prints first. Without an early console it would be late on the serial line.
const KERNEL: &str = "Linux version";
const EARLY_CONSOLE: &str = "earlycon=uart8250,io,0x3f8,115200 console=ttyS0";
/// What takes longer hangs, also on a busy machine with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Has `farrier serve` know machines that are switched on by hand.
pub const BY_HAND: [&str; 2] = ["--enabled-hardware-types", "manual"];

/// Who leads the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leader {
    /// `farrier serve`, which serves all that the machine loads.
    Farrier,
    /// Ironic, which writes files that dnsmasq and nginx serve.
    Ironic,
}

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Who leads the machine.
    pub leader: Leader,
    /// The boot interface.
    pub method: &'static str,
    /// The firmware.
    pub firmware: Firmware,
}

/// What is measured on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Went {
    /// From power on to the kernel's first line.
    pub to_kernel: Duration,
    /// From power on to the conductor's answer to the first heartbeat.
    pub to_heartbeat: Duration,
    /// Bytes of the packets that the machine got until then.
    pub received: u64,
    /// Those that it sent.
    pub sent: u64,
}

/// What all ways go by.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The program of the reference conductor.
    pub farrier: &'a Path,
    /// The environment with Ironic.
    pub ironic: &'a Path,
    /// Folder with the kernel and the ramdisk.
    pub dist: &'a Path,
}

impl Way {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::new(Leader::Farrier, "pxe", Firmware::Bios),
        Self::new(Leader::Farrier, "pxe", Firmware::Uefi),
        Self::new(Leader::Farrier, "ipxe", Firmware::Bios),
        Self::new(Leader::Ironic, "ipxe", Firmware::Bios),
        Self::new(Leader::Farrier, "ipxe", Firmware::Uefi),
        Self::new(Leader::Ironic, "ipxe", Firmware::Uefi),
        Self::new(Leader::Farrier, "http", Firmware::Uefi),
        Self::new(Leader::Farrier, "http-ipxe", Firmware::Uefi),
    ];

    const fn new(leader: Leader, method: &'static str, firmware: Firmware) -> Self {
        Self { leader, method, firmware }
    }

    /// How its firmware boots.
    pub fn mode(self) -> &'static str {
        if self.firmware == Firmware::Bios { "bios" } else { "uefi" }
    }

    /// Goes it once, with files of this run in `folder`. The calling thread is in the network of the run from then on.
    ///
    /// # Errors
    ///
    /// There was no heartbeat; the text has the end of what machine and conductor said.
    pub fn go(self, parts: &Parts<'_>, folder: &Path) -> Result<Went> {
        network(1)?;
        fs::create_dir_all(folder)?;
        match self.leader {
            Leader::Farrier => {
                let conductor = self.farrier(parts, folder)?;
                self.measure(&conductor, parts.dist, folder)
            }
            Leader::Ironic => {
                let conductor = Ironic::start_on_the_bridge(parts.ironic, folder, parts.dist, FILES_PORT)?;
                let files: SocketAddr = format!("{ADDRESS}:{FILES_PORT}").parse()?;
                let _http = Server::http(folder, &folder.join("http"), files)?;
                let script = format!("http://{files}/boot.ipxe");
                let _dhcp = Server::dhcp(folder, &folder.join("tftp"), &script)?;
                self.measure(&conductor, parts.dist, folder)
            }
        }
    }

    fn farrier(self, parts: &Parts<'_>, folder: &Path) -> Result<Farrier> {
        let allowed = parts.dist.display().to_string();
        let url = format!("http://{ADDRESS}");
        let tftp = format!("{ADDRESS}:69");
        let mut options = vec!["--api-url", &url, "--file-url-allowed-paths", &allowed];
        options.extend(BY_HAND);
        options.extend(["--tftp-listen", &tftp, "--tftp-server", ADDRESS]);
        options.extend(["--dhcp-provider", "dnsmasq", "--dhcp-interface", "br0"]);
        options.extend(["--dhcp-range", "192.0.2.100,192.0.2.200"]);
        let bootable = Bootable { dist: parts.dist.to_owned(), loaders: Vec::new() };
        let loaders = bootable.loader_file_paths(Architecture::X86_64, self.method, folder)?.join(",");
        if !loaders.is_empty() {
            options.extend(["--loader-file-paths", &loaders]);
        }
        Farrier::start_at(LISTEN.parse()?, parts.farrier, folder, &options)
    }

    /// Switches the machine on once the conductor waits for it.
    fn measure(self, conductor: &dyn Conductor, dist: &Path, folder: &Path) -> Result<Went> {
        let node = Node::enrol(
            conductor,
            &Enrolment {
                mac: MAC,
                dist,
                parameters: &format!("{EARLY_CONSOLE} {EMULATED} ipa-disk-wait-attempts=1"),
                fast_track: false,
                control: Control::Network { boot: self.method, mode: self.mode() },
            },
        )?;
        node.order(&Order::clean(&["erase_devices_metadata"]))?;
        node.reach("clean wait", PATIENCE)?;
        let hardware = hardware(folder)?;
        self.boot(&hardware).with_context(|| {
            let (console, log) = (hardware.console().tail(), conductor.log_tail());
            format!("{self}; its console:\n{console}\nthe conductor:\n{log}\nwhat happened")
        })
    }

    fn boot(self, hardware: &Hardware) -> Result<Went> {
        let mut arguments = vec![
            "-netdev".to_owned(),
            format!("tap,id=net,ifname={TAP},script=no,downscript=no"),
            "-device".to_owned(),
            format!("virtio-net-pci,netdev=net,bootindex=0,mac={}", hardware.mac),
            "-m".to_owned(),
            MEMORY_MIB.to_owned(),
        ];
        if self.firmware == Firmware::Uefi {
            arguments
                .extend(uefi_arguments(self.method).iter().flat_map(|one| one.split(' ')).map(str::to_owned));
        }
        let before = Traffic::now()?;
        let switched_on = Instant::now();
        let machine = hardware.boot_without_network(self.firmware, Boot::Disks, &arguments)?;
        let moment = |text| machine.console().wait_for(text, 0, PATIENCE).map(|()| switched_on.elapsed());
        let (to_kernel, to_heartbeat) = (moment(KERNEL)?, moment(HEARTBEAT)?);
        let after = Traffic::now()?;
        // What the tap device sends, the machine receives.
        let (received, sent) = (after.sent - before.sent, after.received - before.received);
        Ok(Went { to_kernel, to_heartbeat, received, sent })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leader = if self.leader == Leader::Farrier { "farrier" } else { "ironic" };
        write!(f, "{}-{}-{leader}", self.method, self.mode())
    }
}

fn hardware(folder: &Path) -> Result<Hardware> {
    let disk = folder.join("disk.img");
    File::create(&disk)?.set_len(DISK_BYTES)?;
    Ok(Hardware {
        mac: MAC.to_owned(),
        agent_port: free_port()?,
        keyboard_port: free_port()?,
        disks: vec![(disk, "ROOT")],
        media: Vec::new(),
        folder: folder.to_owned(),
    })
}

/// What has gone through the machine's tap device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Traffic {
    received: u64,
    sent: u64,
}

impl Traffic {
    /// As the kernel counts, of the network that the calling thread is in.
    fn now() -> Result<Self> {
        Self::of(&fs::read_to_string("/proc/thread-self/net/dev")?)
    }

    /// The line of a device has eight figures of what it received, the bytes first, and eight of what it sent.
    fn of(table: &str) -> Result<Self> {
        let line = table.lines().find_map(|line| line.trim().strip_prefix(TAP)?.strip_prefix(':'));
        let figures = line.with_context(|| format!("the kernel does not count what {TAP} does"))?;
        let figures: Vec<_> = figures.split_whitespace().collect();
        let bytes =
            |place: usize| figures.get(place).and_then(|bytes| bytes.parse().ok()).context("no bytes");
        Ok(Self { received: bytes(0)?, sent: bytes(8)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_tells_what_went_through_the_device() {
        let table = "Inter-|   Receive      |  Transmit\n \
            face |bytes    packets errs|bytes    packets\n    \
            lo:  1 1 0 0 0 0 0 0  1 1 0 0 0 0 0 0\n  \
            tap0:12345 100 0 0 0 0 0 0 67890 9 0 0 0 0 0 0\n";
        assert_eq!(Traffic::of(table).unwrap(), Traffic { received: 12345, sent: 67890 });
        assert!(Traffic::of("lo: 1 1").is_err());
        assert!(Traffic::of("tap0: 1 1").is_err());
    }

    #[test]
    fn the_same_machine_is_led_by_both_where_ironic_is_compared() {
        for way in Way::ALL.iter().filter(|way| way.leader == Leader::Ironic) {
            assert!(Way::ALL.contains(&Way { leader: Leader::Farrier, ..*way }), "{way}");
        }
    }
}
