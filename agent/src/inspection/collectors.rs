//! What can be collected (section 10.4).

use super::{collector_names, dhcp_wait};
use crate::agent::Agent;
use crate::deployment::root_disk;
use crate::logs;
use farrier_hardware::inventory::extra::{self, Benchmark};
use farrier_hardware::inventory::{dmi, lldp, nics, numa, pci, usb};
use farrier_hardware::manager::Device;
use farrier_hardware::smbios;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Root file system of the machine.
const ROOT: &str = "/";

/// Keys a collector adds to the posted data.
type Keys = Map<String, Value>;

/// A source of data, declared once.
pub struct Collector {
    /// Name in `ipa-inspection-collectors`.
    pub name: &'static str,
    /// Keys it may add to the posted data.
    pub keys: &'static [&'static str],
    /// What they hold, in one sentence.
    pub help: &'static str,
    /// Whether its failure is only logged.
    pub may_fail: bool,
    /// Collects, or says in a line why it cannot.
    pub collect: fn(&Agent) -> Result<Keys, String>,
}

/// Every collector.
pub const COLLECTORS: &[Collector] = &[
    Collector {
        name: "default",
        keys: &["inventory", "root_disk", "boot_interface", "configuration"],
        help: "Interfaces, processors, disks, memory, maker, boot mode, BMC and version of the agent",
        may_fail: false,
        collect: default,
    },
    Collector {
        name: "logs",
        keys: &["logs"],
        help: "Agent log, kernel messages and system state, as base64 of a tar.gz file",
        may_fail: true,
        collect: logs,
    },
    Collector {
        name: "pci-devices",
        keys: &["pci_devices"],
        help: "PCI devices",
        may_fail: false,
        collect: |_| Ok(key("pci_devices", json!(pci::devices(Path::new(ROOT))))),
    },
    Collector {
        name: "usb-devices",
        keys: &["usb_devices"],
        help: "USB devices except hubs",
        may_fail: false,
        collect: |agent| Ok(usb_devices(agent)),
    },
    Collector {
        name: "numa-topology",
        keys: &["numa_topology"],
        help: "Memory, processors and interfaces of each NUMA node",
        may_fail: false,
        collect: |_| Ok(numa_topology()),
    },
    Collector {
        name: "dmi-decode",
        keys: &["dmi"],
        help: "SMBIOS data: firmware, processors and memory modules",
        may_fail: false,
        collect: |_| Ok(key("dmi", dmi::describe(&smbios::read(Path::new(ROOT))))),
    },
    Collector {
        name: "lldp",
        keys: &["lldp_raw"],
        help: "LLDP data of the switch behind each interface",
        may_fail: false,
        collect: lldp,
    },
    Collector {
        name: "extra-hardware",
        keys: &["data"],
        help: "Rows of kind, device, property and value, with the benchmarks in `ipa-inspection-benchmarks`",
        may_fail: false,
        collect: |agent| Ok(key("data", json!(extra::describe(&agent.inventory(), &benchmarks(agent)?)))),
    },
];

fn default(agent: &Agent) -> Result<Keys, String> {
    dhcp_wait::wait(&agent.options)?;
    let mut keys = key("inventory", json!(agent.inventory()));
    if let Some(disk) = default_root_disk(agent) {
        keys.insert("root_disk".to_owned(), disk);
    }
    keys.insert("boot_interface".to_owned(), json!(agent.options.bootif));
    let managers: Vec<_> = agent
        .managers()
        .versions()
        .into_iter()
        .map(|(name, version)| json!({"name": name, "version": version}))
        .collect();
    let configuration = json!({"collectors": collector_names(&agent.options), "managers": managers});
    keys.insert("configuration".to_owned(), configuration);
    Ok(keys)
}

/// The disk that would be chosen without hints; a machine without one is still worth a report.
fn default_root_disk(agent: &Agent) -> Option<Value> {
    match root_disk::choose_default(agent) {
        Ok(root) => {
            let mut disk = root.device().disk.clone();
            agent.managers().filter_device(Device::Disk(&mut disk)).then(|| json!(disk))
        }
        Err(error) => {
            tracing::warn!("the inspection names no root disk: {}", error.text());
            None
        }
    }
}

fn usb_devices(agent: &Agent) -> Keys {
    let mut devices = usb::devices(Path::new(ROOT));
    devices.retain_mut(|usb| agent.managers().filter_device(Device::Usb(usb)));
    key("usb_devices", json!(devices))
}

fn logs(agent: &Agent) -> Result<Keys, String> {
    let archive = logs::collect(&agent.secrets()).map_err(|error| error.to_string())?;
    Ok(key("logs", json!(archive)))
}

/// Without data the key is left out.
fn numa_topology() -> Keys {
    numa::topology(Path::new(ROOT)).map(|topology| key("numa_topology", json!(topology))).unwrap_or_default()
}

fn lldp(agent: &Agent) -> Result<Keys, String> {
    let interfaces = nics::network_interfaces().map_err(|error| error.to_string())?;
    let names: Vec<_> = interfaces.into_iter().map(|nic| nic.name).collect();
    Ok(key("lldp_raw", json!(lldp::listen(&names, agent.options.lldp_timeout.duration()))))
}

fn benchmarks(agent: &Agent) -> Result<Vec<Benchmark>, String> {
    let names = agent.options.inspection_benchmarks.iter().flat_map(|list| &list.0);
    let find = |name: &String| {
        Benchmark::by_name(name).ok_or_else(|| {
            format!(
                "no benchmark {name:?}: correct ipa-inspection-benchmarks; those known are cpu, mem, disk"
            )
        })
    };
    names.map(find).collect()
}

fn key(name: &str, value: Value) -> Keys {
    Map::from_iter([(name.to_owned(), value)])
}
