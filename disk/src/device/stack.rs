//! Which block devices lie on which: arrays and maps on disks and partitions, as sysfs links them.

use farrier_linux::sysfs;
use std::path::{Path, PathBuf};

/// The sysfs directories of the disks that the disk in `directory` lies on, at any depth.
pub fn below(directory: &Path) -> Vec<PathBuf> {
    closure(directory, |disk| links(disk, "slaves"))
}

/// The sysfs directories of the arrays and maps that lie on the disk in `directory` or on one of its
/// partitions, at any depth.
pub fn above(directory: &Path) -> Vec<PathBuf> {
    closure(directory, |disk| {
        let partitions = partitions(disk);
        let parts = std::iter::once(disk.to_owned()).chain(partitions);
        parts.flat_map(|part| links(&part, "holders")).collect()
    })
}

/// Whether the disk in `directory` is a multipath device, which stands for all its paths (section 9.5).
pub fn is_multipath(directory: &Path) -> bool {
    sysfs::attribute(&directory.join("dm"), "uuid").is_some_and(|uuid| uuid.starts_with("mpath-"))
}

/// The sysfs directories of the partitions of the disk in `directory`.
pub fn partitions(directory: &Path) -> Vec<PathBuf> {
    let is_partition = |path: &PathBuf| path.join("partition").exists();
    sysfs::entries(directory).into_iter().map(|name| directory.join(name)).filter(is_partition).collect()
}

fn closure(start: &Path, next: impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = next(start);
    while let Some(disk) = open.pop() {
        if !found.contains(&disk) {
            open.extend(next(&disk));
            found.push(disk);
        }
    }
    found
}

/// The disks that a directory of links leads to; a partition stands for its disk.
fn links(directory: &Path, kind: &str) -> Vec<PathBuf> {
    let directory = directory.join(kind);
    let disk_of = |name: String| {
        let target = directory.join(name).canonicalize().ok()?;
        if target.join("partition").exists() { Some(target.parent()?.to_owned()) } else { Some(target) }
    };
    sysfs::entries(&directory).into_iter().filter_map(disk_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    fn names(paths: Vec<PathBuf>) -> Vec<String> {
        let mut names: Vec<_> =
            paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn members_and_arrays_are_found_through_partitions() {
        let sysfs = FakeSysfs::new();
        for disk in ["sda", "sdb", "sdc"] {
            sysfs.disk(&format!("devices/{disk}"), 5 << 30, &[(&format!("{disk}1/partition"), "1")]);
        }
        for array in ["md0", "dm-0"] {
            sysfs.disk(&format!("devices/virtual/{array}"), 5 << 30, &[]);
        }
        for (lower, upper) in [("sda/sda1", "md0"), ("sdb/sdb1", "md0"), ("virtual/md0", "dm-0")] {
            sysfs.stack(&format!("devices/{lower}"), &format!("devices/virtual/{upper}"));
        }
        let at = |path: &str| sysfs.path().join("devices").join(path);
        assert_eq!(names(above(&at("sda"))), ["dm-0", "md0"]);
        assert_eq!(names(below(&at("virtual/dm-0"))), ["md0", "sda", "sdb"]);
        assert_eq!(names(above(&at("sdc"))), [""; 0]);
        assert_eq!(names(partitions(&at("sda"))), ["sda1"]);
    }
}
