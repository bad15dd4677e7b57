//! Partition images: a layout of any sizes, and everything that is made around the image.
//!
//! Six bytes choose sector size, table and sizes; the rest is what the disk held before.

#![no_main]

use farrier_disk::layout::{Layout, Request};
use farrier_disk::partition_image;
use farrier_disk::table::{Geometry, PartitionTable, TableKind};
use farrier_disk::{Sectors, ephemeral};
use farrier_fuzz::{SECTOR_SIZES, memory_disk};
use libfuzzer_sys::fuzz_target;

/// Bytes of the disk.
const DISK: u64 = 96 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some(([choice, root, swap, ephemeral, esp, bios], content)) = bytes.split_first_chunk() else { return };
    let sector_size = SECTOR_SIZES[usize::from(choice & 1)];
    let request = Request {
        is_uefi: choice & 2 != 0,
        is_power: choice & 4 != 0,
        table: if choice & 8 != 0 { TableKind::Gpt } else { TableKind::Mbr },
        root_mib: u64::from(*root).max(1),
        swap_mib: u64::from(*swap),
        ephemeral_mib: u64::from(*ephemeral),
        ephemeral_format: ephemeral::Format::named("vfat").expect("a format that needs no program"),
        esp_mib: u64::from(*esp).max(1),
        bios_boot_mib: u64::from(*bios).max(1),
        config_drive: None,
    };
    let disk = memory_disk(&[(0, content)], DISK, sector_size);
    let Ok(layout) = Layout::plan(&request, disk.path(), Geometry { size: DISK, sector_size }) else { return };
    if partition_image::prepare(&disk, &layout, false).is_err() {
        return;
    }
    // A volume of FAT has a least size.
    if partition_image::finish(&disk, &layout, false, None).is_err() {
        return;
    }
    let table = PartitionTable::read(&disk).expect("a table that was written is read");
    let found = table.partitions().iter().map(|one| (one.number, one.start, one.size));
    assert!(found.eq(layout.places.iter().map(|place| (place.number, place.start, place.size))), "{table:?}");
    partition_image::prepare(&disk, &layout, true).expect("a rebuild finds its own partitions");
});
