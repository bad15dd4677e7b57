//! Opening disks for writing, and wiping them.

#![allow(clippy::unwrap_used)]

use farrier_disk::view::DiskView;
use farrier_disk::{BlockDevice, Error, RootDisk, choose_root_disk, wipe};
use farrier_linux::aligned::AlignedBuffer;
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::lookup::Node;
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::thread;

const MIB: usize = 1 << 20;
const DISK: usize = 8 * MIB;

fn attach() -> (LoopDevice, RootDisk) {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(DISK as u64).unwrap();
    let device = LoopDevice::attach(file.path(), 512).expect("loop devices need root");
    let described = BlockDevice::describe(Path::new("/sys"), device.kernel_name()).unwrap();
    let hints = json!({"root_device": {"name": described.disk.name}});
    let node = Node { properties: serde_json::from_value(hints).unwrap(), ..Node::default() };
    (device, choose_root_disk(&node, &[described]).unwrap())
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
