//! Sticks that hold the ISO as a file, or its files without the ISO: what they carry is no ISO 9660.

use crate::device::BlockDevice;
use crate::fat::{Entry, Fat};
use crate::io::part::Part;
use crate::probe::ReadableDisk;
use crate::table::Partition;
use farrier_linux::drive::Drive;
use farrier_media::ramdisk_media::BOOT_MEDIUM;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Label of the volume from which Ventoy starts.
const VENTOY: &[u8] = b"VTOYEFI    ";
/// Endings of the configurations of GRUB, syslinux and systemd-boot, in lower case.
const CONFIGURATIONS: [&str; 2] = [".cfg", ".conf"];
/// How deep these lie, how many are read, and how much of each.
const DEPTH: usize = 3;
const MOST: usize = 64;
const LONGEST: u64 = 64 << 10;

/// Whether a disk has a volume from which a boot loader starts our ramdisk with the kernel line of our media, or on
/// which Ventoy is.
pub(super) fn is_on(sysfs: &Path, drive: &Drive) -> bool {
    let Ok(device) = BlockDevice::describe(sysfs, &drive.kernel_name) else { return false };
    let table = ReadableDisk::open(&device).and_then(|mut disk| disk.table());
    let partitions = table.map(|table| table.partitions().to_vec()).unwrap_or_default();
    let Ok(disk) = File::open(&drive.device) else { return false };
    let whole = Partition::at(0, drive.size);
    std::iter::once(&whole).chain(&partitions).any(|volume| is_in(&disk, volume).unwrap_or(false))
}

fn is_in(disk: &File, volume: &Partition) -> io::Result<bool> {
    let mut fat = Fat::open(Part::of(disk, volume.start, volume.size))?;
    if fat.label()?.is_some_and(|label| label.eq_ignore_ascii_case(VENTOY)) {
        return Ok(true);
    }
    let entries = fat.entries(DEPTH, &mut |_, _| Ok(()))?;
    for file in entries.iter().filter(|entry| is_configuration(entry)).take(MOST) {
        let mut text = Vec::new();
        fat.read(file).take(LONGEST).read_to_end(&mut text)?;
        if String::from_utf8_lossy(&text).contains(&format!("{BOOT_MEDIUM}=")) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_configuration(entry: &Entry) -> bool {
    let path = entry.path.to_lowercase();
    !entry.is_folder && CONFIGURATIONS.iter().any(|ending| path.ends_with(ending))
}
