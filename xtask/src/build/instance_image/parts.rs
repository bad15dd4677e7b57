//! What every Debian image is made of, taken from one tree: the root file system, and boot loaders that find
//! it by its UUID.

use std::fs;
use std::hash::Hash;
use std::path::Path;

use anyhow::{Context, Result};

use super::bios;
use crate::build::debian_tree::DebianTree;
use crate::host::command::{command, run_quietly};

/// The root file system, which is the partition image.
pub const ROOT: &str = "partition.raw";
/// GRUB for UEFI.
pub const GRUB: &str = "grubx64.efi";
/// What leads either GRUB to the system's own configuration.
pub const CONFIGURATION: &str = "grub.cfg";

/// Debian's signed GRUB, with built-in modules and `/EFI/debian` as the place of its configuration.
const SIGNED_GRUB: &str = "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed";
const TO_THE_SYSTEM: &str = "search --no-floppy --fs-uuid --set=root @ROOT@\n\
                             set prefix=($root)/boot/grub\n\
                             configfile $prefix/grub.cfg\n";

/// All that decides what is built.
pub fn recipe() -> impl Hash {
    (SIGNED_GRUB, TO_THE_SYSTEM, bios::recipe())
}

/// Makes the parts in `folder`, with a root file system of `mebibytes`.
pub fn make(tree: &DebianTree<'_>, root_uuid: &str, mebibytes: u64, folder: &Path) -> Result<()> {
    println!("  root file system and boot loaders");
    let configuration = TO_THE_SYSTEM.replace("@ROOT@", root_uuid);
    bios::make(tree, &configuration, folder)?;
    let grub = tree.root().join(SIGNED_GRUB);
    fs::copy(&grub, folder.join(GRUB)).with_context(|| format!("cannot copy {}", grub.display()))?;
    fs::write(folder.join(CONFIGURATION), configuration)?;
    let image = folder.join(ROOT);
    if image.exists() {
        fs::remove_file(&image)?;
    }
    run_quietly(
        command("mkfs.ext4")
            .args(["-q", "-L", "root", "-m", "0", "-U", root_uuid, "-E", "nodiscard", "-d"])
            .arg(tree.root())
            .arg(image)
            .arg(format!("{mebibytes}M")),
    )?;
    Ok(())
}
