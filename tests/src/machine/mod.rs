//! An emulated machine that the test itself switches on, for conductors that cannot.

pub mod boot_machine;
pub mod console;
pub mod console_record;
pub mod monitor;

use self::console::Console;
use crate::environment;
use anyhow::{Context, Result, bail};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(100);

/// What a deployment may need at most.
const DEPLOYING_MIB: u32 = 256;
/// What an installed system is given: under UEFI, GRUB finds no room in less for Debian's common kernel.
const INSTALLED_MIB: u32 = 512;
/// The program of the UEFI firmware.
pub const FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
/// The variables with which it starts its first life.
pub const VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// User and group without rights, for what must not run as root.
pub const NOBODY: u32 = 65534;

/// Kernel parameters for emulated machines. On a busy host the emulated timer may be so late that the kernel takes it
/// for broken and gives up; and an emulated processor translates a program anew for each address at which it finds it.
pub const EMULATED: &str =
    "no_timer_check norandmaps cryptomgr.notests initcall_blacklist=crypto_kdf108_init";

/// What a machine is made of.
#[derive(Debug)]
pub struct Hardware {
    /// Hardware address of its network card.
    pub mac: String,
    /// Port of the loopback address that leads to the agent.
    pub agent_port: u16,
    /// Port of the loopback address for what is typed at its console.
    pub keyboard_port: u16,
    /// Its disks: file and serial number.
    pub disks: Vec<(PathBuf, &'static str)>,
    /// The media in the drives of its BMC.
    pub media: Vec<Medium>,
    /// Folder for what outlives its being on: the console's log, the firmware's variables.
    pub folder: PathBuf,
}

/// The firmware of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Firmware {
    /// BIOS.
    Bios,
    /// UEFI without Secure Boot.
    Uefi,
}

impl Firmware {
    /// The kernel of the ramdisk in a folder, as this firmware is given it. Without UEFI it need not be one that
    /// unpacks itself, which takes an emulated processor as long as all that comes after; all ramdisks of the tests
    /// have the same.
    pub fn kernel(self, dist: &Path) -> PathBuf {
        let unpacked = environment::optional_path("FARRIER_UNPACKED_KERNEL");
        unpacked.filter(|_| self == Self::Bios).unwrap_or_else(|| dist.join("vmlinuz"))
    }

    /// The ramdisk in a folder, as this firmware is given it. Without UEFI, which lacks the memory for it in a small machine,
    /// that of all tests need not be packed: an emulated processor needs a fifth less time then until the agent starts.
    pub fn ramdisk(self, dist: &Path) -> PathBuf {
        let unpacked = environment::optional_path("FARRIER_UNPACKED_RAMDISK").filter(|_| self == Self::Bios);
        let is_of_all = || environment::optional_path("FARRIER_DIST").is_some_and(|of_all| of_all == dist);
        unpacked.filter(|_| is_of_all()).unwrap_or_else(|| dist.join("initramfs.img"))
    }
}

/// From what a machine boots.
#[derive(Debug, Clone, Copy)]
pub enum Boot<'a> {
    /// From a kernel and a ramdisk in a folder that the firmware is given, with these parameters.
    Ramdisk(&'a Path, &'a str),
    /// From what the firmware finds on its disks.
    Disks,
}

/// A medium in a drive of the BMC, as a file.
#[derive(Debug)]
pub enum Medium {
    /// In an optical drive.
    Optical(PathBuf),
    /// In a drive on USB.
    Usb(PathBuf),
}

/// A running machine. Dropping it switches it off.
#[derive(Debug)]
pub struct Machine {
    qemu: Child,
    console: Console,
}

impl Hardware {
    /// The serial console, which keeps what earlier boots wrote.
    pub fn console(&self) -> Console {
        Console::new(self.folder.join("console.log"))
    }

    /// Switches the machine on. It has a BIOS, which an emulated processor is done with in a third of the time that
    /// UEFI firmware takes.
    ///
    /// # Errors
    ///
    /// QEMU or the firmware is not installed.
    pub fn boot(&self, boot: Boot<'_>) -> Result<Machine> {
        self.boot_with(boot, &[])
    }

    /// Switches the machine on after one of its disks was taken out, and has it boot from the others. What it
    /// writes is forgotten: the disk that was missing once would be stale the next time.
    ///
    /// # Errors
    ///
    /// As [`Hardware::boot`].
    pub fn boot_without(&self, disk: usize, firmware: Firmware) -> Result<Machine> {
        let mut disks = self.disks.clone();
        disks.remove(disk);
        let (mac, folder, media) = (self.mac.clone(), self.folder.clone(), Vec::new());
        Self { mac, folder, media, disks, ..*self }.boot_under(
            firmware,
            Boot::Disks,
            &["-snapshot".to_owned()],
        )
    }

    /// As [`Hardware::boot`], with further arguments of QEMU.
    ///
    /// # Errors
    ///
    /// As [`Hardware::boot`].
    pub fn boot_with(&self, boot: Boot<'_>, arguments: &[String]) -> Result<Machine> {
        self.boot_under(Firmware::Bios, boot, arguments)
    }

    /// As [`Hardware::boot_with`], with this firmware.
    ///
    /// # Errors
    ///
    /// As [`Hardware::boot`].
    pub fn boot_under(&self, firmware: Firmware, boot: Boot<'_>, arguments: &[String]) -> Result<Machine> {
        // Without an option ROM the firmware does not try to boot from the network.
        let card = format!("virtio-net-pci,netdev=net,romfile=,mac={}", self.mac);
        let mut all = vec!["-netdev".to_owned(), user_network(self.agent_port), "-device".to_owned(), card];
        all.extend_from_slice(arguments);
        self.start(firmware, boot, &all)
    }

    /// As [`Hardware::boot_under`], with no other network cards than those of the arguments.
    ///
    /// # Errors
    ///
    /// As [`Hardware::boot`].
    pub fn boot_without_network(
        &self,
        firmware: Firmware,
        boot: Boot<'_>,
        arguments: &[String],
    ) -> Result<Machine> {
        self.start(firmware, boot, arguments)
    }

    fn start(&self, firmware: Firmware, boot: Boot<'_>, arguments: &[String]) -> Result<Machine> {
        let mut qemu = self.command(firmware, boot, arguments)?;
        let qemu = qemu.stdin(Stdio::null()).spawn().context("cannot start qemu-system-x86_64")?;
        Ok(Machine { qemu, console: self.console() })
    }

    /// The command that switches the machine on, with no other network cards than those of the arguments.
    ///
    /// # Errors
    ///
    /// The firmware is not installed.
    pub fn command(&self, firmware: Firmware, boot: Boot<'_>, arguments: &[String]) -> Result<Command> {
        let console = self.console();
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,smm=off"]);
        let mebibytes = match boot {
            Boot::Ramdisk(..) => DEPLOYING_MIB,
            Boot::Disks => INSTALLED_MIB,
        };
        // KVM hangs inside some virtual machines; emulation works everywhere.
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", &mebibytes.to_string()]);
        if firmware == Firmware::Uefi {
            let variables = self.firmware_variables()?;
            qemu.args(["-drive", &format!("if=pflash,format=raw,readonly=on,file={FIRMWARE}")]);
            qemu.args(["-drive", &format!("if=pflash,format=raw,file={}", variables.display())]);
        }
        let keyboard = format!("host=127.0.0.1,port={},server=on,wait=off", self.keyboard_port);
        let terminal = format!("socket,id=console,{keyboard}");
        qemu.args(["-chardev", &format!("{terminal},logfile={},logappend=on", console.file().display())]);
        qemu.args(["-serial", "chardev:console", "-device", "virtio-rng-pci"]);
        for (file, serial) in &self.disks {
            qemu.args(["-drive", &drive(serial, file)]);
            qemu.args(["-device", &format!("virtio-blk-pci,drive={serial},serial={serial}")]);
        }
        if !self.media.is_empty() {
            qemu.args(["-device", "qemu-xhci"]);
        }
        for (number, medium) in self.media.iter().enumerate() {
            let (options, device) = match medium {
                Medium::Optical(_) => ("readonly=on,media=cdrom", format!("ide-cd,bus=ide.{number}")),
                Medium::Usb(_) => ("readonly=on", "usb-storage".to_owned()),
            };
            let (Medium::Optical(file) | Medium::Usb(file)) = medium;
            let drive = format!("if=none,format=raw,id=medium{number},{options},file={}", file.display());
            qemu.args(["-drive", &drive, "-device", &format!("{device},drive=medium{number}")]);
        }
        qemu.args(arguments);
        if let Boot::Ramdisk(dist, parameters) = boot {
            qemu.arg("-kernel").arg(firmware.kernel(dist)).arg("-initrd").arg(firmware.ramdisk(dist));
            qemu.args(["-append", &format!("{EMULATED} {parameters}")]);
        }
        Ok(qemu)
    }

    /// The file in which its UEFI firmware keeps its variables.
    fn firmware_variables(&self) -> Result<PathBuf> {
        let variables = self.folder.join("vars.fd");
        if !variables.exists() {
            fs::copy(VARIABLES, &variables).with_context(|| format!("cannot copy {VARIABLES}"))?;
        }
        Ok(variables)
    }
}

/// QEMU's drive of a disk in a file. This host need not keep what it flushes: the file is gone with the test.
pub fn drive(id: &str, file: &Path) -> String {
    format!("if=none,format=raw,cache=unsafe,id={id},file={}", file.display())
}

/// QEMU's network `net`, in which this machine is 10.0.2.2, with a way in to the agent.
pub fn user_network(agent_port: u16) -> String {
    format!("user,id=net,hostfwd=tcp:127.0.0.1:{agent_port}-:9999")
}

impl Machine {
    /// Its serial console.
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// Whether the machine has not switched itself off, and QEMU not given up.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn is_on(&mut self) -> Result<bool> {
        Ok(self.qemu.try_wait()?.is_none())
    }

    /// Waits until the machine has switched itself off.
    ///
    /// # Errors
    ///
    /// It is still on after `limit`.
    pub fn wait_until_off(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.qemu.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        bail!("the machine is still on after {limit:?}; its console:\n{}", self.console.tail())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may be off already.
        self.qemu.kill().ok();
        self.qemu.wait().ok();
    }
}

/// A port of the loopback address that nobody listens on.
///
/// # Errors
///
/// There is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
