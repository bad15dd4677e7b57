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

/// The superblock of a member of the array `name`, for 4 KiB behind the start of its volume.
fn superblock(name: &str) -> Vec<u8> {
    let mut superblock = vec![0; 256];
    superblock[..5].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1]);
    superblock[32..32 + name.len()].copy_from_slice(name.as_bytes());
    superblock
}

/// Puts an entry into a sector of an MBR: slot, type, first sector, sectors.
fn put_entry(file: &File, sector: u64, (slot, kind, start, sectors): (u64, u8, u32, u32)) {
    let mut entry = [0; 16];
    entry[4] = kind;
    entry[8..12].copy_from_slice(&start.to_le_bytes());
    entry[12..].copy_from_slice(&sectors.to_le_bytes());
    file.write_all_at(&entry, sector * 512 + 446 + slot * 16).unwrap();
    file.write_all_at(&[0x55, 0xaa], sector * 512 + 510).unwrap();
}

/// The second sector of a physical volume of LVM, with its checksum.
fn lvm_label() -> [u8; 512] {
    let mut label = [0; 512];
    label[..8].copy_from_slice(b"LABELONE");
    (label[8], label[20]) = (1, 32);
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].fill(b'u');
    let shift = |crc: u32, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    let add = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), shift);
    let crc = label[20..].iter().fold(0xf597_a6cf, add);
    label[16..20].copy_from_slice(&crc.to_le_bytes());
    label
}

/// What a disk holds, read past all that is open.
fn content(device: &LoopDevice) -> Vec<u8> {
    std::fs::read(device.path()).unwrap()
}

#[test]
fn loop_g05_a_disk_with_content_or_a_damaged_table_is_not_free_and_gets_no_partitions() {
    let made = |program: &str, arguments: &[&str]| {
        let (device, disk) = described(|_| ());
        let status = Command::new(program).args(arguments).arg(device.path()).output().unwrap().status;
        assert!(status.success(), "{program}");
        (device, disk)
    };
    let gpt_with = |damage: fn(&File)| {
        described(|file| {
            gpt::mbr::ProtectiveMBR::with_lb_size(u32::MAX).overwrite_lba0(&mut *file).unwrap();
            let mut table =
                gpt::GptConfig::new().writable(true).create_from_device(&mut *file, None).unwrap();
            table.add_partition("data", 2 << 20, gpt::partition_types::LINUX_FS, 0, Some(2048)).unwrap();
            table.write().unwrap();
            damage(file);
        })
    };
    for (named, (device, disk)) in [
        ("ext4", made("mkfs.ext4", &["-q"])),
        ("swap", made("mkswap", &[])),
        ("checksum of the GPT header", gpt_with(|file| file.write_all_at(&[0x5c], 512 + 60).unwrap())),
        ("checksum of the GPT entries", gpt_with(|file| file.write_all_at(&[0x5c], 1024 + 60).unwrap())),
        ("only the backup GPT", gpt_with(|file| file.write_all_at(&[0; 1 << 20], 0).unwrap())),
        ("LVM2_member", described(|file| file.write_all_at(&lvm_label(), 512).unwrap())),
    ] {
        let before = content(&device);
        let plan = plan_raid(&Node::default(), &[disk]).unwrap();
        let error = plan.disks[0].open(true).unwrap().add(TableKind::Gpt, &[]).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("run delete_configuration"), "{named}: {error}");
        assert!(content(&device) == before, "{named}: something was written");
    }
    let (_device, empty) = described(|_| ());
    let plan = plan_raid(&Node::default(), &[empty]).unwrap();
    plan.disks[0].open(true).unwrap().require_free().unwrap();
}

#[test]
fn loop_g05_a_kept_volume_is_not_lost_with_a_wrong_bit_of_its_table() {
    let node = node(json!({"skip_block_devices": [{"volume_name": "data"}]}));
    let (device, disk) = described(|file| {
        gpt::mbr::ProtectiveMBR::with_lb_size(u32::MAX).overwrite_lba0(&mut *file).unwrap();
        let mut table = gpt::GptConfig::new().writable(true).create_from_device(&mut *file, None).unwrap();
        table.add_partition("data", 2 << 20, gpt::partition_types::LINUX_RAID, 0, Some(2048)).unwrap();
        table.write().unwrap();
        file.write_all_at(&superblock("node7:data"), (1 << 20) + 4096).unwrap();
        file.write_all_at(&[0x5c], 512 + 60).unwrap();
    });
    let before = content(&device);
    let plan = plan_raid(&node, std::slice::from_ref(&disk)).unwrap();
    assert!(matches!(plan.disks[0].require_keepable(), Err(Error::InvalidTable { .. })));
    let error = plan.disks[0].open(true).unwrap_err();
    assert!(matches!(error, Error::InvalidTable { .. }), "{error}");
    assert!(content(&device) == before);
    // Where nothing is to be kept, what the table led to goes.
    let plan = plan_raid(&Node::default(), &[disk]).unwrap();
    assert!(plan.disks[0].has_member().unwrap());
    plan.disks[0].require_keepable().unwrap();
    plan.disks[0].open(true).unwrap().clear().unwrap();
    assert!(content(&device)[(1 << 20) + 4096..][..256].iter().all(|byte| *byte == 0));
}

#[test]
fn loop_g06_a_kept_volume_in_a_logical_partition_stays_and_is_refused_before_anything_is_written() {
    let node = node(json!({"skip_block_devices": [{"volume_name": "data"}]}));
    // An extended partition from 1 MiB on, with the kept volume in it from 2 MiB on; another one may lie beside it.
    for (has_other, is_primary) in [(false, false), (true, false), (false, true), (true, true)] {
        let (device, disk) = described(|file| {
            if is_primary {
                put_entry(file, 0, (1, 0xfd, 4096, 4096));
            } else {
                put_entry(file, 0, (1, 0x05, 2048, 6144));
                put_entry(file, 2048, (0, 0xfd, 2048, 4096));
            }
            if has_other {
                put_entry(file, 0, (2, 0x83, 10240, 2048));
                file.write_all_at(&superblock("node7:other"), 10240 * 512 + 4096).unwrap();
            }
            file.write_all_at(&superblock("node7:data"), (2 << 20) + 4096).unwrap();
            file.write_all_at(&[0xaa; 1 << 20], 3 << 20).unwrap();
        });
        let before = content(&device);
        let plan = plan_raid(&node, &[disk]).unwrap();
        let is_keepable = plan.disks[0].require_keepable();
        let cleared = plan.disks[0].open(true).unwrap().clear();
        let after = content(&device);
        assert!(after[2 << 20..4 << 20] == before[2 << 20..4 << 20], "{has_other} {is_primary}");
        if has_other && !is_primary {
            for error in [is_keepable.unwrap_err(), cleared.unwrap_err()].map(|error| error.to_string()) {
                assert!(error.contains("partition 5") && error.contains("logical"), "{error}");
            }
            assert!(after == before);
            continue;
        }
        is_keepable.unwrap();
        cleared.unwrap();
        assert_eq!(after == before, !has_other, "nothing to remove is nothing to write");
        let is_other_there = after[10240 * 512..].iter().any(|byte| *byte != 0);
        assert!(!is_other_there, "{has_other} {is_primary}");
        // Nothing can be made beside a logical one either.
        let free = plan.disks[0].open(true).unwrap().require_free();
        assert_eq!(free.is_ok(), is_primary, "{free:?}");
    }
}

#[test]
fn loop_g06_a_kept_volume_on_a_whole_disk_stays() {
    let node = node(json!({"skip_block_devices": [{"volume_name": "data"}]}));
    let (device, disk) = described(|file| file.write_all_at(&superblock("node7:data"), 4096).unwrap());
    let before = content(&device);
    let plan = plan_raid(&node, &[disk]).unwrap();
    plan.disks[0].open(true).unwrap().clear().unwrap();
    assert!(content(&device) == before);
}

/// A member in the data of a partition of an earlier life is none, and clearing its disk would cost the live ones.
#[test]
fn loop_a02_a_stale_table_makes_no_disk_a_member() {
    let (device, disk) = described(|file| {
        let mut table = gpt::GptConfig::new().writable(true).create_from_device(&mut *file, None).unwrap();
        table.add_partition("old", 2 << 20, gpt::partition_types::LINUX_RAID, 0, Some(2048)).unwrap();
        table.write().unwrap();
        file.write_all_at(&superblock("node7:old"), (1 << 20) + 4096).unwrap();
        put_entry(file, 0, (0, 0x83, 8192, 6144));
    });
    let plan = plan_raid(&Node::default(), &[disk]).unwrap();
    assert!(!plan.disks[0].has_member().unwrap());
    drop(device);
}
