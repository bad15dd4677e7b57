//! GRUB for machines with a BIOS, put where `grub-bios-setup` would put it. That wants a block device
//! with the file system mounted; here the image is a file.

use std::fs::{self, File};
use std::hash::Hash;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::build::debian_tree::DebianTree;

const SECTOR: usize = 512;
/// Boot code ends where the disk identifier and the partition table begin.
const BOOT_CODE: usize = 440;
/// Where the boot code keeps the sector of the core image (`GRUB_BOOT_MACHINE_KERNEL_SECTOR`).
const CORE_SECTOR: usize = 0x5c;
/// A jump in the boot code that distrusts the drive number, of use to floppy disks alone
/// (`GRUB_BOOT_MACHINE_DRIVE_CHECK`).
const DRIVE_CHECK: usize = 0x66;
const NO_OPERATIONS: [u8; 2] = [0x90, 0x90];
/// Where the first sector of the core image keeps that of its second one: the last block list entry.
const REST_SECTOR: usize = SECTOR - 12;

/// GRUB's files in the tree.
const FOLDER: &str = "usr/lib/grub/i386-pc";
/// What finds and starts the system, built into the core image.
const MODULES: &[&str] = &[
    "biosdisk",
    "boot",
    "configfile",
    "ext2",
    "linux",
    "normal",
    "part_gpt",
    "part_msdos",
    "search",
    "search_fs_uuid",
];
const BOOT_IMAGE: &str = "boot.img";
const CORE_IMAGE: &str = "core.img";
/// The core image and its configuration, in the tree while they are made.
const NEW_CORE: &str = "tmp/core.img";
const CONFIGURATION: &str = "tmp/core.cfg";

/// All that decides what is installed.
pub fn recipe() -> impl Hash {
    MODULES
}

/// Makes boot code and core image in `folder`; `configuration` leads to that of the system.
pub fn make(tree: &DebianTree<'_>, configuration: &str, folder: &Path) -> Result<()> {
    tree.write(CONFIGURATION, configuration)?;
    let (modules, core, settings) =
        (format!("/{FOLDER}"), format!("/{NEW_CORE}"), format!("/{CONFIGURATION}"));
    let options = ["-O", "i386-pc", "-d", &modules, "-p", "/boot/grub", "-c", &settings, "-o", &core];
    tree.run("grub-mkimage", &[&options, MODULES].concat())?;
    for (from, to) in [(format!("{FOLDER}/{BOOT_IMAGE}"), BOOT_IMAGE), (NEW_CORE.to_owned(), CORE_IMAGE)] {
        let from = tree.root().join(from);
        fs::copy(&from, folder.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    tree.remove(&[NEW_CORE, CONFIGURATION])
}

/// Writes boot code and core image from `folder` into `image`, the core into `sectors`.
pub fn install(folder: &Path, sectors: Range<u64>, image: &File) -> Result<()> {
    let start = sectors.start;
    let (boot_code, core) =
        placed(fs::read(folder.join(BOOT_IMAGE))?, fs::read(folder.join(CORE_IMAGE))?, sectors)?;
    image.write_all_at(&boot_code, 0)?;
    Ok(image.write_all_at(&core, start * SECTOR as u64)?)
}

/// Boot code and core image that find each other when the core lies in `sectors`.
fn placed(mut boot_code: Vec<u8>, mut core: Vec<u8>, sectors: Range<u64>) -> Result<(Vec<u8>, Vec<u8>)> {
    let start = sectors.start;
    let room = sectors.count() * SECTOR;
    if boot_code.len() != SECTOR || !(SECTOR..=room).contains(&core.len()) {
        bail!("GRUB's core image of {} bytes does not fit in front of the first MiB", core.len());
    }
    boot_code.truncate(BOOT_CODE);
    boot_code[CORE_SECTOR..][..8].copy_from_slice(&start.to_le_bytes());
    boot_code[DRIVE_CHECK..][..2].copy_from_slice(&NO_OPERATIONS);
    core[REST_SECTOR..][..8].copy_from_slice(&(start + 1).to_le_bytes());
    Ok((boot_code, core))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_code_and_core_image_find_each_other_and_leave_the_table_alone() {
        let (boot_code, core) = placed(vec![0xaa; 512], vec![0xbb; 1000], 34..2048).unwrap();
        assert_eq!(boot_code.len(), 440);
        assert_eq!(boot_code[0x5c..0x68], [34, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xaa, 0x90, 0x90]);
        assert_eq!((core[499], core[500], core[508]), (0xbb, 35, 0xbb));
        assert!(placed(vec![0; 512], vec![0; 2 << 20], 1..2048).is_err());
    }
}
