//! One way to boot the ramdisk from the network: a cell of the matrix of boot interfaces and firmware.
//!
//! A cell has a network of its own, a bridge in a network namespace that ends with it. There the reference conductor
//! gives addresses and serves all files, and a machine with real firmware is inspected: what its kernel was told is on
//! its console, and how far it came is what `farrier explain` tells.

use crate::lab::Lab;
use crate::machine::Firmware;
use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const NODE: &str = "horse";
const MAC: &str = "52:54:00:fa:00:43";
/// GRUB 2.06 loads by HTTP from port 80 alone.
const LISTEN: &str = "192.0.2.1:80";
/// What takes longer hangs, also on a busy machine with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const POLL: Duration = Duration::from_millis(500);
/// What the conductor adds to the kernel's parameters, as the kernel repeats them.
const PARAMETER: &str = "ipa-inspection-callback-url=http://192.0.2.1";
/// What the trace tells of a machine that a conductor has served everything.
const STAGES: [&str; 4] = [" leased", "script fetched", "kernel 100 %", "initramfs 100 %"];

/// A way to boot from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The boot interface.
    pub method: &'static str,
    /// The firmware.
    pub firmware: Firmware,
}

impl Cell {
    /// Every way that there is.
    pub const ALL: [Self; 6] = [
        Self { method: "pxe", firmware: Firmware::Bios },
        Self { method: "pxe", firmware: Firmware::Uefi },
        Self { method: "ipxe", firmware: Firmware::Bios },
        Self { method: "ipxe", firmware: Firmware::Uefi },
        Self { method: "http", firmware: Firmware::Uefi },
        Self { method: "http-ipxe", firmware: Firmware::Uefi },
    ];

    /// Boots kernel and ramdisk of the folder `dist`, with files of this run in `folder`. The calling thread, and what it
    /// starts from then on, is in the network of the cell.
    ///
    /// # Errors
    ///
    /// The machine did not come to its kernel; the text tells how far it came.
    pub fn run(self, farrier: &Path, dist: &Path, folder: &Path) -> Result<Duration> {
        network()?;
        let allowed = dist.display().to_string();
        let own_grub = grub_with_http(folder)?;
        let mut serve = [
            &["--api-url", "http://192.0.2.1", "--file-url-allowed-paths", &allowed][..],
            &["--tftp-listen", "192.0.2.1:69", "--tftp-server", "192.0.2.1"],
            &["--dhcp-provider", "dnsmasq", "--dhcp-interface", "br0"],
            &["--dhcp-range", "192.0.2.100,192.0.2.200"],
        ]
        .concat();
        if self.method == "http" {
            serve.extend(["--loader-file-paths", &own_grub]);
        }
        let lab = Lab::start_at(LISTEN, farrier, folder, &serve)?;
        self.enrol(&lab, dist)?;
        let begin = Instant::now();
        lab.order(&["node", "inspect", NODE, "--no-wait"])?;
        let trace = loop {
            let trace = trace(&lab)?;
            if STAGES[2..].iter().all(|stage| trace.contains(stage)) {
                break trace;
            }
            if begin.elapsed() > PATIENCE {
                bail!(
                    "{self} came no further than {trace} in {PATIENCE:?}; its console:\n{}\nthe conductor:\n{}",
                    lab.console(NODE).tail(),
                    lab.log_tail()
                );
            }
            thread::sleep(POLL);
        };
        lab.console(NODE).wait_for(PARAMETER, 0, PATIENCE)?;
        for stage in STAGES {
            ensure!(trace.contains(stage), "{self}: the trace tells not {stage:?}: {trace}");
        }
        Ok(begin.elapsed())
    }

    fn enrol(self, lab: &Lab, dist: &Path) -> Result<()> {
        let mode = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        let tap = "-netdev tap,id=tap,ifname=tap0,script=no,downscript=no -netdev hubport,id=port,hubid=0,netdev=tap";
        let boot = format!("boot={}", self.method);
        let capabilities = format!("capabilities=boot_mode:{mode}");
        let info = [
            format!("qemu_firmware={mode}"),
            "qemu_memory_mib=1024".to_owned(),
            "qemu_network=isolated".to_owned(),
            format!("qemu_extra_args={tap}"),
            format!("qemu_console_log={}", lab.console(NODE).file().display()),
            format!("deploy_kernel={}", dist.join("vmlinuz").display()),
            format!("deploy_ramdisk={}", dist.join("initramfs.img").display()),
            "kernel_append_params=console=ttyS0 no_timer_check".to_owned(),
        ];
        let mut create = vec!["node", "create", NODE, "--mac", MAC, "--driver", "qemu"];
        create.extend(["--interface", &boot, "--property", &capabilities]);
        create.extend(info.iter().flat_map(|pair| ["--driver-info", pair]));
        lab.order(&create)?;
        lab.order(&["node", "manage", NODE]).map(drop)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let firmware = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        write!(f, "{}-{firmware}", self.method)
    }
}

/// A GRUB that can load by HTTP, since the one that Debian signs cannot: made as the book tells operators to.
fn grub_with_http(folder: &Path) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = folder.join("grub-http.efi");
    let output = Command::new("grub-mkimage")
        .args(["-O", "x86_64-efi", "-p", "/grub", "-o"])
        .arg(&file)
        .args(["efinet", "http", "tftp", "net", "normal", "configfile", "linux"])
        .args(["echo", "sleep", "test", "reboot", "boot"])
        .output()
        .context("cannot start grub-mkimage")?;
    ensure!(output.status.success(), "grub-mkimage: {}", String::from_utf8_lossy(&output.stderr));
    Ok(format!("grubx64.efi:{}", file.display()))
}

/// How far the machine came.
fn trace(lab: &Lab) -> Result<String> {
    let explained: Value = serde_json::from_str(&lab.order(&["explain", NODE, "--json"])?)?;
    let evidence = explained["evidence"].as_array().into_iter().flatten();
    let mut traces = evidence.filter(|one| one["what"] == "boot from the network");
    Ok(traces.next().and_then(|one| one["said"].as_str()).unwrap_or_default().to_owned())
}

/// A bridge with a place for one machine, in a network of the calling thread's own.
fn network() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("there is no network of its own; this needs root")?;
    for words in [
        "link set lo up",
        "link add br0 type bridge",
        "addr add 192.0.2.1/24 dev br0",
        "link set br0 up",
        "tuntap add tap0 mode tap",
        "link set tap0 master br0",
        "link set tap0 up",
    ] {
        let output = Command::new("ip").args(words.split(' ')).output().context("cannot start ip")?;
        ensure!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
