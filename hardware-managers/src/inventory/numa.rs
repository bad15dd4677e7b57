//! Which memory, processors and interfaces are near each other (section 10.4).

use farrier_linux::sysfs;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// The topology of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Memory by node.
    pub ram: Vec<Ram>,
    /// Cores by node.
    pub cpus: Vec<Core>,
    /// Interfaces by node.
    pub nics: Vec<Nic>,
}

/// Memory of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ram {
    /// Number of the node.
    pub numa_node: u32,
    /// KiB.
    pub size_kb: u64,
}

/// A core of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Core {
    /// Number of the core within its socket.
    pub cpu: u32,
    /// Number of the node.
    pub numa_node: u32,
    /// Logical processors of the core.
    pub thread_siblings: Vec<u32>,
}

/// An interface near a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// Name of the interface.
    pub name: String,
    /// Number of the node.
    pub numa_node: u32,
}

/// The topology of the machine whose root file system is at `root`; nothing when the kernel does
/// not tell. A node, processor or interface without its numbers is left out (F42).
pub fn topology(root: &Path) -> Option<Topology> {
    let directory = root.join("sys/devices/system/node");
    let nodes: Vec<u32> =
        sysfs::entries(&directory).iter().filter_map(|name| numbered(name, "node")).collect();
    if nodes.is_empty() {
        return None;
    }
    let place = |node: &u32| directory.join(format!("node{node}"));
    Some(Topology {
        ram: nodes.iter().filter_map(|node| ram(&place(node), *node)).collect(),
        cpus: nodes.iter().flat_map(|node| cores(&place(node), *node)).collect(),
        nics: nics(root),
    })
}

fn ram(directory: &Path, numa_node: u32) -> Option<Ram> {
    let text = fs::read_to_string(directory.join("meminfo")).ok()?;
    let rest = text.lines().find_map(|line| line.split_once("MemTotal:"))?.1;
    Some(Ram { numa_node, size_kb: rest.split_whitespace().next()?.parse().ok()? })
}

/// Logical processors with the same core and socket are one entry.
fn cores(directory: &Path, numa_node: u32) -> Vec<Core> {
    let mut threads: Vec<_> = sysfs::entries(directory)
        .iter()
        .filter_map(|name| {
            let thread = numbered(name, "cpu")?;
            let topology = directory.join(name).join("topology");
            let socket: i32 = sysfs::number(&topology, "physical_package_id").unwrap_or_default();
            Some(((socket, sysfs::number::<u32>(&topology, "core_id")?), thread))
        })
        .collect();
    threads.sort_unstable();
    threads
        .chunk_by(|(core, _), (other, _)| core == other)
        .map(|threads| Core {
            cpu: threads[0].0.1,
            numa_node,
            thread_siblings: threads.iter().map(|(_, thread)| *thread).collect(),
        })
        .collect()
}

fn nics(root: &Path) -> Vec<Nic> {
    let directory = root.join("sys/class/net");
    sysfs::entries(&directory)
        .into_iter()
        .filter_map(|name| {
            let numa_node = sysfs::number(&directory.join(&name).join("device"), "numa_node")?;
            Some(Nic { name, numa_node })
        })
        .collect()
}

fn numbered(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;

    #[test]
    fn threads_of_a_core_are_siblings() {
        let node = "sys/devices/system/node/node0";
        let root = FakeRoot::new(&[
            ("sys/class/net/eno1/device/numa_node", "0\n"),
            ("sys/class/net/eno2/device/numa_node", "-1\n"),
            ("sys/class/net/lo/address", "\n"),
        ]);
        root.write(&format!("{node}/meminfo"), "Node 0 MemTotal:       65763212 kB\nNode 0 MemFree: 1 kB\n");
        for (cpu, core) in [(0, 0), (16, 0), (1, 1)] {
            root.write(&format!("{node}/cpu{cpu}/topology/core_id"), format!("{core}\n"));
        }
        root.write(&format!("{node}/cpu9/online"), "0\n");
        root.write(&format!("{node}/cpulist"), "0-16\n");
        let expected = serde_json::json!({
            "ram": [{"numa_node": 0, "size_kb": 65763212}],
            "cpus": [
                {"thread_siblings": [0, 16], "cpu": 0, "numa_node": 0},
                {"thread_siblings": [1], "cpu": 1, "numa_node": 0},
            ],
            "nics": [{"name": "eno1", "numa_node": 0}],
        });
        assert_eq!(serde_json::to_value(topology(root.path()).unwrap()).unwrap(), expected);
    }

    #[test]
    fn f42_a_kernel_without_nodes_has_no_topology() {
        assert_eq!(topology(FakeRoot::new(&[]).path()), None);
    }
}
