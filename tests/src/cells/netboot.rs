//! One way to boot the ramdisk from the network: a cell of the matrix of boot interfaces and firmware.
//!
//! A cell has a network of its own, a bridge in a network namespace that ends with it. There the reference conductor
//! gives addresses and serves all files, and a machine with real firmware is inspected, deployed and rescued: what its
//! kernel was told is on its console, and how far it came is what `farrier explain` tells.

use crate::conductor::lab::{Instance, Lab};
use crate::images::instance::{GREETING, image, sha256};
use crate::images::server::{ImageServer, Reply};
use crate::machine::Firmware;
use crate::network::bridge::{ADDRESS, DhcpServer, RANGE, network};
use crate::network::netboot_loaders::{Architecture, Bootable};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const NODE: &str = "horse";
const MAC: &str = "52:54:00:fa:00:43";
/// GRUB 2.06 loads by HTTP from port 80 alone.
const LISTEN: &str = "192.0.2.1:80";
const DISK_BYTES: u64 = 64 << 20;
/// What takes longer hangs, also on a busy machine with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const POLL: Duration = Duration::from_millis(500);
/// The end of what the conductor adds to the kernel's parameters, which differs by operation, as the kernel repeats it.
const PARAMETER: &str = "-url=http://192.0.2.1";
/// UEFI firmware with the keys that shim is signed by, and what the kernel says that it starts.
const SECURE: [&str; 2] = ["/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"];
const IS_SECURE: &str = "Secure boot enabled";
/// UEFI firmware loads by its own network stack, as that of servers does: QEMU's card has iPXE, by which shim does not
/// learn how long GRUB is.
const OWN_STACK: &str = "-global virtio-net-pci.romfile=";
/// UEFI firmware of a site that boots by HTTP alone: otherwise it tries both kinds of PXE first, one minute each time.
const HTTP_ALONE: &str = "-fw_cfg name=opt/org.tianocore/IPv4PXESupport,string=n \
                          -fw_cfg name=opt/org.tianocore/IPv6PXESupport,string=n";
/// What the trace tells, the first by who gives addresses.
const STAGES: [&str; 4] = [" leased", "script fetched", "kernel 100 %", "initramfs 100 %"];

/// A way to boot from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The boot interface.
    pub method: &'static str,
    /// The firmware.
    pub firmware: Firmware,
    /// The architecture.
    pub architecture: Architecture,
    /// Who gives addresses.
    pub addresses: Addresses,
    /// Whether the firmware starts only what is signed, by keys that are in it.
    pub secure_boot: bool,
}

/// Who gives addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// The conductor's dnsmasq.
    Conductor,
    /// A DHCP server of the site, beside which the conductor's dnsmasq only tells what to load (proxy-DHCP).
    Site,
}

/// How long each operation took, from its order to its end.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// The inspection.
    pub inspect: Duration,
    /// The deployment, to the first word of the instance.
    pub deploy: Duration,
    /// The rescue.
    pub rescue: Duration,
}

impl Cell {
    /// Every way that there is.
    pub const ALL: [Self; 12] = [
        Self::new("pxe", Firmware::Bios),
        Self::new("pxe", Firmware::Uefi),
        Self::new("ipxe", Firmware::Bios),
        Self::new("ipxe", Firmware::Uefi),
        Self::new("http", Firmware::Uefi),
        Self::new("http-ipxe", Firmware::Uefi),
        Self::new("ipxe", Firmware::Bios).beside_a_site(),
        Self::new("ipxe", Firmware::Uefi).beside_a_site(),
        Self::new("pxe", Firmware::Uefi).of_aarch64(),
        Self::new("ipxe", Firmware::Uefi).of_aarch64(),
        Self::new("http", Firmware::Uefi).of_aarch64(),
        Self::new("http-ipxe", Firmware::Uefi).of_aarch64(),
    ];

    const fn new(method: &'static str, firmware: Firmware) -> Self {
        let (architecture, addresses) = (Architecture::X86_64, Addresses::Conductor);
        Self { method, firmware, architecture, addresses, secure_boot: false }
    }

    const fn beside_a_site(self) -> Self {
        Self { addresses: Addresses::Site, ..self }
    }

    const fn of_aarch64(self) -> Self {
        Self { architecture: Architecture::Aarch64, ..self }
    }

    /// Whether the firmware loads by itself, and not by what is on its card.
    fn loads_itself(self) -> bool {
        self.firmware == Firmware::Uefi && self.addresses == Addresses::Conductor
    }

    /// What the trace tells of a machine that a conductor has served everything.
    fn stages(self) -> &'static [&'static str] {
        match self.addresses {
            Addresses::Conductor => &STAGES,
            Addresses::Site => &STAGES[1..],
        }
    }

    /// Boots kernel and ramdisk, with files of this run in `folder`, for an inspection whose end nobody waits for. The
    /// calling thread, and what it starts from then on, is in the network of the cell.
    ///
    /// # Errors
    ///
    /// The machine did not come to its kernel; the text tells how far it came.
    pub fn boot(self, farrier: &Path, bootable: &Bootable, folder: &Path) -> Result<Duration> {
        let (lab, _site) = self.lab(farrier, bootable, folder)?;
        self.told(&lab, "boot", self.booted(&lab, &["node", "inspect", NODE]))
    }

    /// Has a machine inspected, deployed and rescued by the ramdisk, with files of this run in `folder`. The calling
    /// thread, and what it starts from then on, is in the network of the cell.
    ///
    /// # Errors
    ///
    /// An operation did not come to its end; the text tells how far it came.
    pub fn live(self, farrier: &Path, bootable: &Bootable, folder: &Path) -> Result<Life> {
        let (lab, _site) = self.lab(farrier, bootable, folder)?;
        let told = |operation: &str, outcome| self.told(&lab, operation, outcome);
        let inspect = told("inspection", self.ordered(&lab, &["node", "inspect", NODE], "manageable"))?;
        lab.order(&["node", "provide", NODE])?;
        let deploy = told("deployment", self.deployed(&lab))?;
        let password = folder.join("password");
        fs::write(&password, "stable\n")?;
        let rescue = ["node", "rescue", NODE, "--password-file", &password.display().to_string()];
        let rescue = told("rescue", self.ordered(&lab, &rescue, "rescue"))?;
        Ok(Life { inspect, deploy, rescue })
    }

    /// An operation that fails is told with what machine and conductor said last.
    fn told(self, lab: &Lab, operation: &str, outcome: Result<Duration>) -> Result<Duration> {
        outcome.with_context(|| {
            let (console, log) = (lab.console(NODE).tail(), lab.log_tail());
            format!("{self}, {operation}; its console:\n{console}\nthe conductor:\n{log}\nwhat happened")
        })
    }

    /// A network with a conductor that serves everything, and a node.
    fn lab(self, farrier: &Path, bootable: &Bootable, folder: &Path) -> Result<(Lab, Option<DhcpServer>)> {
        network(1)?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let allowed = bootable.dist.display().to_string();
        let loaders = bootable.loader_file_paths(self.architecture, self.method, folder)?.join(",");
        let parameters = format!(
            "{}:{} ipa-disk-wait-attempts=1",
            self.architecture,
            self.architecture.kernel_parameters()
        );
        let (range, site) = match self.addresses {
            Addresses::Conductor => (RANGE, None),
            Addresses::Site => ("192.0.2.0,proxy", Some(DhcpServer::start(folder, &[])?)),
        };
        File::create(folder.join("disk.img"))?.set_len(DISK_BYTES)?;
        let mut serve = [
            &["--api-url", "http://192.0.2.1", "--file-url-allowed-paths", &allowed][..],
            &["--tftp-listen", "192.0.2.1:69", "--tftp-server", "192.0.2.1"],
            &["--dhcp-provider", "dnsmasq", "--dhcp-interface", "br0"],
            &["--dhcp-range", range, "--automated-clean", "false"],
            &["--kernel-append-params-by-arch", &parameters],
        ]
        .concat();
        if !loaders.is_empty() {
            serve.extend(["--loader-file-paths", &loaders]);
        }
        let lab = Lab::start_at(LISTEN, farrier, folder, &serve)?;
        self.enrol(&lab, &bootable.dist)?;
        Ok((lab, site))
    }

    /// Gives an order that the ramdisk carries out, and waits until that has started.
    fn booted(self, lab: &Lab, order: &[&str]) -> Result<Duration> {
        let begin = Instant::now();
        lab.order(&[order, &["--no-wait"]].concat())?;
        within(begin, || trace(lab), |trace| self.stages().iter().all(|stage| trace.contains(stage)))?;
        // Each start of a machine begins its console anew.
        lab.console(NODE).wait_for(PARAMETER, 0, PATIENCE)?;
        if self.secure_boot {
            lab.console(NODE).wait_for(IS_SECURE, 0, PATIENCE)?;
        }
        Ok(begin.elapsed())
    }

    /// The same, and waits until the node is in this state.
    fn ordered(self, lab: &Lab, order: &[&str], state: &str) -> Result<Duration> {
        let begin = Instant::now();
        self.booted(lab, order)?;
        let is_over = |node: &Value| node["provision_state"] == state || !node["last_error"].is_null();
        let node = within(begin, || lab.node(NODE), is_over)?;
        ensure!(node["last_error"].is_null(), "{}", node["last_error"]);
        Ok(begin.elapsed())
    }

    /// Deploys an image and waits until its system is up.
    fn deployed(self, lab: &Lab) -> Result<Duration> {
        let begin = Instant::now();
        let image = Arc::new(image()?);
        let server = ImageServer::start_at(ADDRESS, vec![Reply::Body(Arc::clone(&image))])?;
        let instance = Instance { url: server.url(), sha256: &sha256(&image), config_drive: None };
        let (mut told, mut is_told) = (String::new(), false);
        lab.deploy(NODE, &instance, |event| {
            if event.event == "first_heartbeat" {
                told = trace(lab).unwrap_or_else(|error| format!("{error:#}"));
                is_told = lab.console(NODE).text().contains(PARAMETER);
            }
        })?;
        ensure!(
            self.stages().iter().all(|stage| told.contains(stage)),
            "the trace does not tell of each stage: {told}"
        );
        ensure!(is_told, "the kernel was not told {PARAMETER}");
        lab.console(NODE).wait_for(GREETING, 0, PATIENCE)?;
        Ok(begin.elapsed())
    }

    fn enrol(self, lab: &Lab, dist: &Path) -> Result<()> {
        let mode = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        let tap = "-netdev tap,id=tap,ifname=tap0,script=no,downscript=no -netdev hubport,id=port,hubid=0,netdev=tap";
        let boot = format!("boot={}", self.method);
        let capabilities = format!("capabilities=boot_mode:{mode}");
        let own = if self.loads_itself() { uefi_arguments(self.method) } else { Vec::new() };
        let extra = [vec![tap], own].concat().join(" ");
        let [code, vars] = SECURE;
        let secure = [format!("qemu_firmware_code={code}"), format!("qemu_firmware_vars_template={vars}")];
        let architecture = format!("cpu_arch={}", self.architecture);
        let info = [
            format!("qemu_firmware={mode}"),
            "qemu_memory_mib=1024".to_owned(),
            "qemu_network=isolated".to_owned(),
            format!("qemu_extra_args={extra}"),
            format!("qemu_console_log={}", lab.console(NODE).file().display()),
            format!("deploy_kernel={}", dist.join("vmlinuz").display()),
            format!("deploy_ramdisk={}", dist.join("initramfs.img").display()),
            format!("qemu_disks={};serial=ROOT", lab.folder().join("disk.img").display()),
        ];
        let mut create = vec!["node", "create", NODE, "--mac", MAC, "--driver", "qemu"];
        create.extend(["--interface", &boot, "--property", &capabilities, "--property", &architecture]);
        create.extend(["--property", r#"root_device={"serial": "ROOT"}"#]);
        let secure = secure.iter().filter(|_| self.secure_boot);
        create.extend(info.iter().chain(secure).flat_map(|pair| ["--driver-info", pair]));
        lab.order(&create)?;
        lab.order(&["node", "manage", NODE]).map(drop)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let firmware = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        write!(f, "{}-{firmware}", self.method)?;
        if self.architecture != Architecture::X86_64 {
            write!(f, "-{}", self.architecture)?;
        }
        f.write_str(if self.addresses == Addresses::Site { "-proxy" } else { "" })
    }
}

/// Arguments of QEMU by which UEFI firmware loads by itself, as it is set up where machines boot by this interface.
pub fn uefi_arguments(method: &str) -> Vec<&'static str> {
    let http_alone = method.starts_with("http").then_some(HTTP_ALONE);
    [OWN_STACK].into_iter().chain(http_alone).collect()
}

/// Asks until the answer is as wanted.
fn within<T: fmt::Debug>(
    begin: Instant,
    ask: impl Fn() -> Result<T>,
    is_wanted: impl Fn(&T) -> bool,
) -> Result<T> {
    loop {
        let answer = ask()?;
        if is_wanted(&answer) {
            return Ok(answer);
        }
        ensure!(begin.elapsed() < PATIENCE, "nothing but {answer:?} in {PATIENCE:?}");
        thread::sleep(POLL);
    }
}

/// How far the machine came.
fn trace(lab: &Lab) -> Result<String> {
    let explained: Value = serde_json::from_str(&lab.order(&["explain", NODE, "--json"])?)?;
    let evidence = explained["evidence"].as_array().into_iter().flatten();
    let mut traces = evidence.filter(|one| one["what"] == "boot");
    Ok(traces.next().and_then(|one| one["said"].as_str()).unwrap_or_default().to_owned())
}
