//! Partition tables, GPT and MBR. The first byte chooses the sector size.

#![no_main]

use farrier_disk::table::{Geometry, PartitionTable};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, disk)) = bytes.split_first() else { return };
    let sector_size = if first % 2 == 0 { 512 } else { 4096 };
    let geometry =
        Geometry { size: disk.len() as u64 / sector_size * sector_size, sector_size: sector_size as u32 };
    if let Ok(table) = PartitionTable::parse(&mut Cursor::new(disk), geometry) {
        for partition in table.partitions() {
            assert!(partition.start.checked_add(partition.size).is_some(), "{partition:?}");
        }
        table.esp();
    }
});
