//! A libvirt of its own for one machine, as an unprivileged user and away from any other libvirt.
//!
//! The daemon finds its configuration, the machine and a storage pool as files in one folder; nobody
//! needs a client to define them.

use crate::machine::{FIRMWARE, Hardware, NOBODY, VARIABLES, user_network};
use crate::network::bridge;
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const START: Duration = Duration::from_secs(60);

/// The daemon; search paths of users do not lead there.
const PROGRAM: &str = "/usr/sbin/libvirtd";

/// The identifier by which the machine is known to libvirt and its users.
pub const UUID: &str = "22222222-2222-4222-8222-222222222222";
const NAME: &str = "horse";

/// How the machine is connected.
#[derive(Debug, Clone, Copy)]
pub enum Network<'a> {
    /// Behind QEMU's own router, with a way in to the agent. Its card asks for a URL when it boots from the network.
    Router {
        /// The URL; without one the machine does not boot from the network.
        boot_file: Option<&'a str>,
    },
    /// At a place of the bridge, from which its firmware boots by its own network stack.
    Bridge {
        /// The number of the place.
        place: usize,
    },
}

impl Network<'_> {
    /// QEMU's network `net`.
    fn back_end(self, agent_port: u16) -> String {
        match self {
            Self::Router { boot_file: None } => user_network(agent_port),
            Self::Router { boot_file: Some(url) } => format!("{},bootfile={url}", user_network(agent_port)),
            Self::Bridge { place } => bridge::place(place),
        }
    }

    /// Whether the card has iPXE.
    fn has_ipxe(self) -> bool {
        matches!(self, Self::Router { boot_file: Some(_) })
    }

    /// Memory of the machine in MiB. GRUB on a virtual medium finds too little in half of it, and the system of a server
    /// has an initial ramdisk with all drivers.
    fn memory_mib(self) -> u32 {
        match self {
            Self::Router { .. } => 512,
            Self::Bridge { .. } => 2048,
        }
    }
}

/// The daemon. Dropping it ends it and switches the machine off.
#[derive(Debug)]
pub struct Libvirt {
    daemon: Child,
    folder: PathBuf,
}

impl Libvirt {
    /// Starts the daemon, which knows one machine that is off.
    ///
    /// # Errors
    ///
    /// libvirt is not installed or did not start; the text holds its log.
    pub fn start(hardware: &Hardware, network: Network<'_>) -> Result<Self> {
        let folder = hardware.folder.join("libvirt");
        write_configuration(&folder, &domain(hardware, &folder, network))?;
        let log = File::create(folder.join("libvirtd.log"))?;
        let mut daemon = Command::new(PROGRAM);
        daemon.arg("--config").arg(folder.join("libvirtd.conf"));
        daemon.env("HOME", &folder).env("TMPDIR", &folder);
        for (variable, name) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_RUNTIME_DIR", "run"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_DATA_HOME", "data"),
        ] {
            daemon.env(variable, folder.join(name));
        }
        // As root it would be the libvirt of the system.
        if geteuid().is_root() {
            give_to_nobody(&hardware.folder)?;
            hardware.disks.iter().try_for_each(|(disk, _)| give_to_nobody(disk))?;
            daemon.uid(NOBODY).gid(NOBODY);
        }
        let daemon = daemon.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let mut libvirt = Self { daemon: daemon.with_context(|| format!("cannot start {PROGRAM}"))?, folder };
        libvirt.wait_until_ready()?;
        Ok(libvirt)
    }

    /// Where clients connect to.
    pub fn uri(&self) -> String {
        format!("qemu+unix:///session?socket={}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("libvirt-sock")
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            let ended = self.daemon.try_wait()?;
            if ended.is_some() || start.elapsed() > START {
                let log = fs::read_to_string(self.folder.join("libvirtd.log")).unwrap_or_default();
                bail!("libvirtd does not listen ({ended:?}):\n{log}");
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Libvirt {
    fn drop(&mut self) {
        kill(Pid::from_raw(self.daemon.id().cast_signed()), Signal::SIGTERM).ok();
        self.daemon.wait().ok();
        // The machine outlives the daemon, and leaves no such file when it is off.
        let file = self.folder.join(format!("run/libvirt/qemu/run/{NAME}.pid"));
        let machine = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
        machine.map(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL));
    }
}

fn write_configuration(folder: &Path, domain: &str) -> Result<()> {
    let path = folder.display();
    let pool = format!(
        "<pool type='dir'><name>default</name><uuid>11111111-1111-4111-8111-111111111111</uuid>\
         <target><path>{path}/pool</path></target></pool>"
    );
    let machine = format!("config/libvirt/qemu/{NAME}.xml");
    for (name, content) in [
        ("libvirtd.conf", format!("unix_sock_dir = \"{path}\"\nauth_unix_rw = \"none\"\n")),
        // Without a log daemon and confinement there is nothing but libvirtd to start.
        ("config/libvirt/qemu.conf", "stdio_handler = \"file\"\nsecurity_driver = \"none\"\n".to_owned()),
        ("config/libvirt/storage/default.xml", pool),
        (machine.as_str(), domain.to_owned()),
    ] {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().context("a file without a folder")?)?;
        fs::write(file, content)?;
    }
    for name in ["cache", "data", "pool", "run", "config/libvirt/storage/autostart"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let autostart = folder.join("config/libvirt/storage/autostart/default.xml");
    Ok(symlink(folder.join("config/libvirt/storage/default.xml"), autostart)?)
}

/// The machine in libvirt's words.
fn domain(hardware: &Hardware, folder: &Path, network: Network<'_>) -> String {
    let Hardware { mac, agent_port, keyboard_port, .. } = hardware;
    let console = hardware.console();
    let log = console.file().display();
    let disks: String = hardware
        .disks
        .iter()
        .zip('a'..)
        .map(|((file, serial), letter)| {
            format!(
                "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{}'/>\
             <target dev='vd{letter}' bus='virtio'/><serial>{serial}</serial></disk>\n",
                file.display()
            )
        })
        .collect();
    let rom = if network.has_ipxe() { "" } else { "<rom enabled='no'/>" };
    let (memory_mib, network) = (network.memory_mib(), network.back_end(*agent_port));
    let folder = folder.display();
    // libvirt cannot describe these networks: QEMU has them as arguments, and the card is moved to them.
    format!(
        "\
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
<name>{NAME}</name><uuid>{UUID}</uuid>
<memory unit='MiB'>{memory_mib}</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type>
<loader readonly='yes' type='pflash'>{FIRMWARE}</loader>
<nvram template='{VARIABLES}'>{folder}/vars.fd</nvram></os>
<features><acpi/><smm state='off'/></features><cpu mode='maximum'/>
<devices><controller type='usb' model='none'/><memballoon model='none'/>
{disks}<interface type='user'><mac address='{mac}'/><model type='virtio'/><alias name='ua-net'/>{rom}</interface>
<serial type='tcp'><source mode='bind' host='127.0.0.1' service='{keyboard_port}'/>
<protocol type='raw'/><log file='{log}' append='on'/></serial>
<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng></devices>
<qemu:commandline><qemu:arg value='-netdev'/><qemu:arg value='{network}'/></qemu:commandline>
<qemu:override><qemu:device alias='ua-net'><qemu:frontend>
<qemu:property name='netdev' type='string' value='net'/>
</qemu:frontend></qemu:device></qemu:override>
</domain>
"
    )
}

/// Hands a file, or a folder with all that is in it, to the user without rights, and lets that user
/// get there.
fn give_to_nobody(path: &Path) -> Result<()> {
    chown(path, Some(NOBODY), Some(NOBODY))
        .with_context(|| format!("cannot give away {}", path.display()))?;
    if let Some(parent) = path.parent() {
        let mut permissions = fs::metadata(parent)?.permissions();
        permissions.set_mode(permissions.mode() | 0o111);
        fs::set_permissions(parent, permissions)?;
    }
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path)? {
            give_to_nobody(&entry?.path())?;
        }
    }
    Ok(())
}
