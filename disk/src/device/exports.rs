//! Disks that this machine exports to others: by the target of the kernel, which configfs shows whoever made it, or by
//! a program that this process runs. Such a disk is in use, and everything that uses disks has to know.

use farrier_linux::sysfs;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where the target of the kernel keeps its disks, below configfs.
const STORAGE: &str = "target/core";
/// Where it keeps its iSCSI targets, below configfs.
const TARGETS: &str = "target/iscsi";

/// The export of a program that this process runs. There is one at a time.
static SERVED: Mutex<Option<Export>> = Mutex::new(None);

/// A disk that is exported, in words: "/dev/sda is exported by iSCSI as iqn.2008-10.org.openstack:x".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its device node.
    pub disk: PathBuf,
    /// Name of the target; none when the export was cut off before it had one.
    pub target: Option<String>,
}

impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is exported by iSCSI", self.disk.display())?;
        self.target.iter().try_for_each(|target| write!(f, " as {target}"))
    }
}

/// What a program of this process exports.
pub fn served() -> Option<Export> {
    SERVED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Records what a program of this process exports from now on; returns the export before it.
pub fn replace_served(export: Option<Export>) -> Option<Export> {
    std::mem::replace(&mut *SERVED.lock().unwrap_or_else(PoisonError::into_inner), export)
}

/// All exports that the configfs mounted at `configfs` shows, and that of this process.
pub(super) fn all(configfs: &Path) -> Vec<Export> {
    let storage = configfs.join(STORAGE);
    let objects = sysfs::entries(&storage).into_iter().flat_map(|adapter| {
        let adapter = storage.join(adapter);
        sysfs::entries(&adapter).into_iter().map(move |object| adapter.join(object))
    });
    let exported = objects.filter_map(|object| {
        let disk = sysfs::attribute(&object, "udev_path")?;
        Some(Export { disk: disk.into(), target: target_of(configfs, &object) })
    });
    exported.chain(served()).collect()
}

/// The first target one of whose logical units leads to a storage object.
fn target_of(configfs: &Path, object: &Path) -> Option<String> {
    let below = |folder: PathBuf| sysfs::entries(&folder).into_iter().map(move |name| folder.join(name));
    let leads_there = |link: PathBuf| link.canonicalize().ok() == object.canonicalize().ok();
    sysfs::entries(&configfs.join(TARGETS)).into_iter().find(|target| {
        below(configfs.join(TARGETS).join(target))
            .flat_map(|group| below(group.join("lun")))
            .flat_map(below)
            .filter(|entry| entry.is_symlink())
            .any(leads_there)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_disks_of_every_target_of_the_kernel_are_in_use() {
        let configfs = tempfile::tempdir().unwrap();
        for (adapter, disk) in [("iblock_0", "/dev/sda"), ("iblock_7", "/dev/sdb")] {
            let object = configfs.path().join(STORAGE).join(adapter).join("disk");
            fs::create_dir_all(&object).unwrap();
            fs::write(object.join("udev_path"), format!("{disk}\n")).unwrap();
        }
        let unit = configfs.path().join(TARGETS).join("iqn.2026-01.org.example:x/tpgt_1/lun/lun_0");
        fs::create_dir_all(&unit).unwrap();
        symlink(configfs.path().join(STORAGE).join("iblock_7/disk"), unit.join("link")).unwrap();
        let found: Vec<_> = all(configfs.path()).iter().map(ToString::to_string).collect();
        let expected =
            ["/dev/sda is exported by iSCSI", "/dev/sdb is exported by iSCSI as iqn.2026-01.org.example:x"];
        assert_eq!(found, expected);
    }
}
