//! Recognising ISO 9660 and FAT, and reading their labels.

use crate::view::ReadOnly;
use std::io::{Read, Seek, SeekFrom};

/// Where ISO 9660 keeps its first volume descriptor.
const DESCRIPTOR: usize = 32768;
const ISO_MAGIC: &[u8] = b"CD001";
const ISO_LABEL: std::ops::Range<usize> = 40..72;

/// Bytes of a boot sector that tell about FAT.
const BOOT_SECTOR: usize = 512;

/// Whether the content is an ISO 9660 file system.
pub fn is_iso9660(content: &[u8]) -> bool {
    content.get(DESCRIPTOR + 1..).is_some_and(|rest| rest.starts_with(ISO_MAGIC))
}

/// Sector size of a FAT file system; nothing when the content is none.
pub fn fat_sector_size(content: &[u8]) -> Option<u32> {
    let boot = content.get(..BOOT_SECTOR)?;
    let sector_size = u32::from(u16::from_le_bytes([boot[11], boot[12]]));
    let jumps = matches!(boot[0], 0xeb | 0xe9);
    let sane = sector_size.is_power_of_two()
        && (512..=4096).contains(&sector_size)
        && boot[13].is_power_of_two()
        && matches!(boot[16], 1 | 2)
        && boot[21] >= 0xf0;
    (jumps && sane && boot.ends_with(&[0x55, 0xaa])).then_some(sector_size)
}

/// Label of the file system in `volume`; nothing when it is another one or cannot be read.
pub fn read(volume: &mut (impl Read + Seek)) -> Option<String> {
    let mut start = vec![0; DESCRIPTOR + ISO_LABEL.end];
    volume.seek(SeekFrom::Start(0)).ok()?;
    volume.read_exact(&mut start).ok()?;
    let bytes = if is_iso9660(&start) {
        start[DESCRIPTOR..][ISO_LABEL].to_vec()
    } else {
        fat_sector_size(&start)?;
        fat_label(volume, &start)?
    };
    let label = String::from_utf8_lossy(&bytes);
    Some(label.trim_end_matches([' ', '\0']).to_owned())
}

/// The label in the root directory, which tools keep current, else the one in the boot sector.
fn fat_label(volume: &mut (impl Read + Seek), boot: &[u8]) -> Option<Vec<u8>> {
    volume.seek(SeekFrom::Start(0)).ok()?;
    let volume = fatfs::FileSystem::new(ReadOnly(volume), fatfs::FsOptions::new()).ok()?;
    let in_root = volume.read_volume_label_from_root_dir_as_bytes().ok().flatten();
    Some(in_root.map_or_else(|| boot_sector_label(boot), |label| label.to_vec()))
}

fn boot_sector_label(boot: &[u8]) -> Vec<u8> {
    // A FAT32 boot sector has no 16-bit size of the FAT and keeps its label further back.
    let offset = if boot[22..24] == [0, 0] { 71 } else { 43 };
    boot[offset..offset + 11].to_vec()
}
