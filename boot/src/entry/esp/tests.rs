use super::*;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions};
use std::io::{Cursor, Write};

const X64: u16 = 0x8664;
const IA32: u16 = 0x014c;
const AA64: u16 = 0xaa64;

/// The beginning of a program for firmware.
fn program(code: u16) -> Vec<u8> {
    let mut bytes = vec![0; 0x80];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes.extend(b"PE\0\0");
    bytes.extend(code.to_le_bytes());
    bytes
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn volume(files: &[(&str, Vec<u8>)]) -> Cursor<Vec<u8>> {
    let mut volume = Cursor::new(vec![0; 4 << 20]);
    fatfs::format_volume(&mut volume, FormatVolumeOptions::new()).unwrap();
    volume.set_position(0);
    {
        let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
        for (path, content) in files {
            let mut directory = fat.root_dir();
            let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
            for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
                directory = directory.create_dir(parent).unwrap();
            }
            directory.create_file(name).unwrap().write_all(content).unwrap();
        }
    }
    volume
}

fn found_for(architecture: &str, files: &[(&str, Vec<u8>)]) -> Loaders {
    search(&mut volume(files), Machine::of(architecture, None).unwrap()).unwrap()
}

fn loaders(files: &[(&str, Vec<u8>)]) -> Vec<Loader> {
    found_for("x86_64", files).loaders
}

fn loader(path: &str, label: &str) -> Loader {
    Loader { path: path.to_owned(), label: label.to_owned(), options: String::new() }
}

#[test]
fn f15_a_csv_file_decides() {
    let found = loaders(&[
        ("EFI/BOOT/BOOTX64.EFI", program(X64)),
        ("EFI/debian/shimx64.efi", program(X64)),
        ("EFI/debian/BOOTX64.CSV", utf16("shimx64.efi,debian,,This is the boot entry for debian\n")),
    ]);
    assert_eq!(found, [loader(r"\EFI\debian\shimx64.efi", "debian")]);
}

#[test]
fn a07_a_csv_file_whose_loader_is_not_there_is_passed_over() {
    let found = loaders(&[
        ("EFI/centos/BOOTX64.CSV", utf16("shimx64.efi,CentOS\n")),
        ("EFI/almalinux/BOOTX64.CSV", utf16("SHIMX64.EFI,AlmaLinux\n")),
        ("EFI/almalinux/shimx64.efi", program(X64)),
        ("EFI/BOOT/BOOTX64.EFI", program(X64)),
    ]);
    assert_eq!(found, [loader(r"\EFI\almalinux\shimx64.efi", "AlmaLinux")]);
}

#[test]
fn a07_a_loader_for_another_machine_gets_no_entry() {
    let files = [
        ("EFI/ubuntu/BOOTAA64.CSV", utf16("shimaa64.efi,ubuntu\n")),
        ("EFI/ubuntu/shimaa64.efi", program(AA64)),
        ("EFI/debian/BOOTX64.CSV", utf16("shimx64.efi,debian\n")),
        ("EFI/debian/shimx64.efi", program(X64)),
    ];
    assert_eq!(loaders(&files), [loader(r"\EFI\debian\shimx64.efi", "debian")]);
    let expected = [loader(r"\EFI\ubuntu\shimaa64.efi", "ubuntu")];
    assert_eq!(found_for("aarch64", &files).loaders, expected);
    let files = [
        ("EFI/BOOT/BOOTIA32.EFI", program(IA32)),
        ("EFI/BOOT/BOOTAA64.EFI", program(AA64)),
        ("EFI/BOOT/BOOTX64.EFI", program(X64)),
    ];
    for (architecture, name) in [("x86_64", "BOOTX64"), ("x86", "BOOTIA32"), ("aarch64", "BOOTAA64")] {
        let path = format!(r"\EFI\BOOT\{name}.EFI");
        let found = found_for(architecture, &files);
        assert_eq!(found, Loaders { loaders: vec![loader(&path, "ironic1")], removable: Some(path.clone()) });
    }
    assert_eq!(found_for("riscv64", &files), Loaders { loaders: vec![], removable: None });
}

#[test]
fn a07_a_loader_is_a_program_whatever_it_is_called() {
    let wrong = program(AA64);
    for content in [b"loader".to_vec(), Vec::new(), wrong, vec![0; 4096]] {
        let found = found_for(
            "x86_64",
            &[
                ("EFI/debian/BOOTX64.CSV", utf16("shimx64.efi,debian\n")),
                ("EFI/debian/shimx64.efi", content.clone()),
                ("EFI/BOOT/BOOTX64.EFI", content),
            ],
        );
        assert_eq!(found, Loaders { loaders: vec![], removable: None });
    }
}

#[test]
fn a07_in_a_folder_the_csv_file_for_this_machine_goes_first() {
    let found = loaders(&[
        ("EFI/vendor/BOOT.CSV", utf16("grubx64.efi,any\n")),
        ("EFI/vendor/BOOTX64.CSV", utf16("shimx64.efi,own\n")),
        ("EFI/vendor/grubx64.efi", program(X64)),
        ("EFI/vendor/shimx64.efi", program(X64)),
    ]);
    assert_eq!(found, [loader(r"\EFI\vendor\shimx64.efi", "own")]);
}

#[test]
fn a08_every_line_with_its_options_becomes_an_entry_in_order() {
    let text =
        "shimx64.efi,6.12.0,\\EFI\\Linux\\10b0.efi ,Comment\r\nmissing.efi,gone\r\nshimx64.efi,rescue\r\n";
    let found = loaders(&[
        ("EFI/redhat/BOOTX64.CSV", [vec![0xff, 0xfe], utf16(text)].concat()),
        ("EFI/redhat/shimx64.efi", program(X64)),
    ]);
    let first =
        Loader { options: r"\EFI\Linux\10b0.efi ".into(), ..loader(r"\EFI\redhat\shimx64.efi", "6.12.0") };
    assert_eq!(found, [first, loader(r"\EFI\redhat\shimx64.efi", "rescue")]);
}

#[test]
fn a07_loaders_of_systemd_and_microsoft_get_entries_by_themselves() {
    for (path, expected) in [
        ("EFI/systemd/systemd-bootx64.efi", r"\EFI\systemd\systemd-bootx64.efi"),
        ("EFI/Microsoft/Boot/bootmgfw.efi", r"\EFI\Microsoft\Boot\bootmgfw.efi"),
        ("EFI/debian/grubx64.efi", r"\EFI\debian\grubx64.efi"),
    ] {
        assert_eq!(loaders(&[(path, program(X64))]), [loader(expected, "ironic1")]);
        assert_eq!(loaders(&[(path, program(AA64))]), []);
    }
}

#[test]
fn f17_without_a_csv_the_best_loader_of_each_folder_counts() {
    let found = found_for(
        "aarch64",
        &[
            ("EFI/BOOT/BOOTAA64.EFI", program(AA64)),
            ("EFI/BOOT/grubaa64.efi", program(AA64)),
            ("EFI/BOOT/bootia32.csv", b"x".to_vec()),
            ("EFI/other/GrubAA64.efi", program(AA64)),
            ("EFI/other/mmaa64.efi", program(AA64)),
            ("EFI/debian/grubaa64.efi", program(AA64)),
            ("EFI/debian/shimaa64.efi", program(AA64)),
        ],
    );
    let expected = [
        loader(r"\EFI\debian\shimaa64.efi", "ironic1"),
        loader(r"\EFI\other\GrubAA64.efi", "ironic2"),
        loader(r"\EFI\BOOT\BOOTAA64.EFI", "ironic3"),
    ];
    assert_eq!(found.loaders, expected);
}

#[test]
fn a07_no_partition_fills_the_firmwares_store() {
    let files: Vec<_> = (0..40).map(|number| (format!("EFI/v{number}/shimx64.efi"), program(X64))).collect();
    let files: Vec<_> = files.iter().map(|(path, content)| (path.as_str(), content.clone())).collect();
    assert_eq!(loaders(&files).len(), MOST_LOADERS);
    let csv = utf16(&"shimx64.efi,l\n".repeat(1000));
    let found = loaders(&[("EFI/v/BOOTX64.CSV", csv), ("EFI/v/shimx64.efi", program(X64))]);
    assert_eq!(found.len(), MOST_LOADERS);
}

#[test]
fn an_esp_without_loaders_has_none_and_no_esp_is_an_error() {
    assert_eq!(loaders(&[("readme.txt", b"x".to_vec())]), []);
    let machine = Machine::of("x86_64", None).unwrap();
    assert!(search(&mut Cursor::new(vec![0; 1 << 20]), machine).is_err());
}

#[test]
fn x08_a_folder_without_an_end_ends_the_search() {
    let mut volume = volume(&[("EFI/a", Vec::new())]);
    // The folder is one cluster of free entries, and its own successor.
    let entry = volume.get_ref().windows(11).position(|name| name == b"EFI        ").unwrap();
    let bytes = volume.get_mut();
    let cluster = usize::from(u16::from_le_bytes([bytes[entry + 26], bytes[entry + 27]]));
    let number = |offset: usize| usize::from(u16::from_le_bytes([bytes[offset], bytes[offset + 1]]));
    let (table, sectors) = (number(14) * 512, number(22));
    let clusters_at = table + usize::from(bytes[16]) * sectors * 512 + number(17) * 32;
    let size = usize::from(bytes[13]) * 512;
    bytes[clusters_at + (cluster - 2) * size..][..size].fill(0xe5);
    // Entries of twelve bits; the volume has a cluster of an even number there.
    assert_eq!(cluster % 2, 0);
    let place = table + cluster * 3 / 2;
    bytes[place] = cluster as u8;
    bytes[place + 1] &= 0xf0;
    let error = search(&mut volume, Machine::of("x86_64", None).unwrap()).unwrap_err();
    assert!(error.to_string().contains("has no end"), "{error}");
}
