//! Persistent memory (NVDIMM, Optane): regions or parts of them that are no block device. Nothing is lost when a
//! namespace of theirs is destroyed, and the next one shows it again.

use super::{Examination, Storage};
use farrier_linux::sysfs;
use std::path::{Path, PathBuf};

/// Kinds of devices on the bus that are regions (`include/uapi/linux/ndctl.h`).
const REGIONS: [&str; 2] = ["nd_pmem", "nd_blk"];
/// State of a module that answers no access.
const LOCKED: &str = "locked";

/// Examines the regions and modules in the sysfs mounted at `sysfs`.
pub fn examine(sysfs: &Path, examination: &mut Examination) {
    let devices = sysfs.join("bus/nd/devices");
    let blocks = blocks(sysfs);
    for name in sysfs::entries(&devices) {
        let device = devices.join(&name);
        if name.starts_with("region") {
            examine_region(&name, &device, &blocks, examination);
        } else if sysfs::attribute(&device, "security").as_deref() == Some(LOCKED) {
            let text =
                format!("the persistent memory {name} is locked with a key: unlock it with ndctl load-keys");
            examination.unseen(Storage::PersistentMemory, vec![name], text);
        }
    }
}

fn examine_region(name: &str, region: &Path, blocks: &[PathBuf], examination: &mut Examination) {
    let kind = sysfs::attribute(region, "devtype").unwrap_or_default();
    let size: u64 = sysfs::number(region, "size").unwrap_or_default();
    if size == 0 || !(kind.is_empty() || REGIONS.contains(&kind.as_str())) {
        return;
    }
    let place = region.canonicalize().unwrap_or_default();
    let shown = blocks.iter().filter(|block| block.starts_with(&place)).count();
    examination.examined(format!("the persistent memory {name} of {size} bytes: {shown} block devices"));
    let hidden = namespaces(&place).into_iter().filter(|(namespace, _)| !is_shown(&place, namespace, blocks));
    for (namespace, mode) in hidden {
        let text = format!(
            "{namespace} of the persistent memory {name} (mode {mode}) has no block device: set its mode to fsdax with \
             ndctl create-namespace"
        );
        examination.unseen(Storage::PersistentMemory, vec![namespace, name.to_owned()], text);
    }
    let free: u64 = sysfs::number(region, "available_size").unwrap_or_default();
    if free > 0 {
        let text = format!(
            "{free} bytes of the persistent memory {name} have no namespace, and keep what was written there: make one \
             with ndctl create-namespace"
        );
        examination.unseen(Storage::PersistentMemory, vec![name.to_owned()], text);
    }
}

/// Names and modes of the namespaces of a region that have a size.
fn namespaces(region: &Path) -> Vec<(String, String)> {
    let names = sysfs::entries(region).into_iter().filter(|name| name.starts_with("namespace"));
    let has_size =
        |name: &String| sysfs::number::<u64>(&region.join(name), "size").is_some_and(|size| size > 0);
    names
        .filter(has_size)
        .map(|name| {
            let mode = sysfs::attribute(&region.join(&name), "mode").unwrap_or_else(|| "raw".to_owned());
            (name, mode)
        })
        .collect()
}

/// Whether a namespace is a block device: by itself, or by what holds it (`pfn0.0`, `btt0.0`).
fn is_shown(region: &Path, namespace: &str, blocks: &[PathBuf]) -> bool {
    let holder = sysfs::attribute(&region.join(namespace), "holder");
    let places = std::iter::once(namespace.to_owned()).chain(holder).map(|name| region.join(name));
    places.into_iter().any(|place| blocks.iter().any(|block| block.starts_with(&place)))
}

/// Where the block devices of persistent memory are in the tree of devices.
fn blocks(sysfs: &Path) -> Vec<PathBuf> {
    let block = sysfs.join("block");
    let names = sysfs::entries(&block).into_iter().filter(|name| name.starts_with("pmem"));
    names.filter_map(|name| block.join(name).canonicalize().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    const REGION: &str = "devices/LNXSYSTM:00/ndbus0/region0";

    /// A region of 1 GiB with namespaces of these modes, holders, and places of block devices.
    fn machine(free: &str, namespaces: &[(&str, &str, Option<&str>)]) -> Tree {
        let tree = Tree::new();
        for (file, text) in [("devtype", "nd_pmem"), ("size", "1073741824"), ("available_size", free)] {
            tree.write(&format!("{REGION}/{file}"), text);
        }
        tree.link("bus/nd/devices/region0", REGION);
        for (number, (mode, holder, block)) in namespaces.iter().enumerate() {
            let namespace = format!("{REGION}/namespace0.{number}");
            tree.write(&format!("{namespace}/size"), "536870912");
            tree.write(&format!("{namespace}/mode"), mode);
            tree.write(&format!("{namespace}/holder"), holder);
            if let Some(block) = block {
                tree.link(&format!("block/pmem{number}"), &format!("{REGION}/{block}"));
            }
        }
        tree
    }

    #[test]
    fn g03_persistent_memory_that_is_no_block_device_is_missed() {
        for (free, namespaces, expected) in [
            ("0", &[("raw", "", Some("namespace0.0/block/pmem0"))][..], &[][..]),
            ("0", &[("memory", "pfn0.0", Some("pfn0.0/block/pmem0"))], &[]),
            ("0", &[("sector", "btt0.0", Some("btt0.0/block/pmem0s"))], &[]),
            ("0", &[("dax", "dax0.0", None)], &["namespace0.0 of the persistent memory region0 (mode dax)"]),
            (
                "0",
                &[("memory", "pfn0.0", Some("pfn0.0/block/pmem0")), ("dax", "dax0.1", None)],
                &["namespace0.1 of the persistent memory region0 (mode dax)"],
            ),
            ("1073741824", &[], &["1073741824 bytes of the persistent memory region0"]),
            (
                "4096",
                &[("raw", "", Some("namespace0.0/block/pmem0"))],
                &["4096 bytes of the persistent memory region0"],
            ),
        ] {
            let tree = machine(free, namespaces);
            let mut found = Examination::default();
            examine(tree.path(), &mut found);
            assert_eq!(found.unseen.len(), expected.len(), "{:?}", found.unseen);
            for (one, expected) in found.unseen.iter().zip(expected) {
                assert!(one.text.starts_with(expected), "{one}");
                assert!(one.names.contains(&"region0".to_owned()));
            }
        }
    }

    #[test]
    fn g03_memory_that_loses_its_data_is_no_storage_and_a_locked_module_is_missed() {
        let tree = machine("4096", &[]);
        tree.write(&format!("{REGION}/devtype"), "nd_volatile");
        for (name, security) in [("nmem0", "locked"), ("nmem1", "disabled"), ("nmem2", "unlocked")] {
            tree.write(&format!("bus/nd/devices/{name}/security"), security);
        }
        let mut found = Examination::default();
        examine(tree.path(), &mut found);
        assert_eq!(found.unseen.len(), 1, "{:?}", found.unseen);
        assert!(found.unseen[0].text.contains("nmem0 is locked"));
    }
}
