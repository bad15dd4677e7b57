//! Puts the Debian system's files into a disk image, without mounting anything.

use std::fs::{self, File};
use std::hash::Hash;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};

use super::bios;
use crate::command::{command, run_quietly};
use crate::debian_tree::DebianTree;

const SECTORS_PER_MEBIBYTE: u64 = 2048;

/// Where the EFI system partition starts, in MiB.
const ESP_START: u64 = 1;
/// Size of the EFI system partition in MiB; FAT32 needs 33 of them.
const ESP_SIZE: u64 = 48;
/// The EFI system partition in the image. The deployed system does not mount it.
pub const ESP_BYTES: Range<u64> = ESP_START << 20..ROOT_START << 20;
/// Where the root partition starts, in MiB. It ends one MiB before the disk does.
const ROOT_START: u64 = ESP_START + ESP_SIZE;

/// Debian's signed GRUB, with built-in modules and `/EFI/debian` as the place of its configuration.
const GRUB: &str = "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed";
/// The path of removable media, and Debian's own.
const GRUB_PLACES: &[&str] = &["::EFI/BOOT/BOOTX64.EFI", "::EFI/debian/grubx64.efi"];
/// Leads either GRUB to the system's own configuration.
const GRUB_CONFIGURATION: &str = "search --no-floppy --fs-uuid --set=root @ROOT@\n\
                                  set prefix=($root)/boot/grub\n\
                                  configfile $prefix/grub.cfg\n";

/// All that decides what is built.
pub fn recipe() -> impl Hash {
    (ESP_START, ESP_SIZE, GRUB_PLACES, GRUB_CONFIGURATION, bios::recipe())
}

/// A new random UUID.
pub fn new_uuid() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

/// Makes the sparse file `image` of `mebibytes` with boot loaders for UEFI and BIOS and `tree` as root
/// file system.
pub fn assemble(tree: &DebianTree<'_>, root_uuid: &str, mebibytes: u64, image: &Path) -> Result<()> {
    println!("  disk image");
    let file = File::create(image).with_context(|| format!("cannot write {}", image.display()))?;
    file.set_len(mebibytes << 20)?;
    let root_size = mebibytes - ROOT_START - 1;
    partition(image, root_size)?;
    let configuration = GRUB_CONFIGURATION.replace("@ROOT@", root_uuid);
    fill_esp(image, &tree.root().join(GRUB), &configuration)?;
    bios::install(tree, &configuration, image)?;
    let offset = format!("offset={},nodiscard", ROOT_START << 20);
    run_quietly(
        command("mkfs.ext4")
            .args(["-q", "-F", "-L", "root", "-m", "0", "-U", root_uuid, "-E", &offset, "-d"])
            .arg(tree.root())
            .arg(image)
            .arg(format!("{root_size}M")),
    )?;
    Ok(())
}

fn partition(image: &Path, root_size: u64) -> Result<()> {
    let extent = |number: u32, start: u64, size: u64| {
        let first = start * SECTORS_PER_MEBIBYTE;
        format!("--new={number}:{first}:{}", first + size * SECTORS_PER_MEBIBYTE - 1)
    };
    let bios = format!("--new=3:{}:{}", bios::SECTORS.start(), bios::SECTORS.end());
    run_quietly(
        command("sgdisk")
            .args(["--set-alignment=1", &bios, "--typecode=3:ef02", "--change-name=3:BIOS"])
            .args([extent(1, ESP_START, ESP_SIZE).as_str(), "--typecode=1:ef00", "--change-name=1:ESP"])
            .args([extent(2, ROOT_START, root_size).as_str(), "--typecode=2:8304", "--change-name=2:root"])
            .arg(image),
    )?;
    Ok(())
}

fn fill_esp(image: &Path, grub: &Path, configuration: &str) -> Result<()> {
    let start = (ESP_START * SECTORS_PER_MEBIBYTE).to_string();
    let kibibytes = (ESP_SIZE * 1024).to_string();
    // By itself mkfs.vfat would choose clusters that suit the whole file.
    let options = ["-F", "32", "-s", "1", "-n", "ESP", "--offset", &start];
    run_quietly(command("mkfs.vfat").args(options).arg(image).arg(kibibytes))?;
    let partition = format!("{}@@{}M", image.display(), ESP_START);
    run_quietly(command("mmd").args(["-i", &partition, "::EFI", "::EFI/BOOT", "::EFI/debian"]))?;
    for place in GRUB_PLACES {
        run_quietly(command("mcopy").args(["-i", &partition]).arg(grub).arg(place))?;
    }
    let file = image.with_file_name("grub.cfg");
    fs::write(&file, configuration)?;
    run_quietly(command("mcopy").args(["-i", &partition]).arg(&file).arg("::EFI/debian/grub.cfg"))?;
    Ok(fs::remove_file(file)?)
}
