//! Erasing the metadata of loop devices.

#![allow(clippy::unwrap_used)]

#[path = "support/content.rs"]
mod content;
mod support;

use content::{read_at, write_at, write_protective_mbr};
use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use farrier_disk::table::PartitionTable;
use farrier_disk::wipe;
use farrier_disk::{BlockDevice, Error, guard};
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::lookup::Node;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use support::TestDisk;

const MIB: u64 = 1 << 20;
const DISK: u64 = 96 * MIB;

fn write_gpt(disk: &TestDisk, partitions: &[(u64, gpt::partition_types::Type)]) {
    let block_size = match disk.disk().sector_size() {
        512 => gpt::disk::LogicalBlockSize::Lb512,
        _ => gpt::disk::LogicalBlockSize::Lb4096,
    };
    let config = gpt::GptConfig::new().writable(true).logical_block_size(block_size);
    let mut table = config.create_from_device(DiskView::whole(disk.disk()), None).unwrap();
    table.update_partitions(BTreeMap::new()).unwrap();
    for (size, kind) in partitions {
        table.add_partition("part", *size, kind.clone(), 0, Some(256)).unwrap();
    }
    table.write().unwrap().flush().unwrap();
    write_protective_mbr(disk);
}

#[test]
fn loop_d20_d21_signatures_inside_partitions_go_before_the_table_whatever_the_sectors() {
    for sector_size in [512, 4096] {
        let disk = TestDisk::new(DISK, sector_size);
        let linux = gpt::partition_types::LINUX_FS;
        write_gpt(&disk, &[(32 * MIB, linux.clone()), (32 * MIB, linux)]);
        let partitions = PartitionTable::read(disk.disk()).unwrap().partitions().to_vec();
        for partition in &partitions {
            // Where ext4, a LUKS header copy and an array member keep theirs, and data in between.
            for offset in [1080, 4 * MIB, 16 * MIB, partition.size - 8192] {
                write_at(&disk, partition.start + offset, b"signature");
            }
        }
        wipe::erase_metadata(disk.disk()).unwrap();
        assert_eq!(PartitionTable::read(disk.disk()).unwrap().name(), "none");
        for partition in &partitions {
            for (offset, expected) in [
                (1080, [0; 9]),
                (4 * MIB, [0; 9]),
                (16 * MIB, *b"signature"),
                (partition.size - 8192, [0; 9]),
            ] {
                assert_eq!(read_at(&disk, partition.start + offset, 9), expected, "{sector_size} {offset}");
            }
        }
    }
}

#[test]
fn loop_a_damaged_table_and_a_tiny_disk_can_be_erased() {
    let disk = TestDisk::new(MIB / 2, 512);
    write_at(&disk, 0, &[0xff; 512]);
    write_at(&disk, 510, &[0x55, 0xaa]);
    write_at(&disk, 512, b"EFI PART, but not really");
    wipe::erase_metadata(disk.disk()).unwrap();
    assert_eq!(read_at(&disk, 0, 1024), [0; 1024]);
}

#[test]
fn loop_a_disk_in_use_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8 * MIB).unwrap();
    let device = LoopDevice::attach(file.path(), 512).expect("loop devices need root");
    let described = BlockDevice::describe(Path::new("/sys"), device.kernel_name()).unwrap();
    let plan = guard::plan_erase(&Node::default(), &[described]).unwrap();
    let _claim = plan.targets[0].open(true).unwrap();
    let error = plan.targets[0].open(true).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
}
