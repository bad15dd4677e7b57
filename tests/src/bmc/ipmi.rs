//! A BMC that speaks IPMI: OpenIPMI's simulator, which switches a machine of QEMU.
//!
//! The simulator has its machine by a program that it starts for each order. That one is a few lines of shell here, and
//! QEMU's own file of its process tells whether the machine is on.

use crate::machine::{Boot, Firmware, Hardware, user_network};
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Who may ask.
pub const USER: &str = "stable-hand";
/// The password of that user.
pub const PASSWORD: &str = "oats+hay=horse";

const START: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// A presence ping of ASF; any answer tells that somebody is there.
const PING: [u8; 12] = [0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x80, 0x00, 0x00, 0x00];

/// What the simulator starts for each order. A boot device is for one start; without one the machine starts from its
/// disks.
const CHASSIS: &str = r#"#!/bin/sh
cd 'FOLDER' || exit 1
shift
echo "$@" >> told
off() {
    [ -e process ] || return
    kill "$(cat process)"
    while [ -e process ]; do sleep 0.1; done
}
on() {
    [ -e process ] && return
    device=$(cat boot)
    echo default > boot
    sh "./on-$device" > qemu.log 2>&1 < /dev/null
}
case "$1 $2 $3" in
'get power '*) if [ -e process ]; then echo power:1; else echo power:0; fi ;;
'get boot '*) echo "boot:$(cat boot)" ;;
'set boot pxe') echo pxe > boot ;;
'set boot '*) echo default > boot ;;
'set power 1') on ;;
'set power 0') off ;;
'set reset '*) off; on ;;
'set shutdown '*) [ -e process ] && echo system_powerdown > monitor.in ;;
esac
exit 0
"#;

/// The BMC of one machine. Dropping it switches the machine off.
#[derive(Debug)]
pub struct Simulator {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Simulator {
    /// Starts the simulator for a machine that is off and asks for `network_boot`, a URL, when it is booted from the
    /// network.
    ///
    /// # Errors
    ///
    /// OpenIPMI or QEMU is not installed, or the simulator did not start; the text holds its log.
    pub fn start(hardware: &Hardware, network_boot: &str) -> Result<Self> {
        let folder = hardware.folder.join("ipmi");
        fs::create_dir_all(folder.join("state"))?;
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        write_machine(hardware, network_boot, &folder)?;
        let chassis = folder.join("chassis");
        fs::write(&chassis, CHASSIS.replace("FOLDER", &folder.display().to_string()))?;
        fs::set_permissions(&chassis, fs::Permissions::from_mode(0o755))?;
        let levels = ["callback", "user", "operator", "admin"];
        let allowed = levels.map(|level| format!("allowed_auths_{level} none md2 md5 straight\n")).concat();
        let lan = format!(
            "name \"horse\"\nset_working_mc 0x20\nstartlan 1\naddr 127.0.0.1 {port}\npriv_limit admin\n{allowed}\
             guid a123456789abcdefa123456789abcdef\nendlan\nchassis_control \"{} 0x20\"\n\
             user 2 true \"{USER}\" \"{PASSWORD}\" admin 10 none md2 md5 straight\n",
            chassis.display()
        );
        fs::write(folder.join("lan.conf"), lan)?;
        let emulated = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n\
                        sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n";
        fs::write(folder.join("machine.emu"), emulated)?;
        let log = File::create(folder.join("simulator.log"))?;
        let mut command = Command::new("ipmi_sim");
        command.arg("-c").arg(folder.join("lan.conf")).arg("-f").arg(folder.join("machine.emu"));
        command.arg("-s").arg(folder.join("state")).arg("-n").stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn().context("cannot start ipmi_sim")?;
        let simulator = Self { child, port, folder };
        simulator.wait_until_ready()?;
        Ok(simulator)
    }

    /// Its port of the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has told its machine, as `set power 1`.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn told(&self) -> Result<Vec<String>> {
        let file = self.folder.join("told");
        let told = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(told.lines().map(|line| line.trim_end().to_owned()).collect())
    }

    fn wait_until_ready(&self) -> Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(POLL))?;
        let start = Instant::now();
        loop {
            socket.send_to(&PING, (Ipv4Addr::LOCALHOST, self.port))?;
            if socket.recv(&mut [0; 512]).is_ok() {
                return Ok(());
            }
            let log = fs::read_to_string(self.folder.join("simulator.log")).unwrap_or_default();
            ensure!(start.elapsed() < START, "ipmi_sim does not answer:\n{log}");
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        let process = fs::read_to_string(self.folder.join("process")).ok();
        let process = process.and_then(|text| text.trim().parse().ok());
        process.map(|process| kill(Pid::from_raw(process), Signal::SIGKILL));
    }
}

/// A disk, which firmware is to try after a card. It would take those that QEMU does not order out of its own order for good,
/// as no firmware of a server does whose BMC asks for another boot device once.
fn after_the_card(word: &str) -> String {
    let is_disk = word.starts_with("virtio-blk-pci,");
    if is_disk {
        format!("{word},bootindex={}", if word.contains("ROOT") { 1 } else { 2 })
    } else {
        word.to_owned()
    }
}

/// How the machine is switched on, for each boot device, and the pipe for its button.
fn write_machine(hardware: &Hardware, network_boot: &str, folder: &Path) -> Result<()> {
    for pipe in ["monitor.in", "monitor.out"] {
        mkfifo(&folder.join(pipe), Mode::S_IRUSR | Mode::S_IWUSR)?;
    }
    let (mac, path) = (&hardware.mac, folder.display());
    let network = format!("{},bootfile={network_boot}", user_network(hardware.agent_port));
    // Without an option ROM the firmware does not try to boot from the network.
    for (device, start) in [("pxe", "bootindex=0"), ("default", "romfile=")] {
        let card = format!("virtio-net-pci,netdev=net,{start},mac={mac}");
        let arguments = [
            ["-netdev", &network],
            ["-device", &card],
            ["-chardev", &format!("pipe,id=monitor,path={path}/monitor")],
            ["-mon", "chardev=monitor"],
            ["-pidfile", &format!("{path}/process")],
        ];
        let arguments: Vec<_> = arguments.as_flattened().iter().map(|one| (*one).to_owned()).collect();
        let qemu = hardware.command(Firmware::Uefi, Boot::Disks, &arguments)?;
        let words = std::iter::once(qemu.get_program()).chain(qemu.get_args());
        let words: Vec<_> =
            words.map(|word| format!("'{}'", after_the_card(&word.to_string_lossy()))).collect();
        fs::write(folder.join(format!("on-{device}")), format!("exec {} -daemonize\n", words.join(" ")))?;
    }
    fs::write(folder.join("boot"), "default\n")?;
    Ok(fs::write(folder.join("told"), "")?)
}
