//! File systems that are made without external programs.

use crate::io::view::DiskView;
use crate::table::read_exact_at;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use uuid::Uuid;

/// Longest label of a FAT volume.
const FAT_LABEL: usize = 11;

/// The one page that makes a swap area (Linux, `union swap_header`).
const SWAP_PAGE: usize = 4096;
const SWAP_VERSION: u32 = 1;
const SWAP_MAGIC: &[u8] = b"SWAPSPACE2";

/// Makes a FAT file system over all of `volume`, with a volume identifier of its own.
///
/// `label` is at most eleven ASCII letters; `sector_size` is the disk's, because Linux mounts no FAT with
/// smaller sectors (D11).
///
/// # Errors
///
/// Whatever writing brings.
pub fn make_vfat(volume: &mut DiskView<'_>, label: &str, sector_size: u32) -> io::Result<()> {
    let mut padded = [b' '; FAT_LABEL];
    padded[..label.len()].copy_from_slice(label.as_bytes());
    make_vfat_as(volume, padded, Uuid::new_v4().as_fields().0, sector_size)
}

/// Makes a FAT file system with this label, padded with blanks, and this volume identifier.
///
/// # Errors
///
/// Whatever writing brings.
pub fn make_vfat_as(
    volume: &mut DiskView<'_>,
    label: [u8; FAT_LABEL],
    identifier: u32,
    sector_size: u32,
) -> io::Result<()> {
    let sector_size = u16::try_from(sector_size)
        .ok()
        .filter(|size| *size <= 4096)
        .ok_or_else(|| io::Error::other(format!("FAT has no sectors of {sector_size} bytes")))?;
    let options =
        FormatVolumeOptions::new().volume_label(label).volume_id(identifier).bytes_per_sector(sector_size);
    volume.rewind()?;
    fatfs::format_volume(&mut *volume, options)?;
    volume.flush()?;
    volume.rewind()
}

/// Makes a swap area over `size` bytes of `volume`, as a system with pages of 4 KiB takes it.
///
/// `label` is at most sixteen letters.
///
/// # Errors
///
/// Whatever writing brings.
pub fn make_swap(volume: &mut DiskView<'_>, label: &str, size: u64) -> io::Result<()> {
    let mut page = [0; SWAP_PAGE];
    let last_page = u32::try_from(size / SWAP_PAGE as u64 - 1).unwrap_or(u32::MAX);
    page[1024..1028].copy_from_slice(&SWAP_VERSION.to_le_bytes());
    page[1028..1032].copy_from_slice(&last_page.to_le_bytes());
    page[1036..1052].copy_from_slice(Uuid::new_v4().as_bytes());
    page[1052..1052 + label.len()].copy_from_slice(label.as_bytes());
    page[SWAP_PAGE - SWAP_MAGIC.len()..].copy_from_slice(SWAP_MAGIC);
    volume.rewind()?;
    volume.write_all(&page)?;
    volume.flush()
}

/// Has `fill` put files into the FAT file system in `volume`.
///
/// # Errors
///
/// Whatever `fill`, reading or writing brings.
pub fn fill_vfat<'a>(
    volume: &mut DiskView<'a>,
    fill: impl FnOnce(&FileSystem<&mut DiskView<'a>>) -> io::Result<()>,
) -> io::Result<()> {
    volume.rewind()?;
    let target = FileSystem::new(&mut *volume, FsOptions::new())?;
    fill(&target)?;
    let stats = target.stats()?;
    target.unmount()?;
    correct_folders(volume, stats.total_clusters() - stats.free_clusters())?;
    volume.flush()
}

/// Bytes of an entry of a folder.
const ENTRY: usize = 32;
/// First byte of an entry that is free.
const FREE: u8 = 0xe5;
const ATTRIBUTES: usize = 11;
const LONG_NAME: u8 = 0x0f;
const CLUSTER_LOW: usize = 26;

/// Gives every folder the first entries it must have: `fatfs` puts a long name before each of `.` and
/// `..`, which file system checkers repair by tearing the folder apart.
///
/// `used` clusters are looked at; on a new volume these are the first ones.
fn correct_folders(volume: &mut (impl Read + Write + Seek), used: u32) -> io::Result<()> {
    let mut boot = [0; 64];
    read_exact_at(volume, 0, &mut boot)?;
    let number = |offset: usize| u64::from(u16::from_le_bytes([boot[offset], boot[offset + 1]]));
    let sector_size = number(11);
    let table = match number(22) {
        0 => number(36) | number(38) << 16,
        sectors => sectors,
    };
    let first = (number(14) + u64::from(boot[16]) * table) * sector_size + number(17) * ENTRY as u64;
    let cluster_size = sector_size * u64::from(boot[13]);
    for index in 0..u64::from(used) {
        let offset = first + index * cluster_size;
        let mut entries = [0; 4 * ENTRY];
        read_exact_at(volume, offset, &mut entries)?;
        let own_number = (index as u16 + 2).to_le_bytes();
        let is_folder = entries[ATTRIBUTES] == LONG_NAME
            && entries[ENTRY..].starts_with(b".          ")
            && entries[ENTRY + CLUSTER_LOW..].starts_with(&own_number)
            && entries[3 * ENTRY..].starts_with(b"..         ");
        if is_folder {
            entries.copy_within(ENTRY..2 * ENTRY, 0);
            entries.copy_within(3 * ENTRY.., ENTRY);
            entries[2 * ENTRY] = FREE;
            entries[3 * ENTRY] = FREE;
            volume.seek(SeekFrom::Start(offset))?;
            volume.write_all(&entries)?;
        }
    }
    Ok(())
}
