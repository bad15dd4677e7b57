use super::*;
use crate::io::MemoryDisk;
use crate::table::TableKind;
use crate::table::tests::{new_gpt, new_mbr};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::{Cursor, Write};

fn packed(content: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    STANDARD.encode(encoder.finish().unwrap())
}

fn iso(label: &str) -> Vec<u8> {
    let mut content = vec![0; 40_000];
    content[32769..32774].copy_from_slice(b"CD001");
    content[32808..32840].fill(b' ');
    content[32808..32808 + label.len()].copy_from_slice(label.as_bytes());
    content
}

fn fat(label: &[u8; 11], sector_size: u16) -> Vec<u8> {
    let mut volume = Cursor::new(vec![0; 4 << 20]);
    let options = fatfs::FormatVolumeOptions::new().volume_label(*label).bytes_per_sector(sector_size);
    fatfs::format_volume(&mut volume, options).unwrap();
    volume.into_inner()
}

#[test]
fn iso_and_fat_are_recognised() {
    assert_eq!(ConfigDrive::decode(&packed(&iso("config-2")), MAX_SIZE).unwrap().kind, ContentKind::Iso9660);
    for sector_size in [512, 4096] {
        let drive = ConfigDrive::decode(&packed(&fat(b"CONFIG-2   ", sector_size)), MAX_SIZE).unwrap();
        assert_eq!(drive.kind, ContentKind::Fat { sector_size: u32::from(sector_size) });
    }
}

#[test]
fn decoding_is_lenient_about_foreign_characters() {
    let text = packed(&iso("config-2"));
    let wrapped: String =
        text.as_bytes().chunks(76).map(|line| format!(" {}\r\n", String::from_utf8_lossy(line))).collect();
    assert_eq!(ConfigDrive::decode(&wrapped, MAX_SIZE).unwrap().content, iso("config-2"));
    assert!(ConfigDrive::decode(text.trim_end_matches('='), MAX_SIZE).is_ok());
}

#[test]
fn d10_what_is_no_config_drive_is_refused() {
    for (text, named) in [
        (String::new(), "cannot be unpacked"),
        ("A".to_owned(), "not base64"),
        ("aGVsbG8gd29ybGQ=".to_owned(), "cannot be unpacked"),
        (packed(b"<html>404 Not Found</html>"), "neither ISO 9660 nor FAT"),
        (packed(&[0; 100_000]), "neither ISO 9660 nor FAT"),
        (packed(&[iso("config-2"), vec![0; MAX_SIZE as usize]].concat()), "larger than 64 MiB"),
    ] {
        let error = ConfigDrive::decode(&text, MAX_SIZE).unwrap_err();
        assert_eq!(error.kind().name(), "DeploymentError");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn x32_what_is_no_drive_by_its_beginning_is_not_unpacked_to_its_end() {
    let mut gzip = STANDARD.decode(packed(&[7; 1 << 20])).unwrap();
    gzip.truncate(gzip.len() - 20);
    let error = ConfigDrive::from_download(gzip, MAX_SIZE).unwrap_err().to_string();
    assert!(error.contains("neither ISO 9660 nor FAT"), "{error}");
}

#[test]
fn x43_a_drive_takes_no_more_than_it_is_granted() {
    let content = [iso("config-2"), vec![0; 3 << 20]].concat();
    let text = packed(&content);
    let size = content.len() as u64;
    for bytes in [text.clone().into_bytes(), STANDARD.decode(&text).unwrap(), content] {
        assert_eq!(ConfigDrive::from_download(bytes.clone(), size).unwrap().size(), size);
        let error = ConfigDrive::from_download(bytes, size - 1).unwrap_err().to_string();
        assert!(error.contains("larger than 3 MiB") && error.contains("more memory"), "{error}");
    }
    assert!(ConfigDrive::decode(&text, size - 1).is_err());
}

#[test]
fn d07_a_truncated_drive_is_refused() {
    let text = packed(&iso("config-2"));
    let cut = &text[..text.len() / 8 * 4];
    assert!(ConfigDrive::decode(cut, MAX_SIZE).unwrap_err().to_string().contains("cannot be unpacked"));
}

#[test]
fn d10_a_downloaded_drive_is_told_by_its_content() {
    let iso = iso("config-2");
    let text = packed(&iso).into_bytes();
    let gzip = STANDARD.decode(&text).unwrap();
    for bytes in [text, gzip, iso.clone()] {
        assert_eq!(ConfigDrive::from_download(bytes, MAX_SIZE).unwrap().content, iso);
    }
    for bytes in [b"<html>404 Not Found</html>".to_vec(), Vec::new(), vec![0; 5000], GZIP.to_vec()] {
        assert!(matches!(ConfigDrive::from_download(bytes, MAX_SIZE), Err(Error::InvalidConfigDrive { .. })));
    }
}

#[test]
fn x32_a_download_with_zeros_is_not_taken_for_base64() {
    let mut text = packed(&iso("config-2")).into_bytes();
    text.push(0);
    let error = ConfigDrive::from_download(text, MAX_SIZE).unwrap_err().to_string();
    assert!(error.contains("neither ISO 9660 nor FAT"), "{error}");
}

#[test]
fn addresses_are_told_from_drives() {
    for (text, expected) in [
        (" http://192.0.2.5/drive\n", Some("http://192.0.2.5/drive")),
        ("HTTPS://x", Some("HTTPS://x")),
        ("httpAAAA", None),
        ("H4sIAAAA", None),
        ("", None),
    ] {
        assert_eq!(url(text), expected);
    }
}

proptest! {
    #[test]
    fn decoding_never_panics(text in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = ConfigDrive::decode(&text, MAX_SIZE);
        let _ = ConfigDrive::decode(&packed(&bytes), MAX_SIZE);
        let _ = ConfigDrive::from_download(bytes, MAX_SIZE);
    }
}

const MIB: u64 = 1 << 20;
const DISK: u64 = 96 * MIB;

/// A disk with sectors of this size and a table of this kind with these partitions.
fn disk_with(sector_size: u32, kind: TableKind, places: &[(u32, u64, u64)]) -> MemoryDisk {
    let disk = MemoryDisk::ones(DISK, sector_size);
    crate::wipe::wipe_ends(&disk).unwrap();
    let new = if kind == TableKind::Gpt { new_gpt(places) } else { new_mbr(places) };
    PartitionTable::create(&disk, kind, &new).unwrap();
    disk
}

/// A FAT drive with a file in a folder, made for sectors of this size.
fn fat_with_files(sector_size: u32) -> Vec<u8> {
    let volume = MemoryDisk::zeros(4 << 20, sector_size);
    let mut view = DiskView::whole(&volume);
    filesystem::make_vfat(&mut view, "CONFIG-2", sector_size).unwrap();
    filesystem::fill_vfat(&mut view, |target| {
        target.root_dir().create_dir("openstack")?;
        target.root_dir().create_file("openstack/meta_data.json")?.write_all(b"{}")
    })
    .unwrap();
    volume.content(0, 4 << 20)
}

#[test]
fn d11_d12_a_drive_gets_a_partition_at_the_end_and_finds_it_again_on_sectors_of_any_size() {
    for (sector_size, kind, own) in [512, 4096].into_iter().flat_map(|sector_size| {
        [TableKind::Gpt, TableKind::Mbr]
            .into_iter()
            .flat_map(move |kind| [512, 4096].map(|own| (sector_size, kind, own)))
    }) {
        let disk = disk_with(sector_size, kind, &[(1, MIB, 8 * MIB)]);
        let content = fat_with_files(own);
        let drive = ConfigDrive::decode(&packed(&content), MAX_SIZE).unwrap();
        let partition = drive.write_to(&disk).unwrap();
        assert_eq!((partition.number, partition.size), (2, MAX_SIZE));
        let found = disk.content(partition.start, content.len());
        if sector_size <= own {
            assert_eq!(found, content, "as it came");
            let behind = disk.content(partition.start + content.len() as u64, 64 << 10);
            assert!(behind.iter().all(|byte| *byte == 0), "old content is left behind the drive");
        } else {
            assert_eq!(u32::from(u16::from_le_bytes([found[11], found[12]])), sector_size, "made anew");
        }
        let before = disk.content(MIB, 8 << 20);
        assert!(before.iter().all(|byte| *byte == 0xff), "the partition of the image was written");
        assert_eq!(drive.write_to(&disk).unwrap(), partition, "a second deployment finds it");
    }
}

#[test]
fn d11_a_drive_that_is_made_anew_costs_few_requests() {
    let volume = MemoryDisk::zeros(4 << 20, 512);
    let mut view = DiskView::whole(&volume);
    filesystem::make_vfat(&mut view, "CONFIG-2", 512).unwrap();
    let user_data = vec![7; 2 << 20];
    filesystem::fill_vfat(&mut view, |target| {
        target.root_dir().create_file("user_data")?.write_all(&user_data)
    })
    .unwrap();
    let drive = ConfigDrive::decode(&packed(&volume.content(0, 4 << 20)), MAX_SIZE).unwrap();
    let disk = disk_with(4096, TableKind::Gpt, &[(1, MIB, 8 * MIB)]);
    let before = disk.requests();
    drive.write_to(&disk).unwrap();
    // Of 64 KiB each; table and content are written in turns.
    let requests = disk.requests() - before;
    assert!(requests < 250, "{requests}");
}

#[test]
fn a_labelled_partition_of_the_image_is_used_and_two_are_an_error() {
    let places = [(1, MIB, 8 * MIB), (2, 10 * MIB, 8 * MIB)];
    let disk = disk_with(512, TableKind::Gpt, &places);
    let content = fat_with_files(512);
    let drive = ConfigDrive::decode(&packed(&content), MAX_SIZE).unwrap();
    disk.put(10 * MIB, &content);
    assert_eq!(drive.write_to(&disk).unwrap().number, 2);
    disk.put(MIB, &content);
    let error = drive.write_to(&disk).unwrap_err().to_string();
    assert!(error.contains("partitions 1 and 2 are both labelled config-2"), "{error}");
}

#[test]
fn a_disk_without_place_is_refused_and_not_touched() {
    let four = [1, 2, 3, 4].map(|number| (number, u64::from(number) * MIB, MIB));
    for (kind, places, named) in [
        (TableKind::Gpt, &[(1, MIB, 80 * MIB)][..], "64 MiB are needed"),
        (TableKind::Mbr, &[(1, MIB, 80 * MIB)], "64 MiB are needed"),
        (TableKind::Mbr, &four, "four primary partitions"),
        (TableKind::Gpt, &[], "no partition table"),
    ] {
        let disk = disk_with(512, kind, places);
        if places.is_empty() {
            crate::wipe::wipe_ends(&disk).unwrap();
        }
        let ends = || [0, 16 * MIB, DISK - MIB].map(|offset| disk.content(offset, 1 << 20));
        let before = ends();
        let drive = ConfigDrive::decode(&packed(&fat_with_files(512)), MAX_SIZE).unwrap();
        let error = drive.write_to(&disk).unwrap_err();
        assert_eq!(error.kind().name(), "DeploymentError");
        assert!(error.to_string().contains(named), "{error}");
        assert!(ends() == before, "{named}: something was written");
    }
}

#[test]
fn a_sector_that_cannot_be_written_fails_the_drive() {
    let drive = ConfigDrive::decode(&packed(&fat_with_files(512)), MAX_SIZE).unwrap();
    let place = drive.write_to(&disk_with(512, TableKind::Gpt, &[(1, MIB, 8 * MIB)])).unwrap().start;
    for broken in [0, place, place + 2 * MIB, DISK - 512] {
        let disk = disk_with(512, TableKind::Gpt, &[(1, MIB, 8 * MIB)]).broken_at(broken);
        assert!(matches!(drive.write_to(&disk), Err(Error::Device { .. })), "{broken}");
    }
}
