//! Whether something else uses a disk.

use crate::device::BlockDevice;
use crate::error::Error;
use farrier_linux::sysfs;
use std::fs;
use std::path::Path;

const MOUNT_INFO: &str = "/proc/self/mountinfo";

/// Makes sure that neither the disk nor one of its partitions is mounted or held by another device.
///
/// The exclusive open that follows would refuse such a disk as well; this tells who uses it.
///
/// # Errors
///
/// [`Error::InUse`], [`Error::ReadOnly`], or [`Error::Device`] when the mounts cannot be read.
pub fn require_unused(device: &BlockDevice) -> Result<(), Error> {
    let mounts = fs::read_to_string(MOUNT_INFO).map_err(|source| Error::Device {
        device: device.disk.name.clone().into(),
        action: format!("reading {MOUNT_INFO}"),
        source,
    })?;
    for directory in device.directories() {
        if let Some(user) = user_of(&directory, &mounts) {
            return Err(Error::InUse { device: device.disk.name.clone(), user });
        }
        if sysfs::number::<u8>(&directory, "ro") == Some(1) {
            return Err(Error::ReadOnly { device: device.disk.name.clone() });
        }
    }
    Ok(())
}

fn user_of(directory: &Path, mounts: &str) -> Option<String> {
    let holders = sysfs::entries(&directory.join("holders"));
    if !holders.is_empty() {
        return Some(format!("held by {}", holders.join(", ")));
    }
    let number = sysfs::attribute(directory, "dev")?;
    mount_point(mounts, &number).map(|target| format!("mounted on {target}"))
}

/// Mount point of the device `number` (`major:minor`) in the text of mountinfo.
fn mount_point<'a>(mounts: &'a str, number: &str) -> Option<&'a str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let (device, _root, target) = (fields.next()?, fields.next()?, fields.next()?);
        (device == number).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    const DISK: &str = "devices/pci0/block/sda";

    #[test]
    fn mounts_are_found_by_device_number() {
        let mounts = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n\
                      37 35 8:1 / /boot rw - ext4 /dev/sda1 rw\nbroken\n";
        assert_eq!(mount_point(mounts, "8:1"), Some("/boot"));
        assert_eq!(mount_point(mounts, "98:0"), Some("/mnt2"));
        assert_eq!(mount_point(mounts, "8:10"), None);
    }

    #[test]
    fn a_held_or_read_only_partition_makes_the_disk_unusable() {
        for (attribute, content, expected) in [
            ("sda1/partition", "1", None),
            ("sda1/holders/md0", "", Some("held by md0")),
            ("holders/dm-0", "", Some("held by dm-0")),
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
    }
}
