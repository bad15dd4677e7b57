//! A machine whose devices are files, for tests of what is read on them.

use crate::device::BlockDevice;
use crate::fake_sysfs::FakeSysfs;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Large enough for the default rule; the files are sparse.
const SIZE: u64 = 5 << 30;

/// The machine; removed on drop.
pub struct FakeMachine {
    pub sysfs: FakeSysfs,
    files: tempfile::TempDir,
}

impl FakeMachine {
    pub fn new() -> Self {
        Self { sysfs: FakeSysfs::new(), files: tempfile::tempdir().unwrap() }
    }

    /// What sysfs calls the device of this name, whose file does not lie among the device nodes.
    fn kernel_name(&self, name: &str) -> String {
        format!("..{}", self.files.path().join(name).display()).replace('/', "!")
    }

    pub fn add(&self, name: &str, attributes: &[(&str, &str)], content: &[(u64, &[u8])]) {
        self.add_at("", name, SIZE, attributes, content);
    }

    /// Adds a disk of this size on a bus, by the path of that among the devices.
    pub fn add_at(
        &self,
        bus: &str,
        name: &str,
        size: u64,
        attributes: &[(&str, &str)],
        content: &[(u64, &[u8])],
    ) {
        let file = File::create(self.files.path().join(name)).unwrap();
        file.set_len(size).unwrap();
        for (offset, bytes) in content {
            file.write_all_at(bytes, *offset).unwrap();
        }
        self.sysfs.disk(&format!("devices/{bus}/{}", self.kernel_name(name)), size, attributes);
    }

    /// Adds a partition to a disk, with a file of its own.
    pub fn partition(&self, disk: &str, number: u32, place: Range<u64>, content: &[(u64, &[u8])]) {
        let name = format!("{disk}{number}");
        let file = File::create(self.files.path().join(&name)).unwrap();
        file.set_len(place.end - place.start).unwrap();
        for (offset, bytes) in content {
            file.write_all_at(bytes, *offset).unwrap();
        }
        let directory = self.device(disk).directory().join(self.kernel_name(&name));
        fs::create_dir_all(&directory).unwrap();
        let sectors = |bytes: u64| (bytes / 512).to_string();
        for (attribute, value) in [
            ("partition", number.to_string()),
            ("start", sectors(place.start)),
            ("size", sectors(place.end - place.start)),
        ] {
            fs::write(directory.join(attribute), value).unwrap();
        }
    }

    /// Adds a running mirror of two partitions, whose data begin at 1 MiB of each and have this size.
    pub fn mirror(&self, name: &str, data: u64, members: [(&str, u32); 2]) {
        let attributes = [
            ("md/level", "raid1".to_owned()),
            ("md/metadata_version", "1.2".to_owned()),
            ("md/raid_disks", "2".to_owned()),
            ("md/component_size", (data / 1024).to_string()),
            ("md/degraded", "0".to_owned()),
        ];
        let attributes: Vec<_> = attributes.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.add_at("", name, data, &attributes, &[]);
        for (slot, (disk, number)) in members.into_iter().enumerate() {
            let partition =
                format!("{}/{}", self.kernel_name(disk), self.kernel_name(&format!("{disk}{number}")));
            self.sysfs.stack(&format!("devices/{partition}"), &format!("devices/{}", self.kernel_name(name)));
            let member = self.kernel_name(&format!("{disk}{number}"));
            let directory = self.device(name).directory().join(format!("md/dev-{member}"));
            fs::create_dir_all(&directory).unwrap();
            for (attribute, value) in [
                ("state", "in_sync".to_owned()),
                ("slot", slot.to_string()),
                ("offset", "2048".to_owned()),
                ("size", (data / 1024).to_string()),
                ("bad_blocks", String::new()),
            ] {
                fs::write(directory.join(attribute), value).unwrap();
            }
        }
    }

    /// Changes what a running array says of itself or of a member.
    pub fn set(&self, array: &str, attribute: &str, value: &str) {
        fs::write(self.device(array).directory().join("md").join(attribute), value).unwrap();
    }

    /// Has the disk answer nothing any more.
    pub fn lose(&self, name: &str) {
        fs::remove_file(self.files.path().join(name)).unwrap();
    }

    pub fn stack(&self, lower: &str, upper: &str) {
        let path = |name| format!("devices/{}", self.kernel_name(name));
        self.sysfs.stack(&path(lower), &path(upper));
    }

    pub fn device(&self, name: &str) -> BlockDevice {
        BlockDevice::describe(self.sysfs.path(), &self.kernel_name(name)).unwrap()
    }

    /// A text without the folder of the files.
    pub fn shortened(&self, text: &str) -> String {
        text.replace(&format!("/dev/..{}/", self.files.path().display()), "")
    }
}

/// The superblock, for 4 KiB behind the start, of a member of the array `array`, whose data begin at 1 MiB.
pub fn superblock(array: u8, name: &str) -> Vec<u8> {
    let mut superblock = vec![0; 256];
    superblock[..5].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1]);
    superblock[16] = array;
    superblock[32..32 + name.len()].copy_from_slice(name.as_bytes());
    superblock[128..136].copy_from_slice(&2048_u64.to_le_bytes());
    superblock
}
