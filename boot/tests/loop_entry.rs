//! Boot entries from a whole disk with an EFI system partition.

#![allow(clippy::unwrap_used)]

#[path = "../../disk/tests/support/fat32.rs"]
mod fat32;
#[path = "../../disk/tests/support/mod.rs"]
mod support;

use farrier_boot::entry::{BootEntry, StartedBy, install_on};
use farrier_boot::firmware::Firmware;
use farrier_boot::machine::Machine;
use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use farrier_disk::table::PartitionTable;
use farrier_linux::efivars::{EfiVariables, PERSISTENT, Variable};
use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::Command;
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
        debian.create_file("shimx64.efi").unwrap().write_all(&program()).unwrap();
        let csv: Vec<u8> = csv.encode_utf16().flat_map(u16::to_le_bytes).collect();
        debian.create_file("BOOTX64.CSV").unwrap().write_all(&csv).unwrap();
    }
    volume.unmount().unwrap();
    esp.flush().unwrap();
}

/// The beginning of a program for 64-bit firmware of the PC.
fn program() -> Vec<u8> {
    let mut bytes = vec![0; 0x80];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes.extend(b"PE\0\0\x64\x86");
    bytes
}

fn firmware(variables: &Path) -> Firmware {
    let machine = Machine::of("x86_64", None).unwrap();
    Firmware { machine, variables: Some(EfiVariables::at(variables)) }
}

fn entries(disk: &TestDisk, variables: &Path) -> Vec<BootEntry> {
    match install_on(disk.disk(), &firmware(variables)).unwrap() {
        Some(StartedBy::Entries(entries)) => entries,
        other => panic!("{other:?}"),
    }
}

#[test]
fn loop_f24_an_entry_is_made_for_the_loader_on_the_disk() {
    let disk = TestDisk::new(32 * MIB, 512);
    write_image(&disk, "shimx64.efi,debian,,text\n");
    let directory = tempfile::tempdir().unwrap();
    let variables = EfiVariables::at(directory.path());
    for _ in 0..2 {
        let entries = entries(&disk, directory.path());
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
    entries(&disk, directory.path());
    assert!(content() == before);
}

#[test]
fn loop_a_disk_without_an_esp_is_named() {
    let disk = TestDisk::new(32 * MIB, 512);
    let directory = tempfile::tempdir().unwrap();
    let error = install_on(disk.disk(), &firmware(directory.path())).unwrap_err();
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
    let error = install_on(disk.disk(), &firmware(directory.path())).unwrap_err().to_string();
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
    let entries = entries(&disk, directory.path());
    assert_eq!(entries[0].loader, r"\EFI\debian\shimx64.efi");
}

/// A file system in memory that stands for the variable store of the firmware.
struct Store(tempfile::TempDir);

impl Store {
    fn mount(options: &str) -> Self {
        let store = Self(tempfile::tempdir().unwrap());
        store.run("mount", &["-t", "tmpfs", "-o", options, "tmpfs"]);
        store
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        assert!(
            Command::new(program).args(arguments).arg(self.0.path()).status().unwrap().success(),
            "{program}"
        );
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.run("umount", &["--lazy"]);
    }
}

/// An entry with this label, of a medium.
fn old_entry(label: &str) -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 0, 4, 0];
    bytes.extend(label.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    bytes.extend([4, 1, 4, 0]);
    bytes
}

fn name(number: u16) -> String {
    format!("Boot{number:04X}-8be4df61-93ca-11d2-aa0d-00e098032b8c")
}

#[test]
fn loop_a09_variables_that_nothing_can_write_leave_the_removable_path() {
    let disk = TestDisk::new(32 * MIB, 512);
    write_image(&disk, "shimx64.efi,debian,,text\n");
    let store = Store::mount("rw");
    std::fs::write(store.0.path().join(name(0)), [7, 0, 0, 0, 1]).unwrap();
    store.run("mount", &["-o", "remount,ro"]);
    let error = install_on(disk.disk(), &firmware(store.0.path())).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidImage");
    assert!(error.to_string().contains("no loader at EFI/BOOT/BOOTX64.EFI"), "{error}");
    put(&disk, "EFI/BOOT/BOOTX64.EFI", &program());
    let started_by = install_on(disk.disk(), &firmware(store.0.path())).unwrap();
    assert_eq!(started_by, Some(StartedBy::RemovablePath(r"\EFI\BOOT\BOOTX64.EFI".to_owned())));
}

#[test]
fn loop_a09_a_full_store_is_an_error_and_one_that_takes_one_entry_has_it() {
    let disk = TestDisk::new(32 * MIB, 512);
    write_image(&disk, "shimx64.efi,one,,\nshimx64.efi,two,,\n");
    // One entry and the order: the store counts pages and files.
    let store = Store::mount("nr_inodes=4,size=1m");
    std::fs::write(store.0.path().join("Other-guid"), [7, 0, 0, 0, 1]).unwrap();
    let variables = EfiVariables::at(store.0.path());
    let order = Variable { attributes: PERSISTENT, data: vec![] };
    variables.write("BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c", &order).unwrap();
    let created = entries(&disk, store.0.path());
    assert_eq!(created.iter().map(|entry| entry.label.as_str()).collect::<Vec<_>>(), ["one"]);
    std::fs::remove_file(store.0.path().join(name(0))).unwrap();
    std::fs::write(store.0.path().join("Another-guid"), [7, 0, 0, 0, 1]).unwrap();
    let error = install_on(disk.disk(), &firmware(store.0.path())).unwrap_err();
    assert_eq!(error.kind().name(), "DeploymentError");
    assert!(error.to_string().contains("No space left") && error.to_string().contains(&name(0)), "{error}");
}

#[test]
fn loop_a09_an_entry_that_cannot_be_deleted_takes_no_other_with_it() {
    let disk = TestDisk::new(32 * MIB, 512);
    write_image(&disk, "shimx64.efi,debian,,text\n");
    let store = Store::mount("rw");
    let variables = EfiVariables::at(store.0.path());
    for number in [0, 1] {
        let variable = Variable { attributes: PERSISTENT, data: old_entry("debian") };
        variables.write(&name(number), &variable).unwrap();
    }
    // What is mounted on is not removed.
    let stuck = store.0.path().join(name(0));
    assert!(Command::new("mount").arg("--bind").args([&stuck, &stuck]).status().unwrap().success());
    let created = entries(&disk, store.0.path());
    assert_eq!(created.iter().map(|entry| entry.number).collect::<Vec<_>>(), [1], "its number is free again");
    let order = variables.read("BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c").unwrap().unwrap();
    assert_eq!(order.data, [1, 0]);
    let error = farrier_boot::entry::clean::remove(
        &farrier_boot::entry::clean::Patterns::parse(["."]).unwrap(),
        &variables,
    );
    assert!(error.unwrap_err().to_string().contains(&name(0)));
    assert!(!store.0.path().join(name(1)).exists(), "the other entry must be removed");
    assert!(Command::new("umount").arg(&stuck).status().unwrap().success());
}

#[test]
fn loop_a21_loaders_are_found_on_a_small_fat32_with_sectors_of_either_size() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("esp");
    for (sector_size, sectors) in [(512, "8"), (512, "64"), (4096, "1")] {
        std::fs::File::create(&image).unwrap().set_len(64 * MIB).unwrap();
        let size = sector_size.to_string();
        let mut format = Command::new("mkfs.vfat");
        format.args(["-F", "32", "-S", &size, "-s", sectors]).arg(&image);
        assert!(format.output().unwrap().status.success());
        let mut esp = std::fs::read(&image).unwrap();
        fat32::put(&mut esp, &[b"EFI        ", b"BOOT       "], b"BOOTX64 EFI", &program());
        let disk = TestDisk::new(80 * MIB, sector_size);
        let block_size = gpt::disk::LogicalBlockSize::try_from(u64::from(sector_size)).unwrap();
        let config = gpt::GptConfig::new().writable(true).logical_block_size(block_size);
        let mut table = config.create_from_device(DiskView::whole(disk.disk()), None).unwrap();
        table.update_partitions(BTreeMap::new()).unwrap();
        let start = MIB / u64::from(sector_size);
        table.add_partition("esp", 64 * MIB, gpt::partition_types::EFI, 0, Some(start)).unwrap();
        let mut view = table.write().unwrap();
        gpt::mbr::ProtectiveMBR::with_lb_size(u32::MAX).overwrite_lba0(&mut view).unwrap();
        view.flush().unwrap();
        let partition = PartitionTable::read(disk.disk()).unwrap().esp().unwrap().clone();
        let mut view = DiskView::range(disk.disk(), partition.start, partition.size);
        view.write_all(&esp).unwrap();
        view.flush().unwrap();
        let variables = tempfile::tempdir().unwrap();
        let found = entries(&disk, variables.path());
        assert_eq!(found[0].loader, r"\EFI\BOOT\BOOTX64.EFI", "{sector_size} {sectors}");
    }
}

/// Adds a file to the EFI system partition.
fn put(disk: &TestDisk, path: &str, content: &[u8]) {
    let mut esp = DiskView::range(disk.disk(), MIB, 8 * MIB);
    let volume = fatfs::FileSystem::new(&mut esp, fatfs::FsOptions::new()).unwrap();
    {
        let (folder, name) = path.rsplit_once('/').unwrap();
        let folder = volume.root_dir().create_dir(folder).unwrap();
        folder.create_file(name).unwrap().write_all(content).unwrap();
    }
    volume.unmount().unwrap();
    esp.flush().unwrap();
}
