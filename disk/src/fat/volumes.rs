//! Volumes such as nobody honest makes, for tests.

use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use std::io::{Cursor, Write};

/// Sectors, and bytes of a cluster, of the volumes made here.
const SECTOR: usize = 512;
/// Entries that are free tell no reader anything, so that none of its own bounds ends it.
const FREE_ENTRY: u8 = 0xe5;

type Volume = Cursor<Vec<u8>>;

/// A new volume with the smallest clusters.
pub fn formatted(bytes: usize, kind: FatType) -> Volume {
    let mut volume = Cursor::new(vec![0; bytes]);
    let options = FormatVolumeOptions::new().fat_type(kind).bytes_per_cluster(SECTOR as u32);
    fatfs::format_volume(&mut volume, options).unwrap();
    volume.set_position(0);
    volume
}

/// Offsets of the first table and of the first cluster.
fn places(volume: &Volume) -> (usize, usize) {
    let boot = volume.get_ref();
    let number = |offset: usize| usize::from(u16::from_le_bytes([boot[offset], boot[offset + 1]]));
    let table = number(14) * SECTOR;
    let sectors = if number(22) == 0 { number(36) | number(38) << 16 } else { number(22) };
    (table, table + usize::from(boot[16]) * sectors * SECTOR + number(17) * 32)
}

/// A FAT32 volume whose root folder is one cluster of free entries that is its own successor.
pub fn endless_root() -> Volume {
    let mut volume = formatted(40 << 20, FatType::Fat32);
    let (table, first) = places(&volume);
    let content = volume.get_mut();
    content[table + 2 * 4..][..4].copy_from_slice(&2_u32.to_le_bytes());
    content[first..first + SECTOR].fill(FREE_ENTRY);
    volume
}

/// A FAT16 volume with such a folder in its root.
pub fn endless_folder() -> Volume {
    let mut volume = formatted(4 << 20, FatType::Fat16);
    FileSystem::new(&mut volume, FsOptions::new()).unwrap().root_dir().create_dir("EFI").unwrap();
    let (table, first) = places(&volume);
    let content = volume.get_mut();
    content[table + 2 * 2..][..2].copy_from_slice(&2_u16.to_le_bytes());
    content[first..first + SECTOR].fill(FREE_ENTRY);
    volume.set_position(0);
    volume
}

/// A volume of 4 MiB with this many files of 200 KB, all at the position of the first one.
pub fn same_place(files: usize) -> Volume {
    let mut volume = formatted(4 << 20, FatType::Fat16);
    {
        let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
        for number in 0..files {
            let mut file = fat.root_dir().create_file(&format!("F{number}")).unwrap();
            let length = if number == 0 { 200_000 } else { 1 };
            file.write_all(&vec![7; length]).unwrap();
        }
    }
    let (_, first) = places(&volume);
    let content = volume.get_mut();
    let root = &mut content[first - 512 * 32..first];
    // Long names take entries too.
    let mut places = root.chunks_mut(32).filter(|entry| entry[0] == b'F' && entry[11] != 0x0f);
    let place = places.next().unwrap()[20..].to_vec();
    places.for_each(|entry| entry[20..].copy_from_slice(&place));
    volume.set_position(0);
    volume
}
