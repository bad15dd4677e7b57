//! Config drives on loop devices.

#![allow(clippy::unwrap_used)]

#[path = "support/content.rs"]
mod content;
mod support;

use base64::Engine;
use content::{read_at, write_at};
use farrier_disk::config_drive::{ConfigDrive, MAX_SIZE};
use farrier_disk::table::{PartitionKind, PartitionTable};
use farrier_disk::view::DiskView;
use std::collections::BTreeMap;
use std::io::Write;
use support::TestDisk;

const MIB: u64 = 1 << 20;

fn drive_content() -> Vec<u8> {
    let mut content: Vec<u8> = (0..3_000_001_u32).map(|i| (i % 251) as u8).collect();
    content[32769..32774].copy_from_slice(b"CD001");
    content[32808..32840].copy_from_slice(b"config-2                        ");
    content
}

fn drive() -> ConfigDrive {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&drive_content()).unwrap();
    ConfigDrive::decode(&base64::engine::general_purpose::STANDARD.encode(encoder.finish().unwrap())).unwrap()
}

fn write_gpt(disk: &TestDisk, partitions: &[u64]) {
    let mut table =
        gpt::GptConfig::new().writable(true).create_from_device(DiskView::whole(disk.disk()), None).unwrap();
    table.update_partitions(BTreeMap::new()).unwrap();
    for size in partitions {
        table.add_partition("part", *size, gpt::partition_types::LINUX_FS, 0, Some(2048)).unwrap();
    }
    table.write().unwrap().flush().unwrap();
}

fn write_mbr(disk: &TestDisk, partitions: usize) {
    let mut view = DiskView::whole(disk.disk());
    let mut table = mbrman::MBR::new_from(&mut view, 512, [0; 4]).unwrap();
    for number in 1..=partitions {
        table[number] = mbrman::MBRPartitionEntry {
            boot: mbrman::BOOT_INACTIVE,
            first_chs: mbrman::CHS::empty(),
            sys: 0x83,
            last_chs: mbrman::CHS::empty(),
            starting_lba: 2048 * number as u32,
            sectors: 2048,
        };
    }
    table.header.bootstrap_code[..4].copy_from_slice(b"boot");
    table.write_into(&mut view).unwrap();
    view.flush().unwrap();
}

#[test]
fn loop_d12_a_new_gpt_partition_is_made_at_the_end() {
    let disk = TestDisk::new(200 * MIB, 512);
    write_gpt(&disk, &[8 * MIB]);
    let partition = drive().write_to(disk.disk()).unwrap();
    assert_eq!((partition.number, partition.size), (2, MAX_SIZE));
    assert!(partition.start + partition.size > 198 * MIB);
    assert!(matches!(partition.kind, PartitionKind::Gpt { .. }));
    assert!(PartitionTable::read(disk.disk()).unwrap().partitions().contains(&partition));
    assert_eq!(read_at(&disk, partition.start, drive_content().len()), drive_content());
    let view = DiskView::whole(disk.disk());
    let opinion = gpt::GptConfig::new().only_valid_headers(true).open_from_device(view).unwrap();
    assert_eq!(opinion.partitions()[&2].first_lba * 512, partition.start);

    // A second deployment of the same drive finds the labelled partition again.
    assert_eq!(drive().write_to(disk.disk()).unwrap(), partition);
}

#[test]
fn loop_d15_an_mbr_keeps_every_other_byte() {
    let disk = TestDisk::new(200 * MIB, 512);
    write_mbr(&disk, 3);
    let before = read_at(&disk, 0, 512);
    let partition = drive().write_to(disk.disk()).unwrap();
    assert_eq!((partition.number, partition.start, partition.size), (4, 136 * MIB, MAX_SIZE));
    let after = read_at(&disk, 0, 512);
    assert_eq!(before[..494], after[..494]);
    assert_eq!(before[510..], after[510..]);
    assert_eq!(read_at(&disk, partition.start, drive_content().len()), drive_content());
}

#[test]
fn loop_a_labelled_partition_is_reused_and_two_are_an_error() {
    let disk = TestDisk::new(200 * MIB, 512);
    write_gpt(&disk, &[8 * MIB, 8 * MIB]);
    let second = PartitionTable::read(disk.disk()).unwrap().partitions()[1].clone();
    write_at(&disk, second.start, &drive_content());
    assert_eq!(drive().write_to(disk.disk()).unwrap(), second);
    let first = PartitionTable::read(disk.disk()).unwrap().partitions()[0].clone();
    write_at(&disk, first.start, &drive_content());
    let error = drive().write_to(disk.disk()).unwrap_err().to_string();
    assert!(error.contains("partitions 1 and 2 are both labelled config-2"), "{error}");
}

#[test]
fn loop_a_disk_without_place_is_refused_and_not_touched() {
    for (prepare, named) in [
        ((|disk| write_gpt(disk, &[150 * MIB])) as fn(&TestDisk), "64 MiB are needed"),
        (|disk| write_mbr(disk, 4), "four primary partitions"),
        (|_| (), "no partition table"),
    ] {
        let disk = TestDisk::new(200 * MIB, 512);
        prepare(&disk);
        let before = read_at(&disk, 0, 1 << 20);
        let error = drive().write_to(disk.disk()).unwrap_err();
        assert_eq!(error.kind().name(), "DeploymentError");
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(read_at(&disk, 0, 1 << 20), before);
    }
}

#[test]
fn loop_f11_an_iso_drive_on_4_kib_sectors_is_refused() {
    let disk = TestDisk::new(200 * MIB, 4096);
    let error = drive().require_fits(disk.disk()).unwrap_err().to_string();
    assert!(error.contains("ISO 9660") && error.contains("4096"), "{error}");
}
