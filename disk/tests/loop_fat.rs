//! FAT as mkfs.vfat and mtools write it, with every width, sector, cluster and root folder that Linux mounts.

#![allow(clippy::unwrap_used)]

#[path = "support/fat32.rs"]
mod fat32;

use farrier_disk::fat::Fat;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;
/// The content of the volume, which is larger than the largest cluster.
static LOADER: [u8; 200_000] = [7; 200_000];

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().unwrap();
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fills the volume as mtools do, which has rules of its own; false when these refuse the volume.
fn fill(folder: &Path, image: &str) -> bool {
    let loader = folder.join("loader");
    fs::write(&loader, LOADER).unwrap();
    let loader = loader.to_str().unwrap();
    let make = |path: &str| run("mmd", &["-i", image, path]).is_some();
    let copy = |path: &str| run("mcopy", &["-i", image, loader, path]).is_some();
    make("::EFI") && make("::EFI/BOOT") && copy("::EFI/BOOT/BOOTX64.EFI") && copy("::EFI/a long Name.efi")
}

fn require_read(image: &str, what: &str) {
    let known = run("blkid", &["-p", "-o", "export", image]).unwrap_or_else(|| panic!("blkid: {what}"));
    assert!(known.contains("TYPE=vfat"), "{what}: {known}");
    let mut fat = Fat::open(File::open(image).unwrap()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let entries = fat.entries(16, &mut |_, error| Err(error)).unwrap();
    let paths: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["EFI", "EFI/BOOT", "EFI/BOOT/BOOTX64.EFI", "EFI/a long Name.efi"], "{what}");
    for file in entries.iter().filter(|entry| !entry.is_folder) {
        let mut content = Vec::new();
        fat.read(file).read_to_end(&mut content).unwrap();
        assert!(content == LOADER, "{what}: {}", file.path);
    }
    assert_eq!(fat.label().unwrap(), Some(*b"MY ESP     "), "{what}");
    assert_eq!(fat.identifier(), 0x12ab_34cd, "{what}");
}

#[test]
fn loop_a21_whatever_mkfs_makes_is_read_as_blkid_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let image = image.to_str().unwrap();
    let mut read = 0;
    for mebibytes in [4, 40, 100] {
        for width in ["12", "16", "32"] {
            for sector_size in ["512", "2048", "4096"] {
                for sectors in ["1", "8", "128"] {
                    for more in [&["-r", "256"][..], &["-f", "1", "-R", "40"], &["-f", "3", "-a"]] {
                        File::create(image).unwrap().set_len(mebibytes * MIB).unwrap();
                        let options =
                            ["-F", width, "-S", sector_size, "-s", sectors, "-n", "MY ESP", "-i", "12ab34cd"];
                        let arguments = [&options[..], more, &[image]].concat();
                        if run("mkfs.vfat", &arguments).is_some() && fill(folder.path(), image) {
                            require_read(image, &format!("{mebibytes} MiB, {arguments:?}"));
                            read += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(read >= 50, "{read} volumes were made and filled");
}

#[test]
fn loop_a21_whatever_mtools_make_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let image = image.to_str().unwrap();
    for (kibibytes, more) in [
        ("1440", &[][..]),
        ("2880", &[]),
        ("65536", &["-F", "-c", "1"]),
        ("65536", &["-c", "64"]),
        ("65536", &["-r", "3"]),
        ("262144", &["-F", "-M", "4096"]),
    ] {
        let _ = fs::remove_file(image);
        let sectors = (kibibytes.parse::<u64>().unwrap() * 2).to_string();
        let options =
            ["-i", image, "-C", "-T", &sectors, "-h", "2", "-s", "18", "-v", "MY ESP", "-N", "12ab34cd"];
        let arguments = [&options[..], more, &["::"]].concat();
        assert!(run("mformat", &arguments).is_some(), "{arguments:?}");
        assert!(fill(folder.path(), image), "{arguments:?}");
        require_read(image, &format!("{arguments:?}"));
    }
}

#[test]
fn loop_a21_fat32_with_few_clusters_is_read_as_blkid_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let path = image.to_str().unwrap();
    let mut read = 0;
    for mebibytes in [33, 64, 100, 260] {
        for sector_size in ["512", "1024", "2048", "4096"] {
            for sectors in ["1", "8", "64", "128"] {
                File::create(&image).unwrap().set_len(mebibytes * MIB).unwrap();
                let options =
                    ["-F", "32", "-S", sector_size, "-s", sectors, "-n", "MY ESP", "-i", "12ab34cd", path];
                let what = format!("{mebibytes} MiB, {options:?}");
                if run("mkfs.vfat", &options).is_none() {
                    continue;
                }
                let mut volume = fs::read(&image).unwrap();
                fat32::put(&mut volume, &[b"EFI        ", b"BOOT       "], b"BOOTX64 EFI", &LOADER);
                fs::write(&image, &volume).unwrap();
                let checked = Command::new("fsck.vfat").args(["-n", "-l", path]).output().unwrap().stdout;
                let checked = String::from_utf8_lossy(&checked);
                assert!(checked.contains("/EFI/BOOT/BOOTX64.EFI"), "{what}: {checked}");
                let known = run("blkid", &["-p", "-o", "export", path]).unwrap();
                assert!(known.contains("VERSION=FAT32") && known.contains("LABEL=MY"), "{what}: {known}");
                let mut fat = Fat::open(File::open(&image).unwrap()).unwrap();
                let entries = fat.entries(16, &mut |_, error| Err(error)).unwrap();
                let paths: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
                assert_eq!(paths, ["EFI", "EFI/BOOT", "EFI/BOOT/BOOTX64.EFI"], "{what}");
                let mut content = Vec::new();
                fat.read(&entries[2]).read_to_end(&mut content).unwrap();
                assert!(content == LOADER, "{what}");
                assert_eq!(fat.label().unwrap(), Some(*b"MY ESP     "), "{what}");
                read += 1;
            }
        }
    }
    assert!(read >= 40, "{read} volumes were made");
}
