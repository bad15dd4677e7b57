//! What of a machine is still coming up, as PID 1 and the kernel tell it.
//!
//! A kernel that loads a module returns when the drivers have probed their devices and the first scans of SCSI
//! hosts, ATA ports and NVMe controllers have ended, which the kernel does asynchronously (`do_init_module` waits
//! for all asynchronous calls). So the loaders of PID 1 are idle when the first scans are over, and what they load
//! names the controllers that are being scanned. Beside that the kernel shows states of hosts, disks and ports.

use farrier_init::loading::Loading;
use farrier_linux::sysfs;
use std::fmt;
use std::path::{Path, PathBuf};

/// States of an NVMe controller that it leaves by itself (`nvme_sysfs_show_state`).
const NVME_STATES: [&str; 4] = ["new", "connecting", "resetting", "reconnecting"];
/// States of a SCSI host in which its devices are not all known (`scsi_host_state`).
const HOST_STATES: [&str; 2] = ["created", "recovery"];
/// SCSI peripheral types that become block devices (`sd_probe`), in decimal as sysfs has them: disks, optical memory,
/// simplified disks, and host-managed zoned disks (14h).
const SCSI_TYPES_OF_DISKS: [u8; 4] = [0, 7, 14, 20];

/// Something that is still coming up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    /// So many devices, for which PID 1 has not looked for drivers yet.
    Devices(usize),
    /// Whatever PID 1 is loading, which cannot be read: the reason.
    Unknown(String),
    /// A driver that is being loaded, with its controllers that are being scanned by it.
    Driver(String, Vec<Controller>),
    /// A storage controller, and what it is doing.
    Controller(Controller, String),
    /// A disk behind a storage controller, by its SCSI address, whose driver has not finished with it.
    Disk(String, Controller),
    /// An end of the coming and going of devices, of which these changed last.
    Quiet(Vec<String>),
}

/// A storage controller, as operators look for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// The kernel's name, such as `host2` or `nvme0`.
    pub name: String,
    /// Its driver; empty when the kernel does not tell.
    pub driver: String,
    /// The device, by its address on its bus.
    pub device: String,
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.driver, &self.device].map(String::as_str);
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        write!(f, "{} ({})", self.name, parts.join(", "))
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Devices(1) => write!(f, "drivers are looked for, for one device more"),
            Self::Devices(count) => write!(f, "drivers are looked for, for {count} devices more"),
            Self::Unknown(reason) => write!(f, "it is not known which drivers are being loaded: {reason}"),
            Self::Driver(name, controllers) if controllers.is_empty() => {
                write!(f, "the driver {name} is being loaded")
            }
            Self::Driver(_, controllers) => {
                let names: Vec<_> = controllers.iter().map(|one| format!("scsi {one}")).collect();
                write!(f, "{} is scanning", names.join(", "))
            }
            Self::Controller(controller, doing) => write!(f, "{controller} {doing}"),
            Self::Disk(address, controller) => {
                write!(f, "disk {address} behind scsi {controller} is being probed")
            }
            Self::Quiet(names) => write!(f, "devices still come and go: {}", names.join(", ")),
        }
    }
}

/// What is still coming up in the machine whose files lie below `root`. Without Farrier's PID 1 its part
/// counts as done.
pub fn awaited(root: &Path) -> Vec<Awaited> {
    let sysfs = root.join("sys");
    let (loading, unknown) = match Loading::read(root) {
        Ok(loading) => (loading, None),
        Err(unknown) => (Loading::default(), Some(Awaited::Unknown(unknown.to_string()))),
    };
    let hosts = scsi_hosts(&sysfs);
    let mut awaited: Vec<Awaited> = disks(&sysfs, &hosts);
    for name in loading.modules.iter().cloned().chain(coming_modules(&sysfs)) {
        let own =
            hosts.iter().filter(|host| host.module == name).map(|host| host.controller.clone()).collect();
        let driver = Awaited::Driver(name, own);
        if !awaited.contains(&driver) {
            awaited.push(driver);
        }
    }
    awaited.extend(hosts.into_iter().filter(|host| HOST_STATES.contains(&host.state.as_str())).map(|host| {
        let doing = if host.state == "recovery" { "recovers from errors" } else { "is being set up" };
        Awaited::Controller(
            Controller { name: format!("scsi {}", host.controller.name), ..host.controller },
            doing.to_owned(),
        )
    }));
    awaited.extend(nvme_controllers(&sysfs));
    awaited.extend(blocked_ports(&sysfs));
    if loading.waiting > 0 {
        awaited.push(Awaited::Devices(loading.waiting));
    }
    awaited.extend(unknown);
    awaited
}

/// A SCSI host.
struct Host {
    controller: Controller,
    module: String,
    state: String,
}

fn scsi_hosts(sysfs: &Path) -> Vec<Host> {
    let class = sysfs.join("class/scsi_host");
    let describe = |name: String| {
        let (controller, module) = controller(&class.join(&name), &name);
        let state = sysfs::attribute(&class.join(&name), "state").unwrap_or_default();
        Host { controller, module, state }
    };
    sysfs::entries(&class).into_iter().map(describe).collect()
}

/// The controller behind an entry of a class, and the module of its driver: the nearest device above it that
/// has a driver.
pub(super) fn controller(entry: &Path, name: &str) -> (Controller, String) {
    let place = entry.canonicalize().unwrap_or_default();
    let device = place.ancestors().skip(1).find(|folder| folder.join("driver").exists());
    let driver = device.and_then(|device| sysfs::link_name(device, "driver")).unwrap_or_default();
    let module = device.and_then(|device| sysfs::link_name(&device.join("driver"), "module"));
    let address = device.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let module = module.unwrap_or_else(|| driver.clone());
    (Controller { name: name.to_owned(), driver, device: address }, module)
}

/// Disks that have a driver and are no block devices yet: the driver asks them for their size and more.
fn disks(sysfs: &Path, hosts: &[Host]) -> Vec<Awaited> {
    let folder = sysfs.join("bus/scsi/devices");
    let is_new = |device: &PathBuf| {
        sysfs::number(device, "type").is_some_and(|kind: u8| SCSI_TYPES_OF_DISKS.contains(&kind))
            && device.join("driver").exists()
            && !device.join("block").exists()
    };
    let addresses = sysfs::entries(&folder).into_iter().filter(|address| is_new(&folder.join(address)));
    addresses
        .filter_map(|address| {
            let host = format!("host{}", address.split(':').next()?);
            let host = hosts.iter().find(|one| one.controller.name == host)?;
            Some(Awaited::Disk(address, host.controller.clone()))
        })
        .collect()
}

fn coming_modules(sysfs: &Path) -> Vec<String> {
    let folder = sysfs.join("module");
    let is_coming = |name: &String| {
        sysfs::attribute(&folder.join(name), "initstate").is_some_and(|state| state == "coming")
    };
    sysfs::entries(&folder).into_iter().filter(is_coming).collect()
}

fn nvme_controllers(sysfs: &Path) -> Vec<Awaited> {
    let class = sysfs.join("class/nvme");
    let describe = |name: String| {
        let state = sysfs::attribute(&class.join(&name), "state")?;
        let controller = controller(&class.join(&name), &name).0;
        NVME_STATES.contains(&state.as_str()).then(|| Awaited::Controller(controller, format!("is {state}")))
    };
    sysfs::entries(&class).into_iter().filter_map(describe).collect()
}

/// Targets of Fibre Channel that went away for a moment: the transport gives them up by itself.
fn blocked_ports(sysfs: &Path) -> Vec<Awaited> {
    let class = sysfs.join("class/fc_remote_ports");
    let describe = |name: String| {
        let port = class.join(&name);
        let is_target = sysfs::attribute(&port, "roles").is_some_and(|roles| roles.contains("FCP Target"));
        let is_blocked = sysfs::attribute(&port, "port_state").is_some_and(|state| state == "Blocked");
        let controller = controller(&port, &name).0;
        (is_target && is_blocked).then(|| Awaited::Controller(controller, "is a blocked port".to_owned()))
    };
    sysfs::entries(&class).into_iter().filter_map(describe).collect()
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
