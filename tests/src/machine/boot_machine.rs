//! An emulated machine that starts the ramdisk with the firmware that real ones have.

use super::console::Console;
use crate::machine;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Firmware, with the keys it trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// BIOS.
    SeaBios,
    /// UEFI for x86_64 without Secure Boot.
    Ovmf,
    /// UEFI that starts only what Microsoft's keys vouch for, as servers come.
    OvmfMicrosoft,
    /// UEFI that starts only what the test key of Debian's package vouches for.
    OvmfTestKey,
    /// UEFI for aarch64.
    Aavmf,
}

/// From what the machine starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A medium.
    Medium(&'a Path, Drive),
    /// Kernel and ramdisk in a folder, which the firmware is given with these kernel parameters.
    Ramdisk(&'a Path, &'a str),
    /// A network first, and then the disk in this file.
    Network(Card<'a>, &'a Path),
}

/// How a machine is on the network that it starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card<'a> {
    /// Its hardware address.
    pub mac: &'a str,
    /// How it is connected: QEMU's network `net`.
    pub network: &'a str,
    /// Whether the firmware loads by the iPXE on the card; else UEFI does so by itself.
    pub has_ipxe: bool,
    /// Whether UEFI loads by HTTP; else by TFTP.
    pub loads_by_http: bool,
}

/// How a medium is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// In an optical drive.
    Optical,
    /// On a USB stick.
    Usb,
}

/// A running machine. Dropping it switches it off.
#[derive(Debug)]
pub struct BootMachine {
    qemu: Child,
    console: Console,
}

impl Firmware {
    /// Files of program and variables, if they are not built into QEMU.
    fn files(self) -> Option<(PathBuf, PathBuf)> {
        let (folder, code, variables) = match self {
            Self::SeaBios => return None,
            Self::Ovmf => ("OVMF", "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
            Self::OvmfMicrosoft => ("OVMF", "OVMF_CODE_4M.ms.fd", "OVMF_VARS_4M.ms.fd"),
            Self::OvmfTestKey => ("OVMF", "OVMF_CODE_4M.snakeoil.fd", "OVMF_VARS_4M.snakeoil.fd"),
            Self::Aavmf => ("AAVMF", "AAVMF_CODE.fd", "AAVMF_VARS.fd"),
        };
        let folder = Path::new("/usr/share").join(folder);
        Some((folder.join(code), folder.join(variables)))
    }

    fn is_secure(self) -> bool {
        matches!(self, Self::OvmfMicrosoft | Self::OvmfTestKey)
    }

    /// A machine of the architecture, emulated: KVM hangs inside some virtual machines.
    fn machine(self) -> Command {
        let (program, machine) = match self {
            Self::Aavmf => ("qemu-system-aarch64", "virt"),
            // Only the firmware may write variables then.
            _ if self.is_secure() => ("qemu-system-x86_64", "q35,smm=on"),
            _ => ("qemu-system-x86_64", "q35,smm=off"),
        };
        let mut qemu = Command::new(program);
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", machine]);
        let cpu = if self == Self::Aavmf { "cortex-a57" } else { "max" };
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", cpu]);
        if self.is_secure() {
            qemu.args(["-global", "driver=cfi.pflash01,property=secure,value=on"]);
        }
        qemu
    }
}

impl Source<'_> {
    fn arguments(self) -> Vec<OsString> {
        match self {
            Self::Medium(medium, drive) => [words(&BESIDE), drive.arguments(medium)].concat(),
            Self::Ramdisk(folder, parameters) => {
                let (kernel, ramdisk) = (folder.join("vmlinuz"), folder.join("initramfs.img"));
                let own = ["-kernel".into(), kernel.into(), "-initrd".into(), ramdisk.into()];
                [words(&BESIDE), own.into(), words(&["-append", parameters])].concat()
            }
            Self::Network(card, disk) => card.arguments(disk),
        }
    }
}

/// A network beside what a machine starts from: without an option ROM the firmware does not try to boot from it.
const BESIDE: [&str; 4] = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="];

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

impl Drive {
    fn arguments(self, medium: &Path) -> Vec<OsString> {
        let (options, [controller, device]) = match self {
            Self::Optical => ("media=cdrom,", ["virtio-scsi-pci", "scsi-cd,drive=medium"]),
            Self::Usb => ("", ["qemu-xhci", "usb-storage,drive=medium"]),
        };
        let file = format!("if=none,id=medium,format=raw,readonly=on,{options}file={}", medium.display());
        words(&["-drive", &file, "-device", controller, "-device", device])
    }
}

impl Card<'_> {
    fn arguments(self, disk: &Path) -> Vec<OsString> {
        let (mac, rom) = (self.mac, if self.has_ipxe { "" } else { ",romfile=" });
        let card = format!("virtio-net-pci,netdev=net,bootindex=0,mac={mac}{rom}");
        // UEFI tries each protocol in turn, those that nobody serves for a minute.
        let off = if self.loads_by_http { ["IPv4PXE", "IPv6PXE"].as_slice() } else { &["IPv6PXE"] };
        let off = off.iter().map(|name| format!("name=opt/org.tianocore/{name}Support,string=n"));
        let off = off.flat_map(|file| words(&["-fw_cfg", &file]));
        let (disk, device) = (machine::drive("ROOT", disk), "virtio-blk-pci,drive=ROOT,bootindex=1");
        // What BIOS shows on a screen is on the serial port then.
        let own = ["-machine", "graphics=off", "-netdev", self.network, "-device", &card];
        let disk = ["-drive", &disk, "-device", device];
        words(&own).into_iter().chain(words(&disk)).chain(off).collect()
    }
}

impl BootMachine {
    /// Switches a machine on that has nothing but what it starts from, and a network; its console and
    /// the firmware's variables are kept in `folder`.
    ///
    /// # Errors
    ///
    /// QEMU or the firmware is not installed.
    pub fn start(firmware: Firmware, memory_mib: u32, source: Source<'_>, folder: &Path) -> Result<Self> {
        let console = Console::new(folder.join("console.log"));
        let mut qemu = firmware.machine();
        qemu.args(["-m", &memory_mib.to_string()]);
        if let Some((code, template)) = firmware.files() {
            let variables = folder.join("variables.fd");
            fs::copy(&template, &variables).with_context(|| format!("cannot copy {}", template.display()))?;
            for (file, options) in [(&code, "readonly=on,"), (&variables, "")] {
                qemu.args(["-drive", &format!("if=pflash,format=raw,{options}file={}", file.display())]);
            }
        }
        qemu.args(["-serial", &format!("file:{}", console.file().display())]);
        qemu.args(["-device", "virtio-rng-pci"]);
        qemu.args(source.arguments());
        let program = qemu.get_program().to_string_lossy().into_owned();
        let qemu = qemu.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {program}"))?;
        Ok(Self { qemu, console })
    }

    /// The serial console.
    pub fn console(&self) -> &Console {
        &self.console
    }
}

impl Drop for BootMachine {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.qemu.kill().ok();
        self.qemu.wait().ok();
    }
}
