//! A local QEMU machine as "bare metal", for demonstrations and tests.
//!
//! [`with_qemu`] adds the hardware type `qemu` to a conductor, with its power, management, boot and console interfaces.
//!
//! Each node has a [folder](folders) below the state directory: `console.log` (serial console of this power-on;
//! `console.log.old` of the one before), `console.sock` (where somebody can sit down at that console), `qemu.log`
//! (QEMU's own messages), `qemu.pid`, `control.sock` (where QEMU takes orders), `vars.fd` (the variables of UEFI
//! firmware, which outlive power cycles), `kernel-parameters` (there while the machine boots the ramdisk), `boot-device`
//! (there while it starts from the network), `instance` and `config-drive` (there while its instance is a ramdisk or an
//! ISO).

mod accelerator;
mod architecture;
mod arguments;
mod boot;
mod console;
mod control;
mod description;
mod disks;
mod files;
mod firmware;
mod folders;
mod instance;
mod management;
mod power;
mod process;

use crate::netboot::images::AllowedFolders;
use boot::QemuBoot;
use console::QemuConsole;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::BootDevice;
use farrier_conductor::{Drivers, HardwareType};
use folders::Folders;
use management::QemuManagement;
use power::QemuPower;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest name of a socket on Linux, in bytes.
const LONGEST_NAME: usize = 107;

/// What records may have of the conductor's host.
#[derive(Debug, Clone, Default)]
pub struct QemuSettings {
    /// The folders that disks, kernels, ramdisks, media, firmware and logs of consoles lie below.
    pub allowed: AllowedFolders,
    /// Whether a record may name the program and further arguments (`qemu_binary` and `qemu_extra_args`): a user
    /// of the node API can then do whatever the conductor's user can.
    pub unsafe_driver_info: bool,
}

/// A QEMU machine could not be controlled.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// A file or folder of the machine cannot be used.
    #[error("{path}: {source}; check that it exists and may be written")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// QEMU cannot be started at all.
    #[error(
        "{binary} cannot be started: {source}; install QEMU (Debian: qemu-system-x86; qemu-system-arm for aarch64)"
    )]
    Spawn {
        /// The program.
        binary: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// QEMU ended or hung before the machine ran.
    #[error("QEMU did not start the machine: {reason}; see {log}")]
    Start {
        /// The last thing it said.
        reason: String,
        /// Its messages.
        log: PathBuf,
    },
    /// The process does not end.
    #[error("QEMU process {pid} does not end, not even by SIGKILL; look at its state in /proc/{pid}/status")]
    Stop {
        /// The process.
        pid: i32,
    },
    /// The machine takes no orders while it runs.
    #[error("QEMU does not accept commands at {socket}: {reason}")]
    Control {
        /// Its socket.
        socket: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// The machine has no such device.
    #[error("the machine cannot start from {0}; choose disk or pxe")]
    BootDevice(BootDevice),
    /// No port for the way from the host to the agent.
    #[error("no free port on 127.0.0.1 for the way to the agent: {0}")]
    Port(std::io::Error),
}

impl QemuError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

impl From<QemuError> for InterfaceError {
    fn from(error: QemuError) -> Self {
        Self::driver(error)
    }
}

/// The deploy interfaces of its machines, the best one first.
const DEPLOY: [&str; 5] = ["autodetect", "direct", "ramdisk", "bootc", "custom-agent"];

/// Adds the hardware type `qemu`, whose machines have their folders below `state_dir`. They are booted by its own boot
/// interface, or by `further` ones, which have to be added too.
pub fn with_qemu(
    drivers: Drivers,
    state_dir: impl Into<PathBuf>,
    settings: QemuSettings,
    further: &[&'static str],
) -> Drivers {
    let folders = Folders::below(state_dir.into(), Arc::new(settings));
    let qemu =
        HardwareType::new("qemu").power(["qemu"]).management(["qemu"]).boot([&["qemu"], further].concat());
    let qemu = qemu.inspect(["agent", "no-inspect"]).raid(["no-raid", "agent"]);
    drivers
        .power("qemu", QemuPower::new(folders.clone()))
        .management("qemu", QemuManagement::new(folders.clone()))
        .boot("qemu", QemuBoot::new(folders.clone()))
        .console("qemu", QemuConsole::new(folders))
        .hardware_type(qemu.console(["qemu"]).deploy(DEPLOY).rescue(["agent", "no-rescue"]))
}

/// A socket in the folder of a machine; nothing where that has too long a name for one.
fn socket(folder: &Path, name: &str) -> Option<PathBuf> {
    let socket = folder.join(name);
    (socket.as_os_str().len() <= LONGEST_NAME).then_some(socket)
}

fn remove(file: &Path) -> Result<(), QemuError> {
    match std::fs::remove_file(file) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(QemuError::File { path: file.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// The text of a file; nothing when there is no such file.
fn read(file: &Path) -> Result<Option<String>, QemuError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(QemuError::File { path: file.to_owned(), source }),
    }
}
