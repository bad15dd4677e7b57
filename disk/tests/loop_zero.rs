//! Making ranges of a loop device zero.

#![allow(clippy::unwrap_used)]

mod support;

use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use farrier_disk::io::zero::Zeroing;
use farrier_linux::aligned::AlignedBuffer;
use std::io::Read;
use std::process::Command;
use support::TestDisk;

const MIB: usize = 1 << 20;

/// A disk of eight MiB of old content but for its fourth MiB.
fn used(disk: TestDisk) -> TestDisk {
    let mut old = AlignedBuffer::zeroed(8 * MIB);
    old.fill(0xaa);
    old[3 * MIB..4 * MIB].fill(0);
    disk.disk().write_all_at(&old, 0).unwrap();
    disk
}

fn disk_with_commands() -> TestDisk {
    TestDisk::new(8 * MIB as u64, 512)
}

/// A disk whose file lies where no file can have holes.
fn disk_without_commands() -> TestDisk {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).arg(folder.path()).status().unwrap().success());
    };
    run("mount", &["-t", "ramfs", "none"]);
    let disk = std::panic::catch_unwind(|| TestDisk::in_folder(folder.path(), 8 * MIB as u64, 512));
    // The disk keeps what it needs.
    run("umount", &["--lazy"]);
    disk.unwrap()
}

#[track_caller]
fn assert_only_zero(disk: &TestDisk, range: std::ops::Range<usize>) {
    let mut content = Vec::new();
    DiskView::whole(disk.disk()).read_to_end(&mut content).unwrap();
    for (place, byte) in content.iter().enumerate() {
        let is_zero = range.contains(&place) || (3 * MIB..4 * MIB).contains(&place);
        assert_eq!(*byte == 0, is_zero, "{place}");
    }
}

#[test]
fn loop_a_disk_with_a_command_gets_no_zeros() {
    let disk = used(disk_with_commands());
    let transferred = Zeroing::default().make(disk.disk(), 512, 5 * MIB as u64).unwrap();
    assert_eq!(transferred, 0);
    assert_only_zero(&disk, 512..512 + 5 * MIB);
}

#[test]
fn loop_a_disk_without_any_gets_zeros_where_there_are_none() {
    let disk = used(disk_without_commands());
    let make = || Zeroing::default().make(disk.disk(), 2 * MIB as u64, 3 * MIB as u64).unwrap();
    assert_eq!(make(), 3 * MIB as u64);
    assert_only_zero(&disk, 2 * MIB..5 * MIB);
    assert_eq!(make(), 0);
}

#[test]
fn loop_x05_f08_zeros_that_nobody_promises_to_keep_are_written() {
    let disk = disk_with_commands();
    assert!(disk.disk().discards() && !disk.disk().keeps_discarded_zero());
    disk.disk().discard(0, 8 * MIB as u64).unwrap();
    // All of it shows zeros at this moment, and would not have to later.
    let (start, length) = (2 * MIB as u64, 4 * MIB as u64);
    let transferred = Zeroing::default().make_without_command(disk.disk(), start, length).unwrap();
    assert_eq!(transferred, length);
    assert!(disk.allocated() >= length, "zeros are stored");

    let disk = used(disk);
    Zeroing::default().make_without_command(disk.disk(), start, length).unwrap();
    assert_only_zero(&disk, 2 * MIB..6 * MIB);
}
