//! Opening disks for writing, and wiping them.

#![allow(clippy::unwrap_used)]

use farrier_disk::Sectors;
use farrier_disk::guard::{Obstacle, RaidDisk, plan_erase, plan_raid, survey};
use farrier_disk::io::view::DiskView;
use farrier_disk::table::TableKind;
use farrier_disk::{BlockDevice, Error, RootDisk, choose_root_disk, wipe};
use farrier_linux::aligned::AlignedBuffer;
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::lookup::Node;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::thread;

const MIB: usize = 1 << 20;
const DISK: usize = 8 * MIB;

fn attach() -> (LoopDevice, RootDisk) {
    let (device, described) = described(|_| ());
    let root_disk = choose_root_disk(&node_wanting(&described), &[described]).unwrap();
    (device, root_disk)
}

/// A loop device with what `prepare` writes into its file.
fn described(prepare: impl FnOnce(&mut File)) -> (LoopDevice, BlockDevice) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(DISK as u64).unwrap();
    prepare(file.as_file_mut());
    let device = LoopDevice::attach(file.path(), 512).expect("loop devices need root");
    let described = BlockDevice::describe(Path::new("/sys"), device.kernel_name()).unwrap();
    (device, described)
}

fn node_wanting(device: &BlockDevice) -> Node {
    node(json!({"root_device": {"name": device.disk.name}}))
}

fn node(properties: Value) -> Node {
    Node { properties: serde_json::from_value(properties).unwrap(), ..Node::default() }
}

#[test]
fn loop_f09_a_disk_that_is_busy_for_a_moment_is_opened_when_it_is_free() {
    let (_device, root_disk) = attach();
    let first = root_disk.open().unwrap();
    let second = thread::spawn(move || root_disk.open());
    drop(first);
    assert_eq!(second.join().unwrap().unwrap().size(), DISK as u64);
}

#[test]
fn loop_a_disk_that_stays_busy_is_refused_in_bounded_time() {
    let (device, root_disk) = attach();
    let _first = root_disk.open().unwrap();
    let error = root_disk.open().unwrap_err();
    assert!(
        matches!(&error, Error::InUse { device: name, .. } if Path::new(name) == device.path()),
        "{error}"
    );
}

#[test]
fn loop_d26_a_disk_that_went_away_is_not_opened() {
    let (device, root_disk) = attach();
    drop(device);
    let error = root_disk.open().unwrap_err();
    assert!(error.to_string().contains("changed since it was chosen"), "{error}");
}

#[test]
fn loop_wiping_zeros_both_ends_and_nothing_else() {
    let (_device, root_disk) = attach();
    let disk = root_disk.open().unwrap();
    let mut old = AlignedBuffer::zeroed(DISK);
    old.fill(0xaa);
    disk.write_all_at(&old, 0).unwrap();
    wipe::wipe_ends(&disk).unwrap();
    let mut content = Vec::new();
    DiskView::whole(&disk).read_to_end(&mut content).unwrap();
    assert!(content[..MIB].iter().chain(&content[DISK - MIB..]).all(|byte| *byte == 0));
    assert!(content[MIB..DISK - MIB].iter().all(|byte| *byte == 0xaa));
}

#[test]
fn loop_d03_a_shared_file_system_is_opened_with_consent_only() {
    let gfs2 = |file: &mut File| file.write_all_at(&[0x01, 0x16, 0x19, 0x70], 64 * 1024).unwrap();
    let (_device, described) = described(gfs2);
    let mut node = node_wanting(&described);
    let devices = [described];
    let plan = plan_erase(&node, &devices).unwrap();
    for refused in [choose_root_disk(&node, &devices).unwrap().open(), plan.targets[0].open(true)] {
        let error = refused.unwrap_err();
        assert!(matches!(&error, Error::Protected { content, .. } if content == "GFS2"), "{error}");
        assert_eq!(error.kind().name(), "ProtectedDeviceError");
    }
    let found = survey(&node, &devices).unwrap();
    assert_eq!(found.disks[0].obstacles, [Obstacle::Shared("GFS2".to_owned())]);
    plan.targets[0].open(false).unwrap();
    node.driver_internal_info.insert("wipe_special_filesystems".to_owned(), json!(true));
    choose_root_disk(&node, &devices).unwrap().open().unwrap();
    assert_eq!(survey(&node, &devices).unwrap().disks[0].obstacles, []);
}

#[test]
fn loop_d03_software_raid_does_not_touch_a_shared_file_system() {
    let gfs2 = |file: &mut File| file.write_all_at(&[0x01, 0x16, 0x19, 0x70], 64 * 1024).unwrap();
    let (_device, described) = described(gfs2);
    let plan = plan_raid(&Node::default(), &[described]).unwrap();
    let open = |guard| plan.disks[0].open(guard).unwrap();
    let change: [fn(RaidDisk) -> Result<(), Error>; 3] =
        [|disk| disk.require_unshared(), RaidDisk::clear, |disk| disk.add(TableKind::Gpt, &[]).map(drop)];
    for change in change {
        let error = change(open(true)).unwrap_err();
        assert!(matches!(&error, Error::Protected { content, .. } if content == "GFS2"), "{error}");
    }
    open(false).clear().unwrap();
    open(true).require_unshared().unwrap();
}

#[test]
fn loop_d02_members_of_a_named_array_are_kept_though_it_is_not_assembled() {
    let member = |file: &mut File| {
        file.write_all_at(&0xa92b_4efc_u32.to_le_bytes(), 4096).unwrap();
        file.write_all_at(&[1], 4100).unwrap();
        file.write_all_at(b"node7:data", 4096 + 32).unwrap();
    };
    let (_kept, of_array) = described(member);
    let (_other, free) = described(|_| ());
    let devices = [of_array, free];
    for (name, kept) in [("data", 1), ("node7:data", 1), ("dat", 0)] {
        let node = node(json!({"skip_block_devices": [{"volume_name": name}]}));
        let plan = plan_erase(&node, &devices).unwrap();
        assert_eq!(plan.kept.len(), kept, "{name}");
        let skipped = survey(&node, &devices).unwrap().disks[0].obstacles.contains(&Obstacle::SkipList);
        assert_eq!(skipped, kept == 1, "{name}");
    }
}

#[test]
fn loop_d28_a_mounted_disk_is_refused_with_its_mount_point() {
    let (device, described) = described(|_| ());
    let made = Command::new("mkfs.ext4").arg("-q").arg(device.path()).status().unwrap();
    assert!(made.success());
    let mounted = Mounted::new(device.path());
    let root_disk = choose_root_disk(&node_wanting(&described), std::slice::from_ref(&described)).unwrap();
    let error = root_disk.open().unwrap_err().to_string();
    assert!(error.contains(&format!("mounted on {}", mounted.0.path().display())), "{error}");
    let found = survey(&Node::default(), &[described]).unwrap();
    assert!(matches!(&found.disks[0].obstacles[..], [Obstacle::InUse(_)]), "{:?}", found.disks[0].obstacles);
    drop(mounted);
    root_disk.open().unwrap();
}

/// An ext4 file system on a directory of its own.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(device: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").arg("-r").arg(device).arg(directory.path()).status().unwrap();
        assert!(mounted.success());
        Self(directory)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}
