//! Which disks are media of this boot.

use super::*;
use crate::fat::volumes::formatted;
use crate::guard::fake_machine::FakeMachine;
use crate::guard::{Criteria, KeepReason, Obstacle};
use farrier_protocol::lookup::Node;
use serde_json::json;
use std::io::Write;

const FROM_ISO: &str = "farrier-boot-medium=iso";
const VMEDIA: &str = "boot_method=vmedia";

/// What lies at 32 KiB of a volume of ISO 9660 with this label, made by this program.
fn descriptor(label: &str, application: &str) -> Vec<u8> {
    let mut bytes = vec![b' '; 2048];
    bytes[..8].copy_from_slice(b"\x01CD001\x01\0");
    bytes[40..40 + label.len()].copy_from_slice(label.as_bytes());
    bytes[574..574 + application.len()].copy_from_slice(application.as_bytes());
    bytes
}

/// The first sector of a FAT volume with this label.
fn floppy(label: &[u8; 11]) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[43..54].copy_from_slice(label);
    sector[54..59].copy_from_slice(b"FAT16");
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

const USB: &str = "pci0/usb1/1-1/1-1:1.0/host9/target9:0:0/9:0:0:0/block";
const SATA: &str = "pci0/ata1/host0/target0:0:0/0:0:0:0/block";

/// A disk: bus, name, size in GiB, and what is at this offset.
type Disk<'a> = (&'a str, &'a str, u64, (u64, &'a [u8]));

/// A machine with these disks, and what is known of its media.
fn machine(disks: &[Disk<'_>], line: &str) -> (FakeMachine, BootMedia) {
    let machine = FakeMachine::new();
    for (bus, name, gib, content) in disks {
        machine.add_at(bus, name, gib << 30, &[("ro", "1\n"), ("device/type", "0\n")], &[*content]);
    }
    let media = BootMedia::find(machine.sysfs.path(), &kernel_line::parse(line), &Signs::default());
    (machine, media)
}

fn found(disks: &[Disk<'_>], line: &str) -> Vec<Option<BootMedium>> {
    let (machine, media) = machine(disks, line);
    disks.iter().map(|(_, name, ..)| media.medium(&machine.device(name))).collect()
}

#[test]
fn a06_g02_a_medium_is_on_usb_and_this_boot_came_from_one() {
    let ours = descriptor("FARRIER", "FARRIER-IMAGE");
    let boot_iso = descriptor("VMEDIA_BOOT_ISO", "");
    let (iso, boot, parameters) = ((32768, &ours[..]), (32768, &boot_iso[..]), floppy(b"IR-VFD-DEV "));
    let parameters = (0, &parameters[..]);
    let ramdisk = Some(BootMedium::Ramdisk);
    for (disks, line, expected) in [
        // A stick of any size, on the way from which the kernel came.
        (&[(USB, "sda", 8, iso), (SATA, "sdb", 480, (0, &[][..]))][..], FROM_ISO, &[ramdisk, None][..]),
        (&[(USB, "sda", 8, iso)], "ipa-api-url=http://x", &[None]),
        (&[(USB, "sda", 8, iso)], "farrier-boot-medium=other", &[None]),
        // A tenant that copies the image to an internal disk gains nothing.
        (&[(SATA, "sda", 8, iso), (USB, "sdb", 8, iso)], FROM_ISO, &[None, ramdisk]),
        (&[(SATA, "sda", 8, iso)], FROM_ISO, &[None]),
        // Virtual media that appear as disks.
        (
            &[(USB, "sda", 1, boot), (USB, "sdb", 1, parameters)],
            VMEDIA,
            &[ramdisk, Some(BootMedium::Parameters)],
        ),
        (&[(SATA, "sda", 1, boot), (SATA, "sdb", 1, parameters)], VMEDIA, &[None, None]),
        // No BMC has a virtual floppy of that size.
        (&[(USB, "sda", 8, parameters), (USB, "sdb", 8, boot)], VMEDIA, &[None, None]),
        (&[(USB, "sda", 1, parameters)], FROM_ISO, &[None]),
        // The first one is not true: none is.
        (&[(USB, "sda", 8, iso), (USB, "sdb", 16, iso)], FROM_ISO, &[Some(BootMedium::Doubtful); 2]),
    ] {
        assert_eq!(found(disks, line), expected, "{line}");
    }
}

#[test]
fn a06_a_disk_that_looks_like_the_medium_in_an_optical_drive_is_none() {
    let ours = descriptor("FARRIER", "FARRIER-IMAGE");
    let machine = FakeMachine::new();
    machine.add_at(USB, "sda", 8 << 30, &[("device/type", "0\n")], &[(32768, &ours)]);
    machine.add_at("pci0/ata2/host1/block", "sr0", 1 << 30, &[("device/type", "5\n")], &[(32768, &ours)]);
    let media = BootMedia::find(machine.sysfs.path(), &kernel_line::parse(FROM_ISO), &Signs::default());
    assert_eq!(media.medium(&machine.device("sda")), None);
}

#[test]
fn a06_the_medium_is_not_the_root_disk_unless_hints_mean_it_alone_and_never_erased() {
    let ours = descriptor("FARRIER", "FARRIER-IMAGE");
    let disks = [(USB, "sda", 8, (32768, &ours[..])), (SATA, "sdb", 480, (0, &[][..]))];
    let (machine, media) = machine(&disks, FROM_ISO);
    std::fs::write(machine.device("sda").directory().join("serial"), "STICK").unwrap();
    let devices = ["sda", "sdb"].map(|name| machine.device(name));
    let name = devices[0].disk.name.clone();
    let excluded = |hints: serde_json::Value| {
        let properties = serde_json::from_value(json!({"root_device": hints})).unwrap();
        let mut criteria = Criteria::of(&Node { properties, ..Node::default() }).unwrap();
        criteria.skip_list.media = media.clone();
        let chosen = criteria.choose(&devices).map(|device| machine.shortened(&device.disk.name));
        (criteria.exclusion(&devices[0]), chosen)
    };
    let medium = Some(Obstacle::BootMedium(BootMedium::Ramdisk));
    for (hints, expected, chosen) in [
        (json!({}), medium.clone(), Some("sdb")),
        (json!({"size": ">= 4"}), medium.clone(), Some("sdb")),
        // The name is that of the first disk, which may be any.
        (json!({"name": name}), medium.clone(), None),
        (json!({"serial": "STICK"}), None, Some("sda")),
        (json!({"serial": "s!= OTHER"}), medium, Some("sdb")),
    ] {
        assert_eq!(excluded(hints.clone()), (expected, chosen.map(str::to_owned)), "{hints}");
    }

    let mut skip_list = crate::guard::SkipList::of(&Node::default()).unwrap();
    skip_list.media = media;
    // A medium that cannot be written is kept as one, and no failure.
    assert_eq!(skip_list.reason(&devices[0]), Some(KeepReason::BootMedium(BootMedium::Ramdisk)));
    assert!(skip_list.excludes(&devices[0]) && skip_list.excludes_from_raid(&devices[0]));
    assert!(!skip_list.excludes(&devices[1]) && !skip_list.excludes_from_raid(&devices[1]));
}

#[test]
fn a06_a_partition_is_that_of_the_loader_by_a_variable_that_no_reboot_outlives() {
    let folder = tempfile::tempdir().unwrap();
    let variables = EfiVariables::at(folder.path());
    assert_eq!(partition_in(&variables), None);
    let text: Vec<u8> = "0A4C41CF-01\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (attributes, expected) in [(6_u32, Some("0a4c41cf-01")), (7, None)] {
        let content = [&attributes.to_le_bytes()[..], &text].concat();
        std::fs::write(folder.path().join(LOADER_PARTITION), content).unwrap();
        assert_eq!(partition_in(&variables).as_deref(), expected);
    }
    let mut table = vec![0; 512];
    table[440..444].copy_from_slice(&0x0a4c_41cf_u32.to_le_bytes());
    table[450] = 0x0c;
    table[454..458].copy_from_slice(&2048_u32.to_le_bytes());
    table[458..462].copy_from_slice(&8192_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let machine = FakeMachine::new();
    machine.add_at(USB, "sda", 8 << 30, &[], &[(0, &table)]);
    machine.add_at(SATA, "sdb", 8 << 30, &[], &[(0, &table)]);
    let media = |partition: &str| {
        let signs = Signs { loader_partition: Some(partition.to_owned()), ventoy: None };
        BootMedia::find(machine.sysfs.path(), &Parameters::new(), &signs)
    };
    assert_eq!(media("0a4c41cf-01").medium(&machine.device("sda")), Some(BootMedium::Ramdisk));
    assert_eq!(media("0a4c41cf-01").medium(&machine.device("sdb")), None);
    assert_eq!(media("0a4c41cf-02").medium(&machine.device("sda")), None);
}

/// A FAT volume with this label and this text in a file.
fn copied(label: Option<&[u8; 11]>, path: &str, text: &str) -> Vec<u8> {
    let mut volume = formatted(4 << 20, fatfs::FatType::Fat16);
    {
        let fat = fatfs::FileSystem::new(&mut volume, fatfs::FsOptions::new()).unwrap();
        for (end, _) in path.match_indices('/') {
            fat.root_dir().create_dir(&path[..end]).unwrap();
        }
        fat.root_dir().create_file(path).unwrap().write_all(text.as_bytes()).unwrap();
    }
    let mut bytes = volume.into_inner();
    if let Some(label) = label {
        bytes[43..54].copy_from_slice(label);
    }
    bytes
}

#[test]
fn a06_a_stick_with_the_iso_or_its_files_on_it_is_the_medium_where_no_iso_is() {
    let linux = "linux /vmlinuz farrier-boot-medium=iso console=ttyS0\n";
    let files = copied(None, "boot/grub/grub.cfg", linux);
    let entry = copied(None, "loader/entries/farrier.conf", linux);
    let other = copied(None, "boot/grub/grub.cfg", "linux /vmlinuz quiet\n");
    let text = copied(None, "notes.txt", linux);
    let ventoy = copied(Some(b"VTOYEFI    "), "readme.txt", "");
    let ours = descriptor("FARRIER", "FARRIER-IMAGE");
    let ramdisk = Some(BootMedium::Ramdisk);
    for (disks, line, expected) in [
        (
            &[(USB, "sda", 8, (0, &files[..])), (SATA, "sdb", 480, (0, &files[..]))][..],
            FROM_ISO,
            &[ramdisk, None][..],
        ),
        (&[(USB, "sda", 8, (0, &entry[..]))], FROM_ISO, &[ramdisk]),
        (&[(USB, "sda", 8, (0, &ventoy[..]))], FROM_ISO, &[ramdisk]),
        // What is no boot from a medium has none.
        (&[(USB, "sda", 8, (0, &files[..]))], "ipa-api-url=http://x", &[None]),
        (&[(USB, "sda", 8, (0, &files[..]))], VMEDIA, &[None]),
        // Other sticks, and what nobody boots.
        (&[(USB, "sda", 8, (0, &other[..]))], FROM_ISO, &[None]),
        (&[(USB, "sda", 8, (0, &text[..]))], FROM_ISO, &[None]),
        // The ISO itself says more.
        (
            &[(USB, "sda", 8, (0, &files[..])), (USB, "sdb", 8, (32768, &ours[..]))],
            FROM_ISO,
            &[None, ramdisk],
        ),
        // Either may be it.
        (
            &[(USB, "sda", 8, (0, &files[..])), (USB, "sdb", 8, (0, &ventoy[..]))],
            FROM_ISO,
            &[Some(BootMedium::Doubtful); 2],
        ),
    ] {
        assert_eq!(found(disks, line), expected, "{line}");
    }
}

#[test]
fn a06_a_stick_of_ventoy_is_known_by_what_ventoy_says() {
    let (sector, _) = ventoy::tests::stick();
    let machine = FakeMachine::new();
    machine.add_at(USB, "sda", 8 << 30, &[], &[(0, &sector)]);
    machine.add_at(USB, "sdb", 8 << 30, &[], &[(0, &[7; 512])]);
    machine.add_at(SATA, "sdc", 8 << 30, &[], &[(0, &sector)]);
    let signs = Signs { loader_partition: None, ventoy: Some(ventoy::tests::disk()) };
    let media = BootMedia::find(machine.sysfs.path(), &Parameters::new(), &signs);
    let found = ["sda", "sdb", "sdc"].map(|name| media.medium(&machine.device(name)));
    assert_eq!(found, [Some(BootMedium::Ramdisk), None, None]);
}
