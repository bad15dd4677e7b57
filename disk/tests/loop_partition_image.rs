//! Partition images on loop devices, judged by the tools of the field.

#![allow(clippy::unwrap_used)]

#[path = "support/content.rs"]
mod content;
mod support;

use content::{read_at, write_at};
use farrier_disk::Error;
use farrier_disk::Sectors;
use farrier_disk::ephemeral;
use farrier_disk::layout::{Layout, Request, Role};
use farrier_disk::partition_image::{self, Identifiers};
use farrier_disk::table::{Geometry, PartitionTable, TableKind};
use std::path::Path;
use std::process::Command;
use support::TestDisk;

const MIB: u64 = 1 << 20;
const DISK: u64 = 400 * MIB;
const ROOT_UUID: &str = "6b2f1f6e-7a52-44a3-9d8a-2e0c4a9f5d10";

fn request(is_uefi: bool, table: TableKind) -> Request<'static> {
    Request {
        is_uefi,
        is_power: false,
        table,
        root_mib: 64,
        swap_mib: 8,
        ephemeral_mib: 32,
        ephemeral_format: ephemeral::Format::default(),
        esp_mib: 200,
        bios_boot_mib: 1,
        config_drive: None,
    }
}

fn plan(disk: &TestDisk, request: &Request<'_>) -> Layout {
    let geometry = Geometry { size: DISK, sector_size: disk.disk().sector_size() };
    Layout::plan(request, disk.disk().path(), geometry).unwrap()
}

/// The bytes of an ext4 file system with a known identity.
fn ext4() -> Vec<u8> {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(16 * MIB).unwrap();
    let options = ["-q", "-F", "-b", "4096", "-U", ROOT_UUID];
    let made = Command::new("mkfs.ext4").args(options).arg(image.path()).status().unwrap();
    assert!(made.success());
    std::fs::read(image.path()).unwrap()
}

fn deploy(disk: &TestDisk, layout: &Layout, keeps_table: bool) -> Identifiers {
    partition_image::prepare(disk.disk(), layout, keeps_table).unwrap();
    write_at(disk, layout.root().start, &ext4());
    partition_image::finish(disk.disk(), layout, keeps_table, None).unwrap()
}

/// What the field's own tool says of a range of the disk.
fn blkid(disk: &Path, start: u64, size: u64) -> String {
    let (start, size) = (start.to_string(), size.to_string());
    let options = ["-p", "-o", "export", "-O", &start, "-S", &size];
    let output = Command::new("blkid").args(options).arg(disk).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn loop_d17_d21_identities_are_those_on_the_disk_whatever_its_sectors() {
    for (is_uefi, table, sector_size) in [
        (true, TableKind::Gpt, 512),
        (true, TableKind::Gpt, 4096),
        (false, TableKind::Gpt, 512),
        (false, TableKind::Mbr, 512),
        (false, TableKind::Mbr, 4096),
    ] {
        let disk = TestDisk::new(DISK, sector_size);
        let layout = plan(&disk, &request(is_uefi, table));
        let found = deploy(&disk, &layout, false);
        assert_eq!(found.root, ROOT_UUID);
        assert_eq!(found.esp.is_some(), is_uefi);
        let path = disk.disk().path();
        for place in &layout.places {
            let opinion = blkid(path, place.start, place.size);
            let expected = match place.role {
                Role::Esp => format!("UUID={}", found.esp.as_ref().unwrap()),
                Role::Root => format!("UUID={ROOT_UUID}"),
                Role::Swap => "LABEL=swap1".to_owned(),
                Role::Ephemeral => "LABEL=ephemeral0".to_owned(),
                _ => continue,
            };
            assert!(opinion.lines().any(|line| line == expected), "{:?}: {opinion}", place.role);
        }
        assert_eq!(found.partitions.len(), layout.places.len());
        let last = format!("p{}", layout.places.len());
        assert!(found.partitions.last().unwrap().1.display().to_string().ends_with(&last));
        check_table(path, layout.table);
        if let Some(esp) = layout.places.iter().find(|place| place.role == Role::Esp) {
            check("vfat", &read_at(&disk, esp.start, esp.size as usize));
        }
    }
}

fn check_table(disk: &Path, table: TableKind) {
    let (program, options, expected) = match table {
        TableKind::Gpt => ("sgdisk", "-v", "No problems found"),
        TableKind::Mbr => ("blkid", "-p", "PTTYPE=\"dos\""),
    };
    let output = Command::new(program).arg(options).arg(disk).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(expected), "{text}");
}

/// Has the field's own tool look at a file system.
fn check(kind: &str, content: &[u8]) {
    let volume = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(volume.path(), content).unwrap();
    let force: &[&str] = if kind == "vfat" { &[] } else { &["-f"] };
    let mut checker = Command::new(format!("fsck.{kind}"));
    let checked = checker.args(force).arg("-n").arg(volume.path()).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn loop_an_ephemeral_partition_has_the_file_system_that_was_asked_for() {
    for (name, sector_size) in
        ["ext2", "ext3", "ext4", "vfat"].into_iter().flat_map(|name| [(name, 512), (name, 4096)])
    {
        let disk = TestDisk::new(DISK, sector_size);
        let ephemeral_format = ephemeral::Format::named(name).unwrap();
        let layout = plan(&disk, &Request { ephemeral_format, ..request(false, TableKind::Mbr) });
        deploy(&disk, &layout, false);
        let place = layout.places.iter().find(|place| place.role == Role::Ephemeral).unwrap();
        let opinion = blkid(disk.disk().path(), place.start, place.size);
        for expected in [format!("TYPE={name}"), "LABEL=ephemeral0".to_owned()] {
            assert!(opinion.lines().any(|line| line == expected), "{expected}: {opinion}");
        }
        check(name, &read_at(&disk, place.start, place.size as usize));
    }
}

#[test]
fn loop_d33_nothing_of_the_old_disk_is_left_before_the_table_is_written() {
    let disk = TestDisk::new(DISK, 512);
    deploy(&disk, &plan(&disk, &request(true, TableKind::Gpt)), false);
    let layout = plan(&disk, &request(false, TableKind::Mbr));
    partition_image::prepare(disk.disk(), &layout, false).unwrap();
    assert_eq!(PartitionTable::read(disk.disk()).unwrap().name(), "none");
    for (start, length) in [(0, MIB), (DISK - MIB, MIB)] {
        assert!(read_at(&disk, start, length as usize).iter().all(|byte| *byte == 0));
    }
    partition_image::finish(disk.disk(), &layout, false, None).unwrap();
    assert_eq!(PartitionTable::read(disk.disk()).unwrap().name(), "msdos");
}

#[test]
fn loop_p02_a_preserved_ephemeral_partition_is_there_at_every_moment() {
    let disk = TestDisk::new(DISK, 512);
    let layout = plan(&disk, &request(true, TableKind::Gpt));
    let first = deploy(&disk, &layout, false);
    let ephemeral = layout.places.iter().find(|place| place.role == Role::Ephemeral).unwrap();
    let table = read_at(&disk, 0, 64 * 1024);
    write_at(&disk, ephemeral.start + 5 * MIB, b"precious");
    let before = read_at(&disk, ephemeral.start, ephemeral.size as usize);
    let second = deploy(&disk, &layout, true);
    assert_eq!(read_at(&disk, 0, 64 * 1024), table);
    assert_eq!(read_at(&disk, ephemeral.start, ephemeral.size as usize), before);
    assert_eq!(second.root, first.root);
    assert_ne!(second.esp, first.esp);

    let other = plan(&disk, &Request { ephemeral_mib: 33, ..request(true, TableKind::Gpt) });
    let error = partition_image::prepare(disk.disk(), &other, true).unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. }), "{error}");
    assert_eq!(read_at(&disk, 0, 64 * 1024), table);
}
