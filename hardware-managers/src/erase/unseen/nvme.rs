//! NVMe: namespaces that are allocated and not attached, controllers that do not work, and disks that a SATA controller
//! keeps to one vendor's driver.

use super::{Examination, Storage, names_of_controller};
use farrier_linux::nvme::{self, Capabilities, NvmeDevice, NvmeError};
use farrier_linux::sysfs;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// How a controller in this machine is attached. What else a fabric leads to belongs to others.
const LOCAL: &str = "pcie";
/// State of a controller that works.
const LIVE: &str = "live";
/// Kind of a controller that has namespaces; kernels before 5.15 do not tell.
const IO: &str = "io";

/// The namespaces of a controller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Numbers of those that exist, as far as the controller reports them.
    pub allocated: Vec<u32>,
    /// Numbers of those that are attached to it.
    pub active: Vec<u32>,
    /// Bytes that no namespace has.
    pub unallocated_bytes: u64,
}

/// Asks the controller of this name, whose device node is at this path, for its namespaces.
pub type Ask<'a> = dyn Fn(&str, &Path) -> Result<Namespaces, NvmeError> + 'a;

/// Asks a controller itself.
pub fn ask(_: &str, node: &Path) -> Result<Namespaces, NvmeError> {
    let file = File::open(node)?;
    let controller = NvmeDevice::new(&file);
    let capabilities = Capabilities::identify(&controller)?;
    Ok(Namespaces {
        allocated: nvme::namespaces(&controller, &capabilities)?,
        active: nvme::active_namespaces(&controller)?,
        unallocated_bytes: capabilities.unallocated_bytes,
    })
}

/// The controllers of one subsystem: they share its namespaces.
#[derive(Default)]
struct Subsystem {
    /// Names of the controllers, and their folders.
    controllers: Vec<(String, PathBuf)>,
    found: Namespaces,
}

/// Examines the controllers in the sysfs mounted at `sysfs`.
pub fn examine(sysfs: &Path, ask: &Ask<'_>, examination: &mut Examination) {
    remapped(sysfs, examination);
    let shown = shown(sysfs);
    let mut subsystems: BTreeMap<String, Subsystem> = BTreeMap::new();
    let class = sysfs.join("class/nvme");
    for name in sysfs::entries(&class) {
        let folder = class.join(&name);
        let is =
            |attribute, expected| sysfs::attribute(&folder, attribute).is_none_or(|text| text == expected);
        if !is("transport", LOCAL) || !is("cntrltype", IO) {
            continue;
        }
        let names = names_of_controller(&folder);
        let place = names.first().cloned().unwrap_or_default();
        if let Some(state) = sysfs::attribute(&folder, "state").filter(|state| state != LIVE) {
            let text = format!(
                "the NVMe controller {name} ({place}) is {state}, and none of its namespaces is seen: power-cycle \
                 the machine, or replace the disk"
            );
            examination.unseen(Storage::NvmeController, names, text);
            continue;
        }
        match ask(&name, &Path::new("/dev").join(&name)) {
            Ok(found) => {
                let subsystem = subsystems.entry(subsystem(&folder)).or_default();
                subsystem.found.allocated.extend(found.allocated);
                subsystem.found.active.extend(found.active);
                subsystem.found.unallocated_bytes = found.unallocated_bytes;
                subsystem.controllers.push((name, folder));
            }
            Err(error) => {
                let text =
                    format!("the NVMe controller {name} ({place}) does not tell its namespaces: {error}");
                examination.unseen(Storage::NvmeController, names, text);
            }
        }
    }
    for (name, subsystem) in &subsystems {
        compare(subsystem, shown.get(name).unwrap_or(&BTreeSet::new()), examination);
    }
}

fn compare(subsystem: &Subsystem, shown: &BTreeSet<u32>, examination: &mut Examination) {
    let Some((controller, folder)) = subsystem.controllers.first() else { return };
    let names: Vec<_> =
        subsystem.controllers.iter().flat_map(|(_, folder)| names_of_controller(folder)).collect();
    let place = names_of_controller(folder).first().cloned().unwrap_or_default();
    let found = &subsystem.found;
    let all: BTreeSet<u32> = found.allocated.iter().chain(&found.active).copied().collect();
    examination.examined(format!(
        "{controller} ({place}): {} NVMe namespaces, {} of them block devices",
        all.len(),
        all.intersection(shown).count()
    ));
    for number in all.difference(shown) {
        let (storage, text) = if found.active.contains(number) {
            let text = format!(
                "the namespace {number} of the NVMe controller {controller} ({place}) has no block device: the kernel \
                 does not know its format, or its size is 0; format it with nvme format"
            );
            (Storage::UnknownNamespace, text)
        } else {
            let text = format!(
                "the namespace {number} of the NVMe controller {controller} ({place}) is allocated and not attached: \
                 attach it with nvme attach-ns, or delete it with nvme delete-ns"
            );
            (Storage::DetachedNamespace, text)
        };
        examination.unseen(storage, names.clone(), text);
    }
    if all.is_empty() && found.unallocated_bytes > 0 {
        let text = format!(
            "the NVMe controller {controller} ({place}) has {} bytes and no namespace: make one with nvme create-ns and \
             attach-ns",
            found.unallocated_bytes
        );
        examination.unseen(Storage::UnallocatedNvme, names, text);
    }
}

/// Numbers of the namespaces that are block devices, by subsystem.
fn shown(sysfs: &Path) -> BTreeMap<String, BTreeSet<u32>> {
    let block = sysfs.join("block");
    let mut shown: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for name in sysfs::entries(&block).into_iter().filter(|name| name.starts_with("nvme")) {
        if let Some(number) = sysfs::number(&block.join(&name), "nsid") {
            shown.entry(subsystem(&block.join(&name).join("device"))).or_default().insert(number);
        }
    }
    shown
}

/// What the subsystem of a controller, or a subsystem itself, is called; before Linux 4.15 each controller is one.
fn subsystem(folder: &Path) -> String {
    let place = || folder.canonicalize().unwrap_or_default().display().to_string();
    sysfs::attribute(folder, "subsysnqn").unwrap_or_else(place)
}

/// NVMe disks behind a SATA controller in the mode RAID of its firmware (`ahci`, attribute `remapped_nvme`).
fn remapped(sysfs: &Path, examination: &mut Examination) {
    let devices = sysfs.join("bus/pci/devices");
    for address in sysfs::entries(&devices) {
        let Some(count) =
            sysfs::number::<u32>(&devices.join(&address), "remapped_nvme").filter(|count| *count > 0)
        else {
            continue;
        };
        let text = format!(
            "{count} NVMe disks are hidden behind the SATA controller {address}: set its mode to AHCI in the firmware \
             (Intel RST, RAID On)"
        );
        examination.unseen(Storage::RemappedNvme, names_of_controller(&devices.join(&address)), text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    /// A machine with controllers of these names, states, transports and subsystems.
    fn machine(controllers: &[(&str, &str, &str, &str)]) -> Tree {
        let tree = Tree::new();
        for (number, (name, state, transport, nqn)) in controllers.iter().enumerate() {
            let pci = tree.pci(&format!("0000:0{number}:00.0"), "0x010802", "0x144d", "0xa80a");
            let folder = format!("{pci}/nvme/{name}");
            for (file, text) in [("state", state), ("transport", transport), ("subsysnqn", nqn)] {
                tree.write(&format!("{folder}/{file}"), text);
            }
            tree.link(&format!("class/nvme/{name}"), &folder);
        }
        tree
    }

    fn block(tree: &Tree, name: &str, number: u32, device: &str) {
        tree.write(&format!("block/{name}/nsid"), &number.to_string());
        tree.link(&format!("block/{name}/device"), device);
    }

    fn found(tree: &Tree, answers: &[(&str, &[u32], &[u32], u64)]) -> Vec<(Storage, String)> {
        let ask = |name: &str, node: &Path| {
            assert_eq!(node, Path::new("/dev").join(name));
            let answer = answers.iter().find(|(controller, ..)| *controller == name);
            let (_, allocated, active, unallocated_bytes) = answer.ok_or(NvmeError::Status(6))?;
            Ok(Namespaces {
                allocated: allocated.to_vec(),
                active: active.to_vec(),
                unallocated_bytes: *unallocated_bytes,
            })
        };
        let mut examination = Examination::default();
        examine(tree.path(), &ask, &mut examination);
        examination.unseen.into_iter().map(|one| (one.storage, one.text)).collect()
    }

    #[test]
    fn g03_a_namespace_without_a_block_device_is_missed() {
        use Storage::*;
        let one = [("nvme0", "live", "pcie", "nqn.a")];
        for (allocated, active, shown, unallocated, expected) in [
            (&[1][..], &[1][..], &[1][..], 0, &[][..]),
            (&[1, 2], &[1], &[1], 0, &[DetachedNamespace]),
            (&[1, 2, 3], &[], &[], 0, &[DetachedNamespace, DetachedNamespace, DetachedNamespace]),
            // Attached, and the kernel does not know what it is.
            (&[1, 2], &[1, 2], &[1], 0, &[UnknownNamespace]),
            (&[], &[], &[], 4096, &[UnallocatedNvme]),
            (&[], &[], &[], 0, &[]),
            // The disk that is shown tells of what no namespace has.
            (&[1], &[1], &[1], 4096, &[]),
        ] {
            let tree = machine(&one);
            for number in shown {
                block(
                    &tree,
                    &format!("nvme0n{number}"),
                    *number,
                    "devices/pci0000:00/0000:00:00.0/nvme/nvme0",
                );
            }
            let found = found(&tree, &[("nvme0", allocated, active, unallocated)]);
            let kinds: Vec<_> = found.iter().map(|(storage, _)| *storage).collect();
            assert_eq!(kinds, expected, "{allocated:?} {active:?}: {found:?}");
            assert!(found.iter().all(|(_, text)| text.contains("nvme0 (0000:00:00.0)")), "{found:?}");
        }
    }

    #[test]
    fn g03_controllers_of_one_subsystem_show_each_others_namespaces() {
        let controllers = [("nvme0", "live", "pcie", "nqn.a"), ("nvme1", "live", "pcie", "nqn.a")];
        let tree = machine(&controllers);
        // The block device of a namespace with several paths belongs to the subsystem.
        tree.write("devices/virtual/nvme-subsystem/nvme-subsys0/subsysnqn", "nqn.a");
        block(&tree, "nvme0n1", 1, "devices/virtual/nvme-subsystem/nvme-subsys0");
        let answers: [(&str, &[u32], &[u32], u64); 2] =
            [("nvme0", &[1, 2], &[1], 0), ("nvme1", &[1, 2], &[1], 0)];
        let found = found(&tree, &answers);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Storage::DetachedNamespace);
    }

    #[test]
    fn g03_a_controller_that_fails_is_missed_and_one_behind_a_fabric_is_not_asked() {
        let tree = machine(&[
            ("nvme0", "dead", "pcie", "nqn.a"),
            ("nvme1", "live", "pcie", "nqn.b"),
            ("nvme2", "live", "tcp", "nqn.c"),
        ]);
        let found = found(&tree, &[]);
        let texts: Vec<_> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("nvme0 (0000:00:00.0) is dead"), "{texts:?}");
        assert!(texts[1].contains("nvme1 (0000:01:00.0) does not tell its namespaces"), "{texts:?}");
    }

    #[test]
    fn g03_disks_that_a_sata_controller_hides_are_missed() {
        for (count, expected) in [("0", 0), ("3", 1)] {
            let tree = Tree::new();
            let folder = tree.pci("0000:00:17.0", "0x010400", "0x8086", "0x282a");
            tree.write(&format!("{folder}/remapped_nvme"), count);
            let found = found(&tree, &[]);
            assert_eq!(found.len(), expected);
            assert!(found.iter().all(|(storage, _)| *storage == Storage::RemappedNvme));
        }
    }
}
