//! Starts and ends the processes that machines are.

use super::accelerator::AcceleratorProbe;
use super::arguments::{self, Boot, Paths};
use super::control::{self, Order};
use super::description::{self, AcceleratorChoice, Description, Network};
use super::firmware::{self, Firmware};
use super::process::Machine;
use super::{Folders, QemuError, boot, console, instance, management};
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{Node, PowerState};
use nix::unistd::AccessFlags;
use std::collections::HashMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Switches local QEMU machines on and off.
#[derive(Debug)]
pub(super) struct QemuPower {
    folders: Folders,
    probe: AcceleratorProbe,
    started: Mutex<HashMap<Uuid, Machine>>,
}

impl QemuPower {
    pub(super) fn new(folders: Folders) -> Self {
        let probe = AcceleratorProbe::new(host_cache().unwrap_or_else(|| folders.state_dir().to_owned()));
        Self { folders, probe, started: Mutex::default() }
    }

    fn machine(&self, node: &Node) -> Machine {
        Machine::new(self.folders.of(node), node.uuid)
    }

    fn started(&self) -> MutexGuard<'_, HashMap<Uuid, Machine>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start(&self, node: &Node, machine: &Machine) -> Result<(), InterfaceError> {
        let settings = self.folders.settings();
        let description = Description::read(node, settings)?.with_files(settings)?;
        let accelerator = match description.accelerator {
            AcceleratorChoice::Use(accelerator) => accelerator,
            AcceleratorChoice::Auto => self.probe.best(&description, settings).await,
        };
        let folder = &self.folders.made_for(node)?;
        let agent_port = description.agent_port.map_or_else(free_port, Ok)?;
        let (boot, config_drive) = match boot::ramdisk_boot(&description, settings, folder, agent_port)? {
            Some(ramdisk) => (Boot::Ramdisk(ramdisk), None),
            None if management::takes_network(folder)? => (Boot::Network, None),
            None => (
                instance::boot(folder, description.architecture)?.unwrap_or(Boot::Disk),
                instance::config_drive(folder),
            ),
        };
        let paths = Paths {
            vars: match &description.firmware {
                Firmware::Bios => None,
                Firmware::Uefi(firmware) => Some(firmware::own_variables(firmware, folder)?),
            },
            console: console::fresh(&console::file(&description, settings, folder)?)?,
            keyboard: console::socket(folder),
            pid: machine.pid_file(),
            control: control::socket(folder),
            config_drive,
        };
        let arguments = arguments::vector(node, &description, accelerator, &paths, agent_port, &boot);
        let link_up = description.network != Network::Unplugged;
        machine.start(&description.binary, &arguments, link_up).await?;
        self.started().insert(node.uuid, machine.clone());
        Ok(())
    }
}

#[async_trait]
impl Interface for QemuPower {
    fn get_properties(&self) -> Properties {
        description::MACHINE
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let settings = self.folders.settings();
        Description::read(node, settings)?.with_files(settings).map(drop)
    }
}

#[async_trait]
impl PowerInterface for QemuPower {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        Ok(if self.machine(node).pid().is_some() { PowerState::On } else { PowerState::Off })
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        let machine = self.machine(node);
        if machine.pid().is_some() {
            return Ok(());
        }
        self.start(node, &machine).await
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.started().remove(&node.uuid);
        Ok(self.machine(node).stop().await?)
    }

    fn supports_soft_power_off(&self, node: &Node) -> bool {
        control::socket(&self.folders.of(node)).is_some()
    }

    async fn soft_power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        if self.machine(node).pid().is_none() {
            return Ok(());
        }
        Ok(control::send(&self.folders.of(node), Order::PowerDown).await?)
    }

    async fn forget(&self, node: &Node) -> Result<(), InterfaceError> {
        let folder = self.folders.of(node);
        management::forget(&folder)?;
        instance::clean_up(&folder)?;
        Ok(super::remove(&firmware::variables_file(&folder))?)
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

/// Where the findings about this host are cached until it boots again, for every program that runs machines: the folder
/// that the system gives programs for this (XDG Base Directory Specification; Filesystem Hierarchy Standard, 3.15).
fn host_cache() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folders = own.into_iter().chain([PathBuf::from("/run")]).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("farrier")).find(|folder| {
        std::fs::create_dir_all(folder).is_ok() && nix::unistd::access(folder, AccessFlags::W_OK).is_ok()
    })
}

fn free_port() -> Result<u16, QemuError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(QemuError::Port)?;
    Ok(listener.local_addr().map_err(QemuError::Port)?.port())
}
