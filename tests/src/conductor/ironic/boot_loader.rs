//! The EFI system partition that Ironic puts into the images for virtual media.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;

const BYTES: usize = 4 << 20;

/// What GRUB does first: look for the medium with the menu that Ironic wrote.
const FIRST: &str = "search --no-floppy --file --set=root /EFI/BOOT/grub.cfg\n\
                     set prefix=($root)/EFI/BOOT\n\
                     configfile /EFI/BOOT/grub.cfg\n";

/// Menus of older versions of Ironic say `linuxefi`, those of newer ones `linux`.
const MODULES: &[&str] = &[
    "configfile",
    "fat",
    "iso9660",
    "linux",
    "linuxefi",
    "normal",
    "part_gpt",
    "part_msdos",
    "search",
    "search_fs_file",
];

/// Writes the image to `file`, with GRUB as its boot loader.
///
/// # Errors
///
/// GRUB for UEFI is not installed.
pub(super) fn write(file: &Path) -> Result<()> {
    let (first, loader) = (file.with_extension("cfg"), file.with_extension("efi"));
    fs::write(&first, FIRST)?;
    let mut command = Command::new("grub-mkimage");
    command.args(["--format", "x86_64-efi", "--prefix", "/EFI/BOOT", "--config"]).arg(first);
    command.arg("--output").arg(&loader).args(MODULES);
    let output = command.output().context("cannot start grub-mkimage")?;
    if !output.status.success() {
        bail!("grub-mkimage: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut partition = Cursor::new(vec![0; BYTES]);
    fatfs::format_volume(&mut partition, fatfs::FormatVolumeOptions::new())?;
    {
        let volume = fatfs::FileSystem::new(&mut partition, fatfs::FsOptions::new())?;
        let boot = volume.root_dir().create_dir("EFI")?.create_dir("BOOT")?;
        boot.create_file("BOOTX64.EFI")?.write_all(&fs::read(loader)?)?;
    }
    Ok(fs::write(file, partition.into_inner())?)
}
