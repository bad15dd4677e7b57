//! An emulated machine on which the reference conductor runs: with Debian's kernel and as root, where the kernel of this host
//! lacks what the conductor needs, and on a host that can be suspended, whose clock is another one.
//!
//! Its root is that of this host, which it can only read. It starts a conductor on a bridge and has no other purpose.

use super::operator::Operator;
use crate::machine::console::Typist;
use crate::machine::monitor::Monitor;
use crate::machine::{Boot, Firmware, Hardware, Machine, free_port};
use crate::network::bridge;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Its address.
const ADDRESS: &str = "192.0.2.3";
/// Ports of the conductor, for machines and for operators.
const PORTS: [u16; 2] = [6385, 6386];
const MAC: &str = "52:54:00:fa:00:03";
/// What takes longer hangs, also on a busy machine with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// What the first process writes once operators are answered, or when there is no hope of it.
const READY: &str = "office: open";
const CLOSED: &str = "office: closed";
/// The folder of its files, as its conductor finds it.
pub const FOLDER: &str = "/mnt";
/// What is typed at its console before a time is the order to set the clock.
const CLOCK: &str = "clock ";
/// The modules that are asked for, of which `modprobe` finds the others among [`NEEDED`].
const LOADED: [&str; 5] = ["virtio_pci", "virtio_net", "virtio-rng", "9pnet_virtio", "9p"];
/// Those of open-iscsi.
const LOADED_FOR_ISCSI: [&str; 3] = ["sd_mod", "iscsi_tcp", "crc32c_generic"];
/// What they need.
const NEEDED: [&str; 21] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "net_failover",
    "failover",
    "rng-core",
    "9pnet",
    "netfs",
    "fscache",
    "scsi_mod",
    "scsi_common",
    "t10-pi",
    "crc64-rocksoft",
    "crc64-rocksoft_generic",
    "crc64",
    "crc-t10dif",
    "crct10dif_common",
    "libiscsi",
    "libiscsi_tcp",
    "scsi_transport_iscsi",
];

/// The machine. Dropping it switches it off.
#[derive(Debug)]
pub struct Office {
    /// Whoever gives its conductor orders.
    pub operator: Operator,
    hardware: Hardware,
    monitor: Monitor,
    typist: Typist,
    _machine: Machine,
}

/// What it is made of.
#[derive(Debug, Clone, Copy)]
pub struct Equipment<'a> {
    /// The program of the conductor.
    pub farrier: &'a Path,
    /// Folder with Debian's kernel, `vmlinuz`.
    pub dist: &'a Path,
    /// The kernel's modules.
    pub modules: &'a Path,
    /// Its memory in MiB.
    pub memory_mib: u32,
    /// Whether it has open-iscsi, which has to be installed here.
    pub has_open_iscsi: bool,
}

impl Office {
    /// Switches it on at a [place](bridge::place) of the bridge, with its files in `folder` and further arguments of
    /// `farrier serve`.
    ///
    /// # Errors
    ///
    /// The conductor did not start; the text holds its log.
    pub fn start(equipment: Equipment<'_>, place: usize, folder: &Path, serve: &[&str]) -> Result<Self> {
        let boot = folder.join("boot");
        fs::create_dir_all(&boot)?;
        fs::copy(equipment.dist.join("vmlinuz"), boot.join("vmlinuz"))?;
        pack(equipment, &boot)?;
        let start = folder.join("start");
        fs::write(&start, start_script(equipment, serve))?;
        fs::set_permissions(&start, Permissions::from_mode(0o755))?;
        let hardware = Hardware {
            mac: MAC.to_owned(),
            agent_port: 0,
            keyboard_port: free_port()?,
            disks: Vec::new(),
            media: Vec::new(),
            folder: folder.to_owned(),
        };
        let shared = |what: &str, path: &Path, more: &str| {
            format!(
                "local,mount_tag={what},path={},security_model=none,multidevs=remap{more}",
                path.display()
            )
        };
        let [qmp, socket] = Monitor::arguments(&folder.join("monitor"));
        let arguments = [
            ["-m", &equipment.memory_mib.to_string()],
            [&qmp, &socket],
            ["-netdev", &bridge::place(place)],
            ["-device", &format!("virtio-net-pci,netdev=net,romfile=,mac={MAC}")],
            ["-virtfs", &shared("root", Path::new("/"), ",readonly=on")],
            ["-virtfs", &shared("folder", folder, "")],
        ]
        .concat()
        .iter()
        .map(|&text| text.to_owned())
        .collect::<Vec<_>>();
        let boot = Boot::Ramdisk(&boot, "console=ttyS0 panic=-1");
        let machine = hardware.boot_without_network(Firmware::Bios, boot, &arguments)?;
        let url = format!("https://{ADDRESS}:{}", PORTS[1]);
        let operator = Operator::elsewhere(equipment.farrier, url, folder);
        let monitor = Monitor::connect(&folder.join("monitor"))?;
        let typist = hardware.console().typist(hardware.keyboard_port)?;
        let office = Self { operator, hardware, monitor, typist, _machine: machine };
        let console = office.hardware.console();
        console.wait_for("office: ", 0, PATIENCE).with_context(|| office.said())?;
        ensure!(console.text().contains(READY), "{}", office.said());
        Ok(office)
    }

    /// Suspends it: its processor stands still, and with it all of its clocks. Packets that are sent to it wait.
    ///
    /// # Errors
    ///
    /// QEMU refuses.
    pub fn suspend(&mut self) -> Result<()> {
        self.monitor.execute("stop", &json!({})).map(drop)
    }

    /// Resumes it where it stood.
    ///
    /// # Errors
    ///
    /// QEMU refuses.
    pub fn resume(&mut self) -> Result<()> {
        self.monitor.execute("cont", &json!({})).map(drop)
    }

    /// Sets its clock, as a time server would, and waits until it is set.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn set_clock(&mut self, to: SystemTime) -> Result<()> {
        let seconds = to.duration_since(UNIX_EPOCH).context("no machine has had such a clock")?.as_secs();
        self.typist.answer("", &format!("{CLOCK}{seconds}"), PATIENCE)?;
        self.typist.expect(&format!("office: clock {seconds}"), PATIENCE).with_context(|| self.said())
    }

    /// URL of the conductor as agents reach it.
    pub fn url_for_agents() -> String {
        format!("http://{ADDRESS}:{}", PORTS[0])
    }

    /// The end of what machine and conductor said.
    pub fn said(&self) -> String {
        let log = fs::read_to_string(self.hardware.folder.join("conductor.log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n");
        format!("the office's console:\n{}\nits conductor:\n{tail}", self.hardware.console().tail())
    }
}

/// Writes the ramdisk: busybox, which has to be linked statically, the modules, and the first process.
fn pack(equipment: Equipment<'_>, folder: &Path) -> Result<()> {
    let modules = equipment.modules;
    let release = modules.file_name().context("no folder of modules")?;
    let tree = folder.join("tree");
    let kept = tree.join("lib/modules").join(release);
    for path in ["bin", "sbin", "proc", "sys", "dev", "root"] {
        fs::create_dir_all(tree.join(path))?;
    }
    fs::create_dir_all(&kept)?;
    fs::copy("/bin/busybox", tree.join("bin/busybox")).context("busybox is not installed")?;
    for name in loaded(equipment).chain(NEEDED) {
        if let Some(file) = find(&modules.join("kernel"), &format!("{name}.ko"))? {
            fs::copy(&file, kept.join(format!("{name}.ko")))?;
        }
    }
    fs::write(tree.join("init"), init_script(equipment))?;
    fs::set_permissions(tree.join("init"), Permissions::from_mode(0o755))?;
    let packed = Command::new("busybox")
        .args(["sh", "-c", "busybox mknod dev/console c 5 1 && busybox find . | busybox cpio -o -H newc"])
        .current_dir(&tree)
        .stdout(File::create(folder.join("initramfs.img"))?)
        .output()?;
    ensure!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    Ok(())
}

/// The modules that are asked for.
fn loaded(equipment: Equipment<'_>) -> impl Iterator<Item = &'static str> {
    let for_iscsi = equipment.has_open_iscsi.then_some(LOADED_FOR_ISCSI);
    LOADED.into_iter().chain(for_iscsi.into_iter().flatten())
}

/// The file with this name below a folder. What is none is part of the kernel.
fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let found = match entry.file_type()?.is_dir() {
            true => find(&entry.path(), name)?,
            false => (entry.file_name() == name).then(|| entry.path()),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The first process: this host's root, with folders of its own where something is written.
fn init_script(equipment: Equipment<'_>) -> String {
    let mut script = format!(
        "#!/bin/busybox sh
trap 'echo {CLOSED}; sleep 1; poweroff -f' EXIT
set -e
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
depmod
"
    );
    for module in loaded(equipment) {
        // A text can always be written to.
        writeln!(script, "modprobe {module}").unwrap_or_default();
    }
    script
        + &format!(
            "ip link set lo up
ip addr add {ADDRESS}/24 dev eth0
ip link set eth0 up
mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=loose,ro root /root
for folder in proc sys dev; do mount -o bind /$folder /root/$folder; done
for folder in tmp run mnt; do mount -t tmpfs tmpfs /root/$folder; done
{iscsi}mount -t 9p -o trans=virtio,version=9p2000.L,cache=none folder /root{FOLDER}
mkdir -p /root/run/lock
(while read -r word time; do [ \"$word \" = '{CLOCK}' ] && date -s @$time && echo office: clock $time; done) < /dev/ttyS0 &
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
chroot /root {FOLDER}/start
",
            iscsi = if equipment.has_open_iscsi { INITIATOR } else { "" }
        )
}

/// What open-iscsi writes to.
const INITIATOR: &str = "mount -t tmpfs tmpfs /root/var/lib/iscsi
cp /root/etc/iscsi/iscsid.conf /bin/iscsid.conf
mount -t tmpfs tmpfs /root/etc/iscsi
cp /bin/iscsid.conf /root/etc/iscsi
echo InitiatorName=iqn.2026-11.org.example:office > /root/etc/iscsi/initiatorname.iscsi
";

/// What runs on the root of this host.
fn start_script(equipment: Equipment<'_>, serve: &[&str]) -> String {
    let arguments: String = serve.iter().map(|argument| format!(" '{argument}'")).collect();
    let [machines, operators] = PORTS;
    format!(
        "#!/bin/sh
set -e
{iscsi}'{farrier}' serve --listen {ADDRESS}:{machines} --admin-listen {ADDRESS}:{operators} --state-dir /run/farrier{arguments} \
  > /run/conductor 2> {FOLDER}/conductor.log &
conductor=$!
while ! grep -q 'node API listening' /run/conductor; do kill -0 $conductor; sleep 0.2; done
cp /run/farrier/token /run/farrier/tls/certificate.pem {FOLDER}
echo {READY}
wait $conductor
",
        iscsi = if equipment.has_open_iscsi { "iscsid -f > /mnt/iscsid.log 2>&1 &\n" } else { "" },
        farrier = equipment.farrier.display()
    )
}
