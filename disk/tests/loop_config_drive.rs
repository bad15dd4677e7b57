//! Config drives on loop devices.

#![allow(clippy::unwrap_used)]

#[path = "support/content.rs"]
mod content;
mod support;

use base64::Engine;
use content::{read_at, write_at, write_protective_mbr};
use farrier_disk::Sectors;
use farrier_disk::config_drive::{ConfigDrive, MAX_SIZE};
use farrier_disk::io::view::DiskView;
use farrier_disk::table::{PartitionKind, PartitionTable};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use support::TestDisk;

const MIB: u64 = 1 << 20;

fn drive_content() -> Vec<u8> {
    let mut content: Vec<u8> = (0..3_000_001_u32).map(|i| (i % 251) as u8).collect();
    // A primary volume descriptor and the end of the descriptors.
    content[32768..36864].fill(0);
    content[32768..32775].copy_from_slice(b"\x01CD001\x01");
    content[32808..32840].copy_from_slice(b"config-2                        ");
    content[34816..34823].copy_from_slice(b"\xffCD001\x01");
    content
}

fn drive() -> ConfigDrive {
    ConfigDrive::decode(&packed(&drive_content()), MAX_SIZE).unwrap()
}

fn packed(content: &[u8]) -> String {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    base64::engine::general_purpose::STANDARD.encode(encoder.finish().unwrap())
}

fn write_gpt(disk: &TestDisk, partitions: &[u64]) {
    let sector_size = disk.disk().sector_size();
    let block_size = gpt::disk::LogicalBlockSize::try_from(u64::from(sector_size)).unwrap();
    let config = gpt::GptConfig::new().writable(true).logical_block_size(block_size);
    let mut table = config.create_from_device(DiskView::whole(disk.disk()), None).unwrap();
    table.update_partitions(BTreeMap::new()).unwrap();
    for size in partitions {
        table
            .add_partition(
                "part",
                *size,
                gpt::partition_types::LINUX_FS,
                0,
                Some(MIB / u64::from(sector_size)),
            )
            .unwrap();
    }
    table.write().unwrap().flush().unwrap();
    write_protective_mbr(disk);
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
fn loop_p17_a_label_on_another_disk_is_not_looked_for() {
    let disks = [TestDisk::new(200 * MIB, 512), TestDisk::new(200 * MIB, 512)];
    for disk in &disks {
        write_gpt(disk, &[8 * MIB]);
    }
    let other = &disks[0];
    let labelled = PartitionTable::read(other.disk()).unwrap().partitions()[0].clone();
    write_at(other, labelled.start, &drive_content());
    let before = read_at(other, 0, 12 * MIB as usize);
    let partition = drive().write_to(disks[1].disk()).unwrap();
    assert_eq!((partition.number, partition.size), (2, MAX_SIZE), "a new one on the target");
    assert_eq!(read_at(&disks[1], partition.start, drive_content().len()), drive_content());
    assert_eq!(read_at(other, 0, 12 * MIB as usize), before, "the other disk was written");
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

/// A config drive as conductors make it, by the program they use.
fn packed_iso(dialect: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let latest = folder.path().join("openstack/latest");
    std::fs::create_dir_all(&latest).unwrap();
    std::fs::write(latest.join("meta_data.json"), b"{}").unwrap();
    std::fs::write(latest.join("user_data"), vec![7; 300_000]).unwrap();
    let image = tempfile::NamedTempFile::new().unwrap();
    let made = Command::new("genisoimage")
        .args(["-quiet", "-V", "config-2", "-allow-lowercase", "-l", "-o"])
        .arg(image.path())
        .args(dialect)
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    packed(&std::fs::read(image.path()).unwrap())
}

/// Checks the FAT volume in `content` with the tool of the field and reads its files.
fn files_of(content: &[u8]) -> Vec<(String, usize)> {
    let volume = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(volume.path(), content).unwrap();
    let checked = Command::new("fsck.vfat").arg("-n").arg(volume.path()).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let mut volume = std::io::Cursor::new(content.to_vec());
    let volume = fatfs::FileSystem::new(&mut volume, fatfs::FsOptions::new()).unwrap();
    assert_eq!(volume.read_volume_label_from_root_dir().unwrap().as_deref(), Some("CONFIG-2"));
    let latest = volume.root_dir().open_dir("openstack/latest").unwrap();
    let files = latest.iter().map(|entry| entry.unwrap()).filter(|entry| entry.is_file());
    files.map(|entry| (entry.file_name(), entry.len() as usize)).collect()
}

#[test]
fn loop_d11_a_drive_that_could_not_be_mounted_is_made_anew_as_fat() {
    let expected = [("meta_data.json".to_owned(), 2), ("user_data".to_owned(), 300_000)];
    for (dialect, sector_size, rebuild) in [
        (&["-J", "-r"][..], 4096, false),
        (&["-r"], 4096, false),
        (&["-J"], 4096, false),
        (&[], 4096, false),
        (&["-J", "-r"], 512, true),
    ] {
        let disk = TestDisk::new(200 * MIB, sector_size);
        write_gpt(&disk, &[8 * MIB]);
        let drive = ConfigDrive::decode(&packed_iso(dialect), MAX_SIZE).unwrap().always_rebuilt(rebuild);
        drive.require_fits(disk.disk()).unwrap();
        let partition = drive.write_to(disk.disk()).unwrap();
        let content = read_at(&disk, partition.start, partition.size as usize);
        assert_eq!(u32::from(u16::from_le_bytes([content[11], content[12]])), sector_size);
        assert_eq!(files_of(&content), expected, "{dialect:?}");
        // What was made is found again, and made anew in the same place.
        assert_eq!(drive.write_to(disk.disk()).unwrap(), partition);
    }
}

#[test]
fn loop_d11_a_drive_that_cannot_be_made_anew_is_refused_before_anything_is_written() {
    let disk = TestDisk::new(200 * MIB, 4096);
    let error = drive().require_fits(disk.disk()).unwrap_err();
    assert_eq!(error.kind().name(), "DeploymentError");
    assert!(error.to_string().contains("its files cannot be read"), "{error}");
}

#[test]
fn loop_d14_beyond_2_tib_the_drive_lies_where_an_mbr_reaches() {
    const TIB: u64 = 1 << 40;
    let disk = TestDisk::new(3 * TIB, 512);
    write_mbr(&disk, 1);
    let partition = drive().write_to(disk.disk()).unwrap();
    assert_eq!((partition.start, partition.size), (2 * TIB - MAX_SIZE, MAX_SIZE));
    let disk = TestDisk::new(3 * TIB, 512);
    write_gpt(&disk, &[8 * MIB]);
    assert!(drive().write_to(disk.disk()).unwrap().start > 2 * TIB);
}

#[test]
fn loop_d13_a_damaged_table_gets_no_config_drive() {
    let disk = TestDisk::new(200 * MIB, 512);
    write_gpt(&disk, &[8 * MIB]);
    write_at(&disk, 1024, &[0xff; 16]);
    let before = read_at(&disk, 0, MIB as usize);
    let error = drive().write_to(disk.disk()).unwrap_err().to_string();
    assert!(error.contains("checksum of the GPT entries"), "{error}");
    assert_eq!(read_at(&disk, 0, MIB as usize), before);
}
