//! Making ranges of a loop device zero.

#![allow(clippy::unwrap_used)]

mod support;

use farrier_disk::view::DiskView;
use farrier_disk::zero::Zeroing;
use farrier_linux::aligned::AlignedBuffer;
use std::io::Read;
use support::TestDisk;

const MIB: usize = 1 << 20;

/// A disk of eight MiB of old content but for its fourth MiB.
fn used_disk() -> TestDisk {
    let disk = TestDisk::new(8 * MIB as u64, 512);
    let mut old = AlignedBuffer::zeroed(8 * MIB);
    old.fill(0xaa);
    old[3 * MIB..4 * MIB].fill(0);
    disk.disk().write_all_at(&old, 0).unwrap();
    disk
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
    let disk = used_disk();
    let transferred = Zeroing::default().make(disk.disk(), 512, 5 * MIB as u64).unwrap();
    assert_eq!(transferred, 0);
    assert_only_zero(&disk, 512..512 + 5 * MIB);
}

#[test]
fn loop_without_a_command_only_old_content_is_written_over() {
    let (start, length) = (3 * MIB as u64, 3 * MIB as u64);
    for (is_discarded, disk) in [(false, used_disk()), (true, used_disk())] {
        let transferred = Zeroing::default().fill_up(disk.disk(), start, length, is_discarded).unwrap();
        assert_eq!(transferred, 2 * MIB as u64);
        assert_only_zero(&disk, 3 * MIB..6 * MIB);
        let again = Zeroing::default().fill_up(disk.disk(), start, length, is_discarded).unwrap();
        assert_eq!(again, 0);
    }
}
