use super::*;
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
