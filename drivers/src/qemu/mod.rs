//! A local QEMU machine as "bare metal", for demonstrations and tests.
//!
//! Each node has a folder below the state directory: `console.log` (serial console of this power-on;
//! `console.log.old` of the one before), `qemu.log` (QEMU's own messages), `qemu.pid`, `vars.fd` (the
//! variables of UEFI firmware, which outlive power cycles) and `kernel-parameters` (there while the machine
//! boots the ramdisk).

mod accelerator;
mod arguments;
mod description;
mod disks;
mod firmware;
mod process;
mod qmp;

use accelerator::AcceleratorProbe;
use arguments::{Paths, RamdiskBoot};
use async_trait::async_trait;
use description::{AcceleratorChoice, Description, Network};
use farrier_conductor::interfaces::{Boot, PowerError, PowerInterface};
use farrier_conductor::model::{Node, PowerState};
use farrier_media::KernelParameters;
use firmware::Firmware;
use nix::unistd::AccessFlags;
use process::Machine;
use reqwest::Url;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The conductor's host as a guest with user networking sees it.
const HOST_SEEN_BY_GUEST: &str = "10.0.2.2";

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
    #[error("{binary} cannot be started: {source}; install QEMU (Debian: qemu-system-x86)")]
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

impl From<QemuError> for PowerError {
    fn from(error: QemuError) -> Self {
        Self::driver(error)
    }
}

/// Controls local QEMU machines.
#[derive(Debug)]
pub struct QemuPower {
    state_dir: PathBuf,
    probe: AcceleratorProbe,
    started: Mutex<HashMap<Uuid, Machine>>,
}

impl QemuPower {
    /// A driver that keeps what it knows about its machines below `state_dir`.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        let state_dir = state_dir.into();
        let probe = AcceleratorProbe::new(host_memory().unwrap_or_else(|| state_dir.clone()));
        Self { state_dir, probe, started: Mutex::default() }
    }

    fn machine(&self, node: &Node) -> Machine {
        Machine::new(self.state_dir.join(&node.name), node.uuid)
    }

    fn started(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, Machine>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start(&self, node: &Node, machine: &Machine) -> Result<(), PowerError> {
        let description = Description::read(node)?;
        let accelerator = match description.accelerator {
            AcceleratorChoice::Use(accelerator) => accelerator,
            AcceleratorChoice::Auto => self.probe.best(&description).await,
        };
        let folder = machine.folder();
        std::fs::create_dir_all(folder).map_err(QemuError::file(folder))?;
        let paths = Paths {
            vars: match &description.firmware {
                Firmware::Bios => None,
                Firmware::Uefi(firmware) => Some(firmware::own_variables(firmware, folder)?),
            },
            console: fresh_console(&self.console(node, &description))?,
            pid: machine.pid_file(),
        };
        let agent_port = free_port()?;
        let ramdisk = ramdisk_boot(&description, folder, agent_port)?;
        let arguments =
            arguments::vector(node, &description, accelerator, &paths, agent_port, ramdisk.as_ref());
        let link_up = description.network != Network::Unplugged;
        machine.start(&description.binary, &arguments, link_up).await?;
        self.started().insert(node.uuid, machine.clone());
        Ok(())
    }

    fn console(&self, node: &Node, description: &Description) -> PathBuf {
        description.console_log.clone().unwrap_or_else(|| self.state_dir.join(&node.name).join("console.log"))
    }
}

#[async_trait]
impl PowerInterface for QemuPower {
    async fn validate(&self, node: &Node) -> Result<(), PowerError> {
        let description = Description::read(node)?;
        description.check_files()
    }

    async fn power_state(&self, node: &Node) -> Result<PowerState, PowerError> {
        Ok(if self.machine(node).pid().is_some() { PowerState::On } else { PowerState::Off })
    }

    async fn power_on(&self, node: &Node) -> Result<(), PowerError> {
        let machine = self.machine(node);
        if machine.pid().is_some() {
            return Ok(());
        }
        self.start(node, &machine).await
    }

    async fn power_off(&self, node: &Node) -> Result<(), PowerError> {
        self.started().remove(&node.uuid);
        Ok(self.machine(node).stop().await?)
    }

    async fn set_boot(&self, node: &Node, boot: &Boot) -> Result<(), PowerError> {
        let folder = self.state_dir.join(&node.name);
        let file = parameters_file(&folder);
        match boot {
            Boot::Ramdisk(parameters) => {
                std::fs::create_dir_all(&folder).map_err(QemuError::file(&folder))?;
                std::fs::write(&file, parameters.to_string()).map_err(QemuError::file(&file))?;
            }
            Boot::Disk => remove(&file)?,
        }
        Ok(())
    }

    fn conductor_url(&self, url: &str) -> String {
        let Ok(mut url) = Url::parse(url) else { return url.to_owned() };
        match url.set_host(Some(HOST_SEEN_BY_GUEST)) {
            Ok(()) => url.as_str().trim_end_matches('/').to_owned(),
            Err(_) => url.to_string(),
        }
    }

    fn console_log(&self, node: &Node) -> Option<PathBuf> {
        Some(self.console(node, &Description::read(node).ok()?))
    }

    async fn forget(&self, node: &Node) -> Result<(), PowerError> {
        let folder = self.state_dir.join(&node.name);
        remove(&parameters_file(&folder))?;
        Ok(remove(&firmware::variables_file(&folder))?)
    }

    async fn shut_down(&self) {
        let machines: Vec<_> = self.started().drain().map(|(_, machine)| machine).collect();
        for machine in machines {
            if let Err(error) = machine.stop().await {
                tracing::error!("{error}");
            }
        }
    }
}

/// Where what was found out about this host is kept until it boots again, for whoever runs machines: the folder
/// that the system gives programs for this (XDG Base Directory Specification; Filesystem Hierarchy Standard, 3.15).
fn host_memory() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folders = own.into_iter().chain([PathBuf::from("/run")]).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("farrier")).find(|folder| {
        std::fs::create_dir_all(folder).is_ok() && nix::unistd::access(folder, AccessFlags::W_OK).is_ok()
    })
}

fn parameters_file(folder: &Path) -> PathBuf {
    folder.join("kernel-parameters")
}

fn remove(file: &Path) -> Result<(), QemuError> {
    match std::fs::remove_file(file) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(QemuError::File { path: file.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Puts the console of the last power-on aside, so that this one starts empty.
fn fresh_console(console: &Path) -> Result<PathBuf, QemuError> {
    if let Some(folder) = console.parent() {
        std::fs::create_dir_all(folder).map_err(QemuError::file(folder))?;
    }
    let mut old = console.as_os_str().to_owned();
    old.push(".old");
    match std::fs::rename(console, &old) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(QemuError::File { path: console.to_owned(), source })
        }
        _ => Ok(console.to_owned()),
    }
}

fn free_port() -> Result<u16, QemuError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(QemuError::Port)?;
    Ok(listener.local_addr().map_err(QemuError::Port)?.port())
}

/// What the ramdisk boots with, when the machine is to boot it: the serial console, the conductor's
/// parameters, the address under which the conductor reaches the agent, and the operator's own.
fn ramdisk_boot(
    description: &Description,
    folder: &Path,
    agent_port: u16,
) -> Result<Option<RamdiskBoot>, PowerError> {
    let file = parameters_file(folder);
    let conductor = match std::fs::read_to_string(&file) {
        Ok(text) => text.parse::<KernelParameters>(),
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(QemuError::File { path: file, source }.into()),
    };
    let parameters = conductor
        .and_then(|conductor| KernelParameters::default().with("console", "ttyS0")?.followed_by(&conductor))
        .and_then(|line| line.with("ipa-advertise-host", "127.0.0.1"))
        .and_then(|line| line.with("ipa-advertise-port", &agent_port.to_string()))
        .and_then(|line| line.followed_by(&description.kernel_append_params))
        .map_err(|error| PowerError::driver_info("kernel_append_params", error.to_string()))?;
    let (kernel, ramdisk) = description.ramdisk_files()?;
    Ok(Some(RamdiskBoot { kernel, ramdisk, parameters: parameters.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conductor_is_reached_through_the_user_network() {
        let power = QemuPower::new("/nonexistent");
        for (url, seen) in [
            ("http://127.0.0.1:6385", "http://10.0.2.2:6385"),
            ("http://localhost:8080", "http://10.0.2.2:8080"),
        ] {
            assert_eq!(power.conductor_url(url), seen);
        }
    }

    #[test]
    fn a_console_is_fresh_and_the_old_one_kept() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("deep/console.log");
        assert_eq!(fresh_console(&console).unwrap(), console);
        std::fs::write(&console, "first").unwrap();
        fresh_console(&console).unwrap();
        assert!(!console.exists());
        assert_eq!(std::fs::read_to_string(folder.path().join("deep/console.log.old")).unwrap(), "first");
    }
}
