//! Whether something else uses a disk.

use crate::device::BlockDevice;
use crate::device::exports::{self, Export};
use crate::error::Error;
use farrier_linux::mount::CONFIGFS;
use farrier_linux::sysfs;
use std::fs;
use std::path::Path;

const MOUNTS: &str = "/proc/self/mountinfo";
const SWAPS: &str = "/proc/swaps";

/// What the kernel says about mounts, swap areas and exports, read once.
#[derive(Debug, Default)]
pub struct Usage {
    mounts: String,
    swaps: String,
    exports: Vec<Export>,
}

impl Usage {
    /// Reads the kernel's lists.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] for `device` when the mounts cannot be read.
    pub fn read(device: &str) -> Result<Self, Error> {
        let mounts = fs::read_to_string(MOUNTS).map_err(|source| Error::Device {
            device: device.into(),
            action: format!("reading {MOUNTS}"),
            source,
        })?;
        // A kernel without swap has no such list.
        let swaps = fs::read_to_string(SWAPS).unwrap_or_default();
        Ok(Self { mounts, swaps, exports: exports::all(Path::new(CONFIGFS.target)) })
    }

    /// Who uses the disk or one of its partitions.
    pub fn user_of(&self, device: &BlockDevice) -> Option<String> {
        device.directories().iter().find_map(|directory| self.user_in(directory))
    }

    fn user_in(&self, directory: &Path) -> Option<String> {
        let node = sysfs::node(directory).display().to_string();
        let name = node.trim_start_matches("/dev/");
        let holders = sysfs::entries(&directory.join("holders"));
        if !holders.is_empty() {
            return Some(format!("{name} is held by {}", holders.join(", ")));
        }
        if let Some(target) = self.mount_point(sysfs::attribute(directory, "dev").as_deref(), &node) {
            return Some(format!("{name} is mounted on {target}"));
        }
        if let Some(export) = self.exports.iter().find(|export| export.disk.as_os_str() == node.as_str()) {
            return Some(format!("{export}; iscsi.stop_iscsi_target ends that"));
        }
        let is_swap = self.swaps.lines().any(|line| line.split_whitespace().next() == Some(&node));
        is_swap.then(|| format!("{name} is used as swap"))
    }

    /// Mount point of a device by its number, `major:minor`, or by its node: Btrfs shows numbers of its own.
    fn mount_point(&self, number: Option<&str>, node: &str) -> Option<&str> {
        self.mounts.lines().find_map(|line| {
            let (mount, file_system) = line.split_once(" - ")?;
            let mut fields = mount.split(' ').skip(2);
            let (device, _root, target) = (fields.next()?, fields.next()?, fields.next()?);
            let source = file_system.split(' ').nth(1)?;
            (Some(device) == number || source == node).then_some(target)
        })
    }
}

/// Whether the kernel refuses writes to the disk or to one of its partitions.
pub fn is_read_only(device: &BlockDevice) -> bool {
    device.directories().iter().any(|directory| refuses_writes(directory))
}

/// Whether the kernel refuses writes to the disk as a whole.
pub fn is_read_only_as_a_whole(device: &BlockDevice) -> bool {
    device.directories().first().is_some_and(|directory| refuses_writes(directory))
}

fn refuses_writes(directory: &Path) -> bool {
    sysfs::number::<u8>(directory, "ro") == Some(1)
}

/// Makes sure that neither the disk nor one of its partitions is mounted or held by another device.
///
/// The exclusive open that follows would refuse such a disk as well; this error names the user.
///
/// # Errors
///
/// [`Error::InUse`], [`Error::ReadOnly`], or [`Error::Device`] when the mounts cannot be read.
pub fn require_unused(device: &BlockDevice) -> Result<(), Error> {
    let name = &device.disk.name;
    if let Some(user) = Usage::read(name)?.user_of(device) {
        return Err(Error::InUse { device: name.clone(), user });
    }
    if is_read_only(device) {
        return Err(Error::ReadOnly { device: name.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    const DISK: &str = "devices/pci0/block/sda";

    #[test]
    fn d28_mounts_are_found_by_number_and_by_node() {
        let mounts = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n\
                      37 35 8:1 / /boot rw - ext4 /dev/sda1 rw\n\
                      38 35 0:40 / /data rw - btrfs /dev/sdb rw\nbroken\n";
        let usage = Usage { mounts: mounts.to_owned(), ..Usage::default() };
        for (number, node, expected) in [
            ("8:1", "/dev/sda1", Some("/boot")),
            ("98:0", "/dev/x", Some("/mnt2")),
            ("8:16", "/dev/sdb", Some("/data")),
            ("8:10", "/dev/sda10", None),
        ] {
            assert_eq!(usage.mount_point(Some(number), node), expected, "{number} {node}");
        }
    }

    #[test]
    fn d28_d30_a_used_or_read_only_partition_makes_the_disk_unusable() {
        for (attribute, content, expected) in [
            ("sda1/partition", "1", None),
            ("sda1/holders/md0", "", Some("sda1 is held by md0")),
            ("holders/dm-0", "", Some("sda is held by dm-0")),
            ("ro", "1", Some("read-only")),
        ] {
            let sysfs = FakeSysfs::new();
            sysfs.disk(DISK, 5 << 30, &[("sda1/partition", "1"), ("dev", "8:0"), (attribute, content)]);
            let device = BlockDevice::describe(sysfs.path(), "sda").unwrap();
            let verdict = require_unused(&device).map_err(|error| error.to_string());
            match expected {
                None => verdict.unwrap(),
                Some(text) => assert!(verdict.unwrap_err().contains(text), "{attribute}"),
            }
        }
        let sysfs = FakeSysfs::new();
        sysfs.disk(DISK, 5 << 30, &[("sda2/partition", "2")]);
        let device = BlockDevice::describe(sysfs.path(), "sda").unwrap();
        let swaps = "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n".to_owned();
        let usage = Usage { swaps, ..Usage::default() };
        assert_eq!(usage.user_of(&device).as_deref(), Some("sda2 is used as swap"));
        for (disk, expected) in [("/dev/sda", true), ("/dev/sdb", false)] {
            let target = Some("iqn.2008-10.org.openstack:x".to_owned());
            let exports = vec![Export { disk: disk.into(), target }];
            let told = Usage { exports, ..Usage::default() }.user_of(&device);
            let text = "/dev/sda is exported by iSCSI as iqn.2008-10.org.openstack:x; iscsi.stop_iscsi_target ends that";
            assert_eq!(told.as_deref(), expected.then_some(text));
        }
    }
}
