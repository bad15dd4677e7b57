//! The arrays that run now, as sysfs shows them.

use super::superblock::{self, Superblock};
use crate::device::stack;
use farrier_linux::sysfs;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An array, also one that could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Name the kernel gave it, such as `md0`.
    pub kernel_name: String,
    /// Name in the superblocks of its members; older formats have none.
    pub name: Option<String>,
    /// Level in the kernel's words, such as `raid10`; nothing when it was not started.
    pub level: Option<String>,
    /// Names of its members, such as `sda1`, sorted.
    pub members: Vec<String>,
    /// How many members it is made of.
    pub wanted_members: usize,
    /// Whether it works.
    pub is_active: bool,
}

impl Array {
    /// Every array in the sysfs mounted at `sysfs`, by name.
    pub fn all(sysfs: &Path) -> Vec<Self> {
        let block = sysfs.join("block");
        let is_array = |name: &String| is_array(&block.join(name));
        sysfs::entries(&block).into_iter().filter(is_array).map(|name| Self::read(&block, name)).collect()
    }

    fn read(block: &Path, kernel_name: String) -> Self {
        let directory = block.join(&kernel_name);
        let attributes = directory.join("md");
        let state = sysfs::attribute(&attributes, "array_state").unwrap_or_default();
        Self {
            name: name_of(&directory),
            level: sysfs::attribute(&attributes, "level").filter(|level| level.starts_with("raid")),
            members: sysfs::entries(&directory.join("slaves")),
            wanted_members: sysfs::number(&attributes, "raid_disks").unwrap_or_default(),
            is_active: !matches!(state.as_str(), "" | "clear" | "inactive"),
            kernel_name,
        }
    }

    /// Path of the device node.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.kernel_name)
    }

    /// Whether an operator calls it so.
    pub fn is_named(&self, wanted: &str) -> bool {
        self.name.as_deref().is_some_and(|name| superblock::is_named(name, wanted))
    }
}

/// Whether the device in `directory` of sysfs is an array.
pub fn is_array(directory: &Path) -> bool {
    directory.join("md").is_dir()
}

/// Name of the array in `directory` of sysfs, by the superblock of a member; nothing for anything else.
pub fn name_of(directory: &Path) -> Option<String> {
    if !is_array(directory) {
        return None;
    }
    let members = sysfs::entries(&directory.join("slaves")).into_iter();
    members.filter_map(|member| member_of(&member).ok().flatten()).next()
}

/// Name of the array that the device `kernel_name` has a superblock of.
///
/// # Errors
///
/// Whatever reading brings.
pub fn member_of(kernel_name: &str) -> io::Result<Option<String>> {
    let mut device = File::open(sysfs::node(kernel_name.as_ref()))?;
    let size = device.seek(SeekFrom::End(0))?;
    Ok(Superblock::find(&mut device, 0, size)?.map(|superblock| superblock.name))
}

/// Sorts arrays and disks, known by their directories in sysfs, so that each array comes before what it lies on:
/// only so can they be taken apart (D20). Others keep their order.
pub(crate) fn sort_for_removal<T>(devices: &mut [T], directory: impl Fn(&T) -> PathBuf) {
    devices.sort_by_cached_key(|device| stack::above(&directory(device)).len());
}

/// The running arrays that lie on the disk in `directory` of sysfs or on one of its partitions, by name.
pub fn arrays_on(directory: &Path) -> Vec<String> {
    let name = |path: PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    let mut names: Vec<_> =
        stack::above(directory).into_iter().filter(|path| is_array(path)).filter_map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    #[test]
    fn arrays_are_read_with_their_members_also_when_they_do_not_run() {
        let sysfs = FakeSysfs::new();
        for disk in ["vda", "vdb"] {
            let path = format!("devices/virtio/block/{disk}");
            sysfs.disk(&path, 5 << 30, &[(&format!("{disk}1/partition"), "1\n")]);
        }
        let array = |state, level| [("md/array_state", state), ("md/level", level), ("md/raid_disks", "2\n")];
        sysfs.disk("devices/virtual/block/md0", 5 << 30, &array("clean\n", "raid1\n"));
        sysfs.disk("devices/virtual/block/md127", 0, &array("inactive\n", "\n"));
        sysfs.stack("devices/virtio/block/vda/vda1", "devices/virtual/block/md0");
        sysfs.stack("devices/virtio/block/vdb/vdb1", "devices/virtual/block/md0");
        let [md0, md127] = &Array::all(sysfs.path())[..] else { panic!("two arrays") };
        assert_eq!((md0.kernel_name.as_str(), md0.level.as_deref()), ("md0", Some("raid1")));
        assert_eq!((md0.members.as_slice(), md0.wanted_members), (&["vda1".into(), "vdb1".into()][..], 2));
        assert!(md0.is_active && !md127.is_active);
        assert_eq!((md127.level.as_deref(), md127.members.len()), (None, 0));
        assert_eq!(arrays_on(&sysfs.path().join("block/vdb")), ["md0"]);
        assert_eq!(arrays_on(&sysfs.path().join("block/md0")), Vec::<String>::new());
    }

    #[test]
    fn d20_arrays_are_taken_apart_from_the_top() {
        let sysfs = FakeSysfs::new();
        for disk in ["vda", "vdb", "md0", "md1", "md2", "md3"] {
            sysfs.disk(&format!("devices/{disk}"), 5 << 30, &[(&format!("{disk}p1/partition"), "1")]);
        }
        for (lower, upper) in
            [("vda", "md0"), ("vdb", "md1"), ("md0", "md3"), ("md1/md1p1", "md3"), ("md3", "md2")]
        {
            sysfs.stack(&format!("devices/{lower}"), &format!("devices/{upper}"));
        }
        let mut arrays = ["md0", "md1", "md2", "md3"];
        sort_for_removal(&mut arrays, |array| sysfs.path().join("block").join(array));
        assert_eq!(arrays, ["md2", "md3", "md0", "md1"]);
    }
}
