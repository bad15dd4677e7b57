//! Boot entries from a whole disk with an EFI system partition.

#![allow(clippy::unwrap_used)]

#[path = "../../disk/tests/support/mod.rs"]
mod support;

use farrier_boot::entry::install_on;
use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use farrier_linux::efivars::EfiVariables;
use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use support::TestDisk;

const MIB: u64 = 1 << 20;

fn write_image(disk: &TestDisk, csv: &str) {
    let mut table =
        gpt::GptConfig::new().writable(true).create_from_device(DiskView::whole(disk.disk()), None).unwrap();
    table.update_partitions(BTreeMap::new()).unwrap();
    table.add_partition("esp", 8 * MIB, gpt::partition_types::EFI, 0, Some(2048)).unwrap();
    let mut view = table.write().unwrap();
    // Without it nobody believes a GPT.
    gpt::mbr::ProtectiveMBR::with_lb_size(u32::MAX).overwrite_lba0(&mut view).unwrap();
    view.flush().unwrap();
    write_esp(disk, csv);
}

fn write_esp(disk: &TestDisk, csv: &str) {
    let mut esp = DiskView::range(disk.disk(), MIB, 8 * MIB);
    fatfs::format_volume(&mut esp, fatfs::FormatVolumeOptions::new()).unwrap();
    esp.rewind().unwrap();
    let volume = fatfs::FileSystem::new(&mut esp, fatfs::FsOptions::new()).unwrap();
    {
        let debian = volume.root_dir().create_dir("EFI").unwrap().create_dir("debian").unwrap();
        debian.create_file("shimx64.efi").unwrap().write_all(b"loader").unwrap();
        let csv: Vec<u8> = csv.encode_utf16().flat_map(u16::to_le_bytes).collect();
        debian.create_file("BOOTX64.CSV").unwrap().write_all(&csv).unwrap();
    }
    volume.unmount().unwrap();
    esp.flush().unwrap();
}

#[test]
fn loop_f24_an_entry_is_made_for_the_loader_on_the_disk() {
    let disk = TestDisk::new(32 * MIB, 512);
    write_image(&disk, "shimx64.efi,debian,,text\n");
    let directory = tempfile::tempdir().unwrap();
    let variables = EfiVariables::at(directory.path());
    for _ in 0..2 {
        let entries = install_on(disk.disk(), &variables).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].number, entries[0].label.as_str()), (0, "debian"));
        assert_eq!(entries[0].loader, r"\EFI\debian\shimx64.efi");
    }
    let names = variables.names().unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn loop_d29_what_the_image_brings_for_the_firmware_stays_as_it_is() {
    let disk = TestDisk::new(32 * MIB, 512);
    write_image(&disk, "shimx64.efi,debian,,text\n");
    let content = || {
        let mut bytes = Vec::new();
        DiskView::whole(disk.disk()).read_to_end(&mut bytes).unwrap();
        bytes
    };
    let before = content();
    let directory = tempfile::tempdir().unwrap();
    install_on(disk.disk(), &EfiVariables::at(directory.path())).unwrap();
    assert!(content() == before);
}

#[test]
fn loop_a_disk_without_an_esp_is_named() {
    let disk = TestDisk::new(32 * MIB, 512);
    let directory = tempfile::tempdir().unwrap();
    let error = install_on(disk.disk(), &EfiVariables::at(directory.path())).unwrap_err();
    assert_eq!(error.kind().name(), "DeviceNotFound");
    assert!(error.to_string().contains(disk.disk().path().to_str().unwrap()), "{error}");
}

#[test]
fn loop_f21_an_image_that_boots_by_bios_only_is_told_so() {
    let disk = TestDisk::new(32 * MIB, 512);
    let mut view = DiskView::whole(disk.disk());
    view.write_all(&[0xeb, 0x63, 0x90]).unwrap();
    view.flush().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let error = install_on(disk.disk(), &EfiVariables::at(directory.path())).unwrap_err().to_string();
    assert!(error.contains("boots by BIOS only, and the machine runs in UEFI mode"), "{error}");
}

#[test]
fn loop_f20_a_partition_flagged_boot_is_searched_for_loaders() {
    let disk = TestDisk::new(32 * MIB, 512);
    let mut table = mbrman::MBR::new_from(&mut DiskView::whole(disk.disk()), 512, [1, 2, 3, 4]).unwrap();
    table[1] = mbrman::MBRPartitionEntry {
        boot: mbrman::BOOT_ACTIVE,
        sys: 0x0c,
        starting_lba: 2048,
        sectors: 16384,
        ..mbrman::MBRPartitionEntry::empty()
    };
    let mut view = DiskView::whole(disk.disk());
    table.write_into(&mut view).unwrap();
    view.flush().unwrap();
    write_esp(&disk, "shimx64.efi,debian,,text\n");
    let directory = tempfile::tempdir().unwrap();
    let entries = install_on(disk.disk(), &EfiVariables::at(directory.path())).unwrap();
    assert_eq!(entries[0].loader, r"\EFI\debian\shimx64.efi");
}
