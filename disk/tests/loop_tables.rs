//! Partition tables on loop devices.

#![allow(clippy::unwrap_used)]

mod support;

use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use farrier_disk::table::{PartitionKind, PartitionTable, disk_identifier, finish_image};
use gpt::disk::LogicalBlockSize;
use gpt::partition_types;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use support::TestDisk;

const MIB: u64 = 1 << 20;

fn block_size(sector_size: u32) -> LogicalBlockSize {
    if sector_size == 512 { LogicalBlockSize::Lb512 } else { LogicalBlockSize::Lb4096 }
}

/// Writes a GPT image of `size` bytes with an ESP to the start of the disk.
fn write_gpt_image(disk: &TestDisk, size: u64) {
    let sector_size = disk.disk().sector_size();
    let image = DiskView::range(disk.disk(), 0, size);
    let mut table = gpt::GptConfig::new()
        .writable(true)
        .logical_block_size(block_size(sector_size))
        .create_from_device(image, None)
        .unwrap();
    table.update_partitions(BTreeMap::new()).unwrap();
    let align = Some(MIB / u64::from(sector_size));
    table.add_partition("esp", 2 * MIB, partition_types::EFI, 0, align).unwrap();
    table.add_partition("root", 4 * MIB, partition_types::LINUX_FS, 0, align).unwrap();
    let mut view = table.write().unwrap();
    view.flush().unwrap();
    // A protective MBR, as every image has.
    let protective = gpt::mbr::ProtectiveMBR::with_lb_size((size / u64::from(sector_size)) as u32 - 1);
    protective.overwrite_lba0(&mut view).unwrap();
    view.flush().unwrap();
}

/// Moves entry `from` of the primary table to slot `to` by hand, leaving a gap.
fn renumber(disk: &TestDisk, from: u64, to: u64) {
    let sector_size = u64::from(disk.disk().sector_size());
    let mut view = DiskView::whole(disk.disk());
    let mut entries = vec![0; 128 * 128];
    view.seek(SeekFrom::Start(2 * sector_size)).unwrap();
    view.read_exact(&mut entries).unwrap();
    let (from, to) = ((from as usize - 1) * 128, (to as usize - 1) * 128);
    entries.copy_within(from..from + 128, to);
    entries[from..from + 128].fill(0);
    view.seek(SeekFrom::Start(2 * sector_size)).unwrap();
    view.write_all(&entries).unwrap();
    let mut header = vec![0; 92];
    view.seek(SeekFrom::Start(sector_size)).unwrap();
    view.read_exact(&mut header).unwrap();
    header[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
    header[16..20].fill(0);
    let crc = crc32(&header);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    view.seek(SeekFrom::Start(sector_size)).unwrap();
    view.write_all(&header).unwrap();
    view.flush().unwrap();
}

/// Changes the byte at `offset` whatever it is: the checksums depend on random identifiers.
fn invert(disk: &TestDisk, offset: u64) {
    let mut view = DiskView::whole(disk.disk());
    let mut byte = [0];
    view.seek(SeekFrom::Start(offset)).unwrap();
    view.read_exact(&mut byte).unwrap();
    view.seek(SeekFrom::Start(offset)).unwrap();
    view.write_all(&[!byte[0]]).unwrap();
    view.flush().unwrap();
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn loop_d05_the_backup_gpt_moves_to_the_end_and_numbers_keep_their_gaps() {
    for sector_size in [512, 4096] {
        let disk = TestDisk::new(64 * MIB, sector_size);
        write_gpt_image(&disk, 16 * MIB);
        renumber(&disk, 1, 15);
        let table = finish_image(disk.disk()).unwrap();
        assert_eq!(table.name(), "gpt");
        assert_eq!(table.esp().unwrap().number, 15);
        assert_eq!(table.esp().unwrap().start, MIB);
        assert_eq!(table.esp().unwrap().size, 2 * MIB);

        // The second opinion: both headers valid, backup in the last sector.
        let view = DiskView::whole(disk.disk());
        let opinion = gpt::GptConfig::new()
            .logical_block_size(block_size(sector_size))
            .only_valid_headers(true)
            .open_from_device(view)
            .unwrap();
        let last = 64 * MIB / u64::from(sector_size) - 1;
        assert_eq!(opinion.primary_header().unwrap().backup_lba, last);
        let backup = opinion.backup_header().unwrap();
        assert_eq!((backup.current_lba, backup.backup_lba), (last, 1));
        assert_eq!(backup.crc32_parts, opinion.primary_header().unwrap().crc32_parts);
        assert_eq!(opinion.partitions()[&15].name, "esp");
        disk.disk().reread_partitions().unwrap();
    }
}

#[test]
fn loop_damaged_and_foreign_tables_are_refused() {
    let disk = TestDisk::new(32 * MIB, 512);
    assert_eq!(PartitionTable::read(disk.disk()).unwrap().name(), "none");
    assert!(finish_image(disk.disk()).unwrap_err().to_string().contains("no partitions"));
    for (offset, named) in [
        (512 + 16, "checksum of the GPT header"),
        (1024, "checksum of the GPT entries"),
        (512 + 13, "claims a size"),
    ] {
        write_gpt_image(&disk, 16 * MIB);
        invert(&disk, offset);
        let error = PartitionTable::read(disk.disk()).unwrap_err();
        assert_eq!(error.kind().name(), "DeploymentError");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn loop_f11_a_table_for_other_sectors_is_named() {
    let disk = TestDisk::new(32 * MIB, 4096);
    let mut view = DiskView::whole(disk.disk());
    view.seek(SeekFrom::Start(512)).unwrap();
    view.write_all(b"EFI PART").unwrap();
    view.flush().unwrap();
    let error = PartitionTable::read(disk.disk()).unwrap_err().to_string();
    assert!(error.contains("made for sectors of 512 bytes, the disk has 4096"), "{error}");
}

#[test]
fn loop_an_mbr_is_read_with_its_identifier() {
    let disk = TestDisk::new(32 * MIB, 512);
    let mut view = DiskView::whole(disk.disk());
    let mut table = mbrman::MBR::new_from(&mut view, 512, [0x78, 0x56, 0x34, 0x12]).unwrap();
    table[2] = mbrman::MBRPartitionEntry {
        boot: mbrman::BOOT_ACTIVE,
        first_chs: mbrman::CHS::empty(),
        sys: 0xef,
        last_chs: mbrman::CHS::empty(),
        starting_lba: 2048,
        sectors: 4096,
    };
    table.write_into(&mut view).unwrap();
    view.flush().unwrap();
    assert_eq!(disk_identifier(disk.disk()).unwrap(), "0x12345678");
    let table = finish_image(disk.disk()).unwrap();
    assert_eq!(table.name(), "msdos");
    let esp = table.esp().unwrap();
    assert_eq!((esp.number, esp.start, esp.size), (2, MIB, 2 * MIB));
    assert_eq!(esp.kind, PartitionKind::Mbr { type_id: 0xef, disk_identifier: 0x1234_5678 });
}
