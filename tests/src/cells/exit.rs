//! One way back from the network: a cell of the matrix of machines that are not to boot from there.
//!
//! A cell has a network of its own, a bridge in a network namespace. There the reference conductor serves all files, and a
//! machine with real firmware, which begins with the network, loads a boot loader that finds nothing to boot. The machine has
//! to come to the system on its disk.

use super::netboot::Addresses;
use crate::conductor::lab::Lab;
use crate::images::instance::{GREETING, image, signed_image};
use crate::machine::boot_machine::{BootMachine, Card, Firmware, Source};
use crate::machine::console::Console;
use crate::network::bridge::{DhcpServer, RANGE, network, place};
use crate::network::netboot_loaders::{Architecture, Bootable};
use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const NODE: &str = "horse";
const MAC: &str = "52:54:00:fa:00:46";
/// GRUB 2.06 loads by HTTP from port 80 alone.
const LISTEN: &str = "192.0.2.1:80";
const MEMORY_MIB: u32 = 512;
/// What takes longer stands still, also on a busy machine with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(8 * 60);

/// A boot loader, and how firmware comes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loader {
    /// The firmware.
    pub firmware: Firmware,
    /// The boot interface that has machines load it.
    pub method: &'static str,
    /// Its name at the conductor; the script of iPXE where that is on the network card.
    pub file: &'static str,
    /// Where packages have what the conductor does not find by itself, as `--loader-file-paths` takes it.
    packaged: &'static [&'static str],
    /// Who gives addresses, and names the loader.
    pub addresses: Addresses,
}

/// What the conductor knows of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// Nothing.
    Unknown,
    /// Its instance is on its disk.
    Deployed,
    /// The same, with a conductor that sends such machines there (`--enable-netboot-fallback`).
    Sent,
    /// Nothing, with a conductor that has such machines run a script of its operator's (`--ipxe-fallback-script`), which
    /// ends well.
    Scripted,
}

/// A way back from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What is loaded.
    pub loader: Loader,
    /// For whom.
    pub machine: Machine,
}

/// The script of the iPXE on network cards.
const SCRIPT: &str = "boot.ipxe";
/// The script of an operator.
const OWN_SCRIPT: &str = "own.ipxe";

impl Loader {
    /// All of them that Debian has, and Farrier leads machines to.
    pub const ALL: [Self; 23] = [
        Self::new(Firmware::SeaBios, "pxe", "pxelinux.0"),
        Self::new(Firmware::SeaBios, "pxe", "lpxelinux.0")
            .packaged(&["lpxelinux.0:/usr/lib/PXELINUX/lpxelinux.0"]),
        Self::new(Firmware::SeaBios, "ipxe", SCRIPT).by_the_conductor(),
        Self::new(Firmware::SeaBios, "ipxe", "undionly.kpxe"),
        Self::new(Firmware::SeaBios, "ipxe", "undionly.kkpxe")
            .packaged(&["undionly.kkpxe:/usr/lib/ipxe/undionly.kkpxe"]),
        Self::new(Firmware::SeaBios, "ipxe", "ipxe.pxe").packaged(&["ipxe.pxe:/usr/lib/ipxe/ipxe.pxe"]),
        Self::new(Firmware::Ovmf, "pxe", "syslinux.efi").packaged(&[
            "syslinux.efi:/usr/lib/SYSLINUX.EFI/efi64/syslinux.efi",
            "ldlinux.e64:/usr/lib/syslinux/modules/efi64/ldlinux.e64",
        ]),
        Self::new(Firmware::Ovmf, "pxe", "bootx64.efi"),
        Self::new(Firmware::Ovmf, "pxe", "grubx64.efi"),
        Self::new(Firmware::OvmfMicrosoft, "pxe", "bootx64.efi"),
        Self::new(Firmware::Ovmf, "ipxe", SCRIPT),
        Self::new(Firmware::Ovmf, "ipxe", "snponly.efi").by_the_conductor(),
        Self::new(Firmware::Ovmf, "ipxe", "ipxe.efi"),
        Self::new(Firmware::Ovmf, "http", "bootx64.efi"),
        Self::new(Firmware::Ovmf, "http", "grubx64.efi"),
        Self::new(Firmware::Ovmf, "http-ipxe", "snponly.efi").by_the_conductor(),
        Self::new(Firmware::Ovmf, "http-ipxe", "ipxe.efi"),
        Self::new(Firmware::Aavmf, "pxe", "bootaa64.efi"),
        Self::new(Firmware::Aavmf, "pxe", "grubaa64.efi"),
        Self::new(Firmware::Aavmf, "ipxe", "ipxe-arm64.efi").by_the_conductor(),
        Self::new(Firmware::Aavmf, "http", "bootaa64.efi"),
        Self::new(Firmware::Aavmf, "http", "grubaa64.efi"),
        Self::new(Firmware::Aavmf, "http-ipxe", "ipxe-arm64.efi").by_the_conductor(),
    ];

    const fn new(firmware: Firmware, method: &'static str, file: &'static str) -> Self {
        Self { firmware, method, file, packaged: &[], addresses: Addresses::Site }
    }

    const fn packaged(self, packaged: &'static [&'static str]) -> Self {
        Self { packaged, ..self }
    }

    const fn by_the_conductor(self) -> Self {
        Self { addresses: Addresses::Conductor, ..self }
    }

    /// The architecture of its machines.
    pub fn architecture(self) -> Architecture {
        if self.firmware == Firmware::Aavmf { Architecture::Aarch64 } else { Architecture::X86_64 }
    }

    fn is_ipxe(self) -> bool {
        self.method.ends_with("ipxe")
    }

    fn is_pxelinux(self) -> bool {
        self.file.contains("linux")
    }

    fn is_by_http(self) -> bool {
        self.method.starts_with("http")
    }

    /// Whether the iPXE on the card loads it and tells the DHCP server the same as what it loads.
    fn is_ipxe_of_ipxe(self) -> bool {
        self.firmware == Firmware::SeaBios && self.is_ipxe() && self.file != SCRIPT
    }

    /// What a DHCP server of the site tells, as the book has it.
    fn told(self) -> Vec<String> {
        let (url, file) = ("http://192.0.2.1", self.file);
        let script = format!("{url}/{SCRIPT}");
        let tag = if self.is_ipxe() && !self.is_ipxe_of_ipxe() { "tag:!ipxe," } else { "" };
        let mut told = vec!["--dhcp-match=set:ipxe,175".to_owned()];
        if !tag.is_empty() {
            told.push(format!("--dhcp-boot=tag:ipxe,{script}"));
        }
        match self.is_by_http() {
            true => told.extend([
                format!("--dhcp-boot={tag}{url}/{file}"),
                format!("--dhcp-option-force={tag}60,HTTPClient"),
            ]),
            false => told.push(format!("--dhcp-boot={tag}{file},,192.0.2.1")),
        }
        told
    }
}

impl Machine {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Deployed, Self::Sent, Self::Scripted];

    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Sent => "fallback",
            Self::Scripted => "script",
        }
    }
}

impl Cell {
    /// Every loader for every machine. An operator's script is the same however iPXE was loaded: so it is tried with the
    /// loaders alone that the conductor's own DHCP server names.
    pub fn all() -> Vec<Self> {
        let of = |loader| Machine::ALL.map(|machine| Self { loader, machine });
        let is_one =
            |cell: &Self| cell.machine != Machine::Scripted || cell.loader.addresses == Addresses::Conductor;
        Loader::ALL.into_iter().flat_map(of).filter(is_one).collect()
    }

    /// Has the machine come to its disk, with files of this run in `folder`. The calling thread, and what it starts from then
    /// on, is in the network of the cell.
    ///
    /// # Errors
    ///
    /// The system on the disk does not start, or the loader was not what sent the machine there; the text holds the console.
    pub fn run(self, farrier: &Path, bootable: &Bootable, folder: &Path) -> Result<Duration> {
        network(1)?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let disk = folder.join("disk.img");
        let is_secure = self.loader.firmware == Firmware::OvmfMicrosoft;
        fs::write(&disk, if is_secure { signed_image()? } else { image()? })?;
        let lab = self.lab(farrier, bootable, folder)?;
        let mut site = match self.loader.addresses {
            Addresses::Conductor => None,
            Addresses::Site => Some(DhcpServer::start(folder, &self.loader.told())?),
        };
        let network = place(0);
        let card = Card {
            mac: MAC,
            network: &network,
            has_ipxe: self.loader.firmware == Firmware::SeaBios || self.loader.file == SCRIPT,
            loads_by_http: self.loader.is_by_http(),
        };
        let begin = Instant::now();
        let source = Source::Network(card, &disk);
        let machine = BootMachine::start(self.loader.firmware, MEMORY_MIB, source, folder)?;
        let outcome = self.comes_to_its_disk(machine.console(), site.as_mut(), folder);
        outcome.with_context(|| {
            let (console, log) = (machine.console().tail(), lab.log_tail());
            format!("{self}; its console:\n{console}\nthe conductor:\n{log}\nwhat happened")
        })?;
        Ok(begin.elapsed())
    }

    /// Waits for the loader, for what that was told, and for the system on the disk.
    fn comes_to_its_disk(
        self,
        console: &Console,
        site: Option<&mut DhcpServer>,
        folder: &Path,
    ) -> Result<()> {
        console.wait_for_shown(self.loader.file, PATIENCE)?;
        if let Some(site) = site.filter(|_| self.loader.is_ipxe_of_ipxe()) {
            // What was loaded is told with its size, after the percentages of a slow transfer.
            console.wait_for_shown(&format!("{} : ", self.loader.file), PATIENCE)?;
            site.start_again(folder, &[format!("--dhcp-boot=http://192.0.2.1/{SCRIPT}")])?;
        }
        console.wait_for_shown(self.said(), PATIENCE)?;
        console.wait_for_shown(GREETING, PATIENCE)
    }

    /// What the loader says that was told what it is to do.
    fn said(self) -> &'static str {
        match self.machine {
            Machine::Sent => "booting the local disk",
            _ if self.loader.is_pxelinux() => "booting the local disk",
            Machine::Scripted => "the conductor has no script for this machine; loading",
            _ if self.loader.is_ipxe() => "the conductor has no script for this machine; continuing",
            _ => "the conductor has no boot configuration for this machine",
        }
    }

    /// A conductor, and what it knows of the machine.
    fn lab(self, farrier: &Path, bootable: &Bootable, folder: &Path) -> Result<Lab> {
        let Loader { method, packaged, .. } = self.loader;
        let mut loaders = bootable.loader_file_paths(self.loader.architecture(), method, folder)?;
        loaders.extend(packaged.iter().map(|loader| (*loader).to_owned()));
        if self.machine == Machine::Scripted {
            let script = folder.join(OWN_SCRIPT);
            fs::write(&script, "#!ipxe\nexit\n")?;
            loaders.push(format!("{OWN_SCRIPT}:{}", script.display()));
        }
        let (loaders, allowed) = (loaders.join(","), folder.display().to_string());
        let fallback = (self.machine == Machine::Sent).to_string();
        let mut serve = vec!["--enabled-hardware-types", "manual", "--api-url", "http://192.0.2.1"];
        serve.extend(["--file-url-allowed-paths", &allowed, "--tftp-listen", "192.0.2.1:69"]);
        serve.extend(["--enable-netboot-fallback", &fallback]);
        if !loaders.is_empty() {
            serve.extend(["--loader-file-paths", &loaders]);
        }
        if self.machine == Machine::Scripted {
            serve.extend(["--ipxe-fallback-script", OWN_SCRIPT]);
        }
        if self.loader.addresses == Addresses::Conductor {
            serve.extend(["--dhcp-provider", "dnsmasq", "--dhcp-interface", "br0", "--dhcp-range", RANGE]);
            serve.extend(["--tftp-server", "192.0.2.1"]);
        }
        let lab = Lab::start_at(LISTEN, farrier, folder, &serve)?;
        if matches!(self.machine, Machine::Deployed | Machine::Sent) {
            self.adopt(&lab)?;
        }
        Ok(lab)
    }

    /// Has the conductor know the machine as one whose instance is on its disk.
    fn adopt(self, lab: &Lab) -> Result<()> {
        let mode = if self.loader.firmware == Firmware::SeaBios { "bios" } else { "uefi" };
        let (boot, mode) = (format!("boot={}", self.loader.method), format!("capabilities=boot_mode:{mode}"));
        let architecture = format!("cpu_arch={}", self.loader.architecture());
        let images = ["kernel", "ramdisk"].map(|image| {
            let file = lab.folder().join(image);
            fs::write(&file, image)?;
            anyhow::Ok(format!("deploy_{image}=file://{}", file.display()))
        });
        let mut create = vec!["node", "create", NODE, "--mac", MAC, "--driver", "manual"];
        create.extend(["--interface", &boot, "--property", &mode, "--property", &architecture]);
        let images = images.into_iter().collect::<Result<Vec<_>>>()?;
        create.extend(images.iter().flat_map(|image| ["--driver-info", image]));
        lab.order(&create)?;
        lab.order(&["node", "manage", NODE])?;
        lab.order(&["node", "adopt", NODE]).map(drop)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loader { firmware, method, file, .. } = self.loader;
        let firmware = match firmware {
            Firmware::SeaBios => "bios",
            Firmware::OvmfMicrosoft => "secure",
            _ => "uefi",
        };
        write!(f, "{firmware}-{method}-{file}-{}", self.machine.as_str())
    }
}
